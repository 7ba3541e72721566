#include "sim/scenario/processor_rates.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace reckon;

namespace {

/// Of a grid of 8 and 32 where a product takes (m n k)^0.8 ns.
ProductTimes products() {
  ProductTimes p;
  p.extents = {8, 32};
  for (const double m : {8.0, 32.0})
    for (const double n : {8.0, 32.0})
      for (const double k : {8.0, 32.0}) p.times.emplace_back(1e-9 * std::pow(m * n * k, 0.8));
  return p;
}

ProcessorRates machine() {
  ProcessorRates r;
  r.cores = 4;
  r.together = {{8}, {Seconds{1e-6}}};
  r.apart = {{8}, {Seconds{3e-6}}};
  r.streams = {{{Bytes{1e3}, Seconds{1e-7}}, {Bytes{1e6}, Seconds{1e-3}}}};
  r.streams_apart = {{{Bytes{1e3}, Seconds{2e-7}}, {Bytes{1e6}, Seconds{4e-3}}}};
  return r;
}

}  // namespace

TEST_CASE("a product's time between measured shapes follows a power law of its extents") {
  const ProductTimes p = products();
  for (const double m : {8.0, 10.0, 16.0, 32.0})
    for (const double k : {8.0, 20.0})
      CHECK(p.time(m, 32, k).count() == Approx(1e-9 * std::pow(m * 32 * k, 0.8)));
}

TEST_CASE("beyond the measured shapes the rate is that of the nearest") {
  const ProductTimes p = products();
  CHECK(p.rate(1, 8, 8).v == Approx(p.rate(8, 8, 8).v));
  CHECK(p.rate(4096, 32, 32).v == Approx(p.rate(32, 32, 32).v));
}

TEST_CASE("a pass over memory goes as fast as the cache that holds it") {
  const StreamTimes s = machine().streams;
  CHECK(s.rate(Bytes{100}).v == Approx(1e10));
  CHECK(s.rate(Bytes{1e7}).v == Approx(1e9));
  CHECK(s.rate(Bytes{std::sqrt(1e9)}).v == Approx(std::sqrt(1e19)));  // half way by logarithms
}

TEST_CASE("a worker has the machine, a core of it, or its share") {
  const ProcessorRates r = machine();
  const auto of = [&](int threads, int busy) {
    return r.of_worker(threads, busy).products.time(8, 8, 8).count();
  };
  CHECK(of(4, 1) == Approx(1e-6));  // all cores at one product
  CHECK(of(1, 4) == Approx(3e-6));  // one of four that each have a core
  CHECK(of(2, 2) == Approx(2e-6));  // half of the machine
  CHECK(of(1, 8) == Approx(6e-6));  // two workers a core take turns
  CHECK(r.of_worker(1, 4).streams.rate(Bytes{1e6}).v == Approx(2.5e8));
}
