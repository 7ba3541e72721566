#include "kernels/half.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace reckon;

namespace {

/// By the definition: (-1)^s 2^(e - 15) 1.f, or (-1)^s 2^-14 0.f.
double value_of_half(std::uint32_t bits) {
  const int exponent = int(bits >> 10 & 31u), fraction = int(bits & 1023u);
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace

TEST_CASE("every fp16 number is what its bits say, and comes back from a float as it was") {
  for (std::uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const Half x{static_cast<std::uint16_t>(bits)};
    const double value = value_of_half(bits);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(to_float(x)));
      REQUIRE(std::isnan(to_float(from_float<Half>(to_float(x)))));
      continue;
    }
    REQUIRE(double{to_float(x)} == value);
    REQUIRE(from_float<Half>(to_float(x)).bits == bits);
  }
}

TEST_CASE("floats between two fp16 numbers go to the nearer one, halfway to the even one") {
  for (std::uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const double below = value_of_half(bits);
    // The number behind the largest one would be 2^16.
    const double above = bits == 0x7bffu ? 65536 : value_of_half(bits + 1);
    const auto middle = static_cast<float>((below + above) / 2);  // exact
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    for (const unsigned sign : {0u, 0x8000u}) {
      const float side = sign == 0 ? 1.0F : -1.0F;
      REQUIRE(from_float<Half>(side * middle).bits == (even | sign));
      REQUIRE(from_float<Half>(side * std::nextafter(middle, 0.0F)).bits == (bits | sign));
      REQUIRE(from_float<Half>(side * std::nextafter(middle, 1e9F)).bits == ((bits + 1) | sign));
    }
  }
  CHECK(std::isinf(to_float(from_float<Half>(1e30F))));
  CHECK(to_float(from_float<Half>(1e-30F)) == 0);
  CHECK(to_float(from_float<Half>(kHalfLargest)) == kHalfLargest);
}
