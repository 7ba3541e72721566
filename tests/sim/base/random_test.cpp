#include "sim/base/random.h"

#include <boost/math/special_functions/erf.hpp>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/parallel.h"

using namespace reckon;

namespace {
constexpr Purpose kA{"a"};
constexpr Purpose kB{"b"};

std::vector<std::uint32_t> first(RandomStream stream, int n) {
  std::vector<std::uint32_t> out;
  for (int i = 0; i < n; ++i) out.push_back(stream());
  return out;
}
}  // namespace

TEST_CASE("a stream is a function of seed, replication, purpose and entity, and of nothing else") {
  const auto base = first({1, 2, kA, 3}, 9);
  CHECK(base == first({1, 2, kA, 3}, 9));
  CHECK(base != first({2, 2, kA, 3}, 9));
  CHECK(base != first({1, 3, kA, 3}, 9));
  CHECK(base != first({1, 2, kB, 3}, 9));
  CHECK(base != first({1, 2, kA, 4}, 9));
  CHECK(base !=
        first({1 + (std::uint64_t{1} << 32), 2, kA, 3}, 9));  // all 64 bits of the seed count
}

TEST_CASE("the numbers themselves are frozen: changing them changes every forecast") {
  const std::vector<std::uint32_t> seen = first({1, 0, kA, 0}, 4);
  CHECK(seen == std::vector<std::uint32_t>{0x693c8d75, 0x1cb7bc38, 0xbe2d21db, 0x8d138ebd});
  RandomStream again{1, 0, kA, 0};
  CHECK(again.uniform() ==
        ((double((std::uint64_t{seen[0]} << 32 | seen[1]) >> 11) + 0.5) * 0x1p-53));
}

TEST_CASE("uniform, exponential and normal draws have their moments") {
  // n = 100,000: the mean of U(0,1) has a standard error of 0.0009, of Exp(1) and N(0,1) of 0.0032.
  constexpr int kN = 100'000;
  RandomStream stream{7, 0, kA, 0};
  double u = 0, e = 0, z = 0, z2 = 0;
  for (int i = 0; i < kN; ++i) {
    u += stream.uniform();
    e += stream.exponential();
    const double x = stream.normal();
    z += x;
    z2 += x * x;
  }
  CHECK(u / kN == Approx(0.5).margin(5 * 0.0009));
  CHECK(e / kN == Approx(1).margin(5 * 0.0032));
  CHECK(z / kN == Approx(0).margin(5 * 0.0032));
  CHECK(z2 / kN == Approx(1).margin(5 * 0.0045));
}

TEST_CASE("streams of neighbouring entities are uncorrelated") {
  constexpr int kN = 20'000;  // standard error of a correlation: 1/sqrt(n) = 0.007
  double sum = 0;
  for (std::uint32_t k = 0; k < kN; ++k)
    sum += RandomStream{1, 0, kA, k}.normal() * RandomStream{1, 0, kA, k + 1}.normal();
  CHECK(std::abs(sum / kN) < 5 * 0.007);
}

TEST_CASE("the normal quantile inverts the distribution to the last digits") {
  for (const double p : {1e-300, 1e-12, 0.001, 0.02425, 0.3, 0.5, 0.9, 0.999999}) {
    const double exact = -std::sqrt(2.0) * boost::math::erfc_inv(2 * p);
    CHECK(normal_quantile(p) == Approx(exact).epsilon(2e-14).margin(1e-15));
  }
}

TEST_CASE("every index of a parallel loop runs once, on any number of threads") {
  for (const int threads : {1, 2, 7}) {
    std::vector<int> ran(1000, 0);
    parallel_for(ran.size(), threads, [&](std::size_t k) { ++ran[k]; });
    CHECK(ran == std::vector<int>(1000, 1));
  }
}

TEST_CASE("an exception in a parallel loop reaches the caller") {
  CHECK_THROWS_WITH(parallel_for(100, 3,
                                 [](std::size_t k) {
                                   if (k == 42) throw std::runtime_error("at 42");
                                 }),
                    "at 42");
}
