#include "kernels/divisor.h"

#include <catch2/catch.hpp>

using namespace reckon;

TEST_CASE("division by a product and a shift is division, up to the last number of 31 bits") {
  constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1;
  for (const std::int64_t by :
       {1LL, 2LL, 3LL, 5LL, 7LL, 64LL, 147LL, 152LL, 224LL, 50257LL, 65535LL, 65536LL, 1000003LL,
        1LL << 30, (1LL << 30) + 1, (1LL << 31) - 1}) {
    const gpu::Divisor divisor(by, kLargest);
    REQUIRE(divisor.multiplier != 0);
    const auto check = [&](std::int64_t n) {
      if (n < 0 || n > kLargest) return;
      std::int64_t q = n;
      const std::int64_t rest = divisor.take_rest(q);
      if (q != n / by || rest != n % by) FAIL(n << " / " << by << " came out as " << q);
    };
    // Where a quotient changes is where a rounding would show.
    for (std::int64_t k = 0; k <= 5000; ++k)
      for (std::int64_t d = -1; d <= 1; ++d) {
        check(k * by + d);
        check(kLargest / by * by - k * by + d);
      }
    check(kLargest);
  }
}

TEST_CASE("numbers of more than 31 bits are divided as usual") {
  const std::int64_t large = std::int64_t{1} << 40;
  const gpu::Divisor divisor(147, large);
  CHECK(divisor.multiplier == 0);
  CHECK(divisor.quotient(large) == large / 147);
}
