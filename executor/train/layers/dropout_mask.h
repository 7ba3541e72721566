#pragma once
#include <cstdint>
#include <span>

// Which elements a dropout keeps: a pure function of what is named here, so that recomputation, a
// resumed run and another number of workers draw the same masks.
namespace reckon {

struct DropoutKey {
  std::uint64_t seed = 1;
  std::int64_t step = 0;    // of the optimizer
  std::uint32_t layer = 0;  // LayerId
  std::int64_t sample = 0;  // position in the samples of the whole step, all ranks
};

/// factors[i] = 0 with probability `rate`, else 1 / (1 - rate), for the elements first + i of the
/// sample [Srivastava 2014; "inverted", as every framework has it]. Philox4x32-10 [Salmon 2011],
/// one 32-bit number an element.
template <class T>
void dropout_factors(const DropoutKey& key, double rate, std::int64_t first, std::span<T> factors);

}  // namespace reckon
