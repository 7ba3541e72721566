#pragma once
#include <cmath>
#include <stdexcept>
#include <string_view>

// Clocks and ledgers count in whole numbers. A number that leaves their range ends in an error that
// names the quantity: a bill or a date that wrapped around would look like an answer.
namespace reckon {

__extension__ typedef __int128 Int128;

/// A quantity of the question lies beyond what clocks and ledgers hold.
class Overflow : public std::range_error {
  using std::range_error::range_error;
};

/// Throws Overflow: "<quantity> of <value> <unit> is beyond the <limit> <unit> that ...".
[[noreturn]] void throw_overflow(std::string_view quantity, double value, double limit,
                                 std::string_view unit);
/// Throws Overflow: "<quantity>: a sum or product left the range of 128 bits".
[[noreturn]] void throw_overflow(std::string_view quantity);

constexpr Int128 checked_add(Int128 a, Int128 b, std::string_view quantity) {
  Int128 sum{};
  if (__builtin_add_overflow(a, b, &sum)) throw_overflow(quantity);
  return sum;
}
constexpr Int128 checked_subtract(Int128 a, Int128 b, std::string_view quantity) {
  Int128 difference{};
  if (__builtin_sub_overflow(a, b, &difference)) throw_overflow(quantity);
  return difference;
}

}  // namespace reckon
