#include "sim/base/quantity.h"

#include <catch2/catch.hpp>

#include "sim/base/ids.h"

using namespace reckon;
using namespace reckon::literals;

namespace {
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Divisible = requires(A a, B b) {
  a / b;
};
template <class A, class B>
concept Multipliable = requires(A a, B b) {
  a* b;
};
template <class From, class To>
concept Convertible = std::is_convertible_v<From, To>;
}  // namespace

// A wrong unit does not compile: if one of these expressions becomes valid, this file stops
// compiling.
static_assert(Addable<Bytes, Bytes> && !Addable<Bytes, Flops> && !Addable<Bytes, double>);
static_assert(!Addable<Bytes, BytesPerSecond> && !Addable<Usd, UsdPerSecond>);
static_assert(Comparable<Bytes, Bytes> && !Comparable<Bytes, Flops> && !Comparable<Usd, double>);
static_assert(Divisible<Bytes, BytesPerSecond> && !Divisible<Bytes, FlopsPerSecond>);
static_assert(Multipliable<UsdPerSecond, Seconds> && !Multipliable<Bytes, Seconds>);
static_assert(!Multipliable<Bytes, Bytes> && !Multipliable<BytesPerSecond, BytesPerSecond>);
static_assert(!Convertible<double, Bytes> && !Convertible<Bytes, double>);
static_assert(!Convertible<NodeId, JobId> && !Convertible<NodeId, int> &&
              !Convertible<int, NodeId>);
static_assert(!Convertible<Seconds, SimDuration>);  // only to_clock() rounds

TEST_CASE("bytes over bandwidth is a duration, and back") {
  CHECK((1.0_GB / 50.0_GBps).count() == Approx(0.02));  // 1e9 / 50e9
  CHECK((50.0_GBps * 20ms).v == Approx(1e9));
  CHECK((1.0_GB / Seconds{0.02}).v == Approx(50e9));
  CHECK(6.0_GB / 2.0_GB == 3.0);
}

TEST_CASE("network bandwidth counts bits, memory counts 1024s, disks count 1000s") {
  CHECK(400.0_Gbps == 50.0_GBps);
  CHECK((1.0_GiB).v == 1073741824.0);
  CHECK((1.0_GB).v == 1e9);
}

TEST_CASE("a price an hour times an hour is that price") {
  CHECK((3.6_usd_per_hour * std::chrono::hours(1)).v == Approx(3.6));
}

TEST_CASE("modelled seconds are rounded to the clock once, to the nearest nanosecond") {
  CHECK(to_clock(Seconds{1.5e-9}).count() == 2);  // ties to even
  CHECK(to_clock(Seconds{2.5e-9}).count() == 2);
  CHECK(to_clock(Seconds{0.1}).count() == 100'000'000);
  CHECK(to_seconds(SimDuration{250}).count() == Approx(250e-9));
}
