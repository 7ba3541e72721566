#pragma once
#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/base/overflow.h"

// Quantities that do not mix: each is one double with a dimension in its type. Going in is explicit
// (`Bytes{1e9}`), coming out is explicit (`.v`), and `Bytes + Flops` does not compile.
// Time is std::chrono, so that the models compute in Seconds and the clock counts nanoseconds.
// `GB` is 1e9 bytes, `GiB` is 2^30; `Gbps` counts bits (1e9 / 8 bytes a second).
namespace reckon {

using Seconds = std::chrono::duration<double>;

template <class Tag>
struct Quantity {
  double v{};  // bytes, FLOPs, USD or samples, by the alias; rates a second
  constexpr Quantity() = default;
  constexpr explicit Quantity(double x) : v(x) {}
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.v + b.v}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.v - b.v}; }
  friend constexpr Quantity operator-(Quantity a) { return Quantity{-a.v}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity{a.v * k}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity{a.v * k}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity{a.v / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.v / b.v; }
  constexpr Quantity& operator+=(Quantity o) {
    v += o.v;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    v -= o.v;
    return *this;
  }
};

template <class Tag>
struct Per {};  // tag of "so much a second"

using Bytes = Quantity<struct byte_tag>;
using BytesPerSecond = Quantity<Per<byte_tag>>;
using Flops = Quantity<struct flop_tag>;  // floating-point operations; one multiply-add is two
using FlopsPerSecond = Quantity<Per<flop_tag>>;
using Usd = Quantity<struct usd_tag>;
using UsdPerSecond = Quantity<Per<usd_tag>>;
using Samples = Quantity<struct sample_tag>;  // image, sequence or record, as the model counts
using SamplesPerSecond = Quantity<Per<sample_tag>>;

template <class T>
constexpr Seconds operator/(Quantity<T> a, Quantity<Per<T>> rate) {
  return Seconds{a.v / rate.v};
}
template <class T>
constexpr Quantity<Per<T>> operator/(Quantity<T> a, Seconds t) {
  return Quantity<Per<T>>{a.v / t.count()};
}
template <class T>
constexpr Quantity<T> operator*(Quantity<Per<T>> rate, Seconds t) {
  return Quantity<T>{rate.v * t.count()};
}
template <class T>
constexpr Quantity<T> operator*(Seconds t, Quantity<Per<T>> rate) {
  return rate * t;
}

inline namespace literals {
using namespace std::chrono_literals;
constexpr Bytes operator""_B(long double x) { return Bytes{double(x)}; }
constexpr Bytes operator""_kB(long double x) { return Bytes{double(x) * 1e3}; }
constexpr Bytes operator""_MB(long double x) { return Bytes{double(x) * 1e6}; }
constexpr Bytes operator""_GB(long double x) { return Bytes{double(x) * 1e9}; }
constexpr Bytes operator""_MiB(long double x) { return Bytes{double(x) * 1048576.0}; }
constexpr Bytes operator""_GiB(long double x) { return Bytes{double(x) * 1073741824.0}; }
constexpr BytesPerSecond operator""_Gbps(long double x) {
  return BytesPerSecond{double(x) * 1e9 / 8};
}
constexpr BytesPerSecond operator""_GBps(long double x) { return BytesPerSecond{double(x) * 1e9}; }
constexpr FlopsPerSecond operator""_TFLOPS(long double x) {
  return FlopsPerSecond{double(x) * 1e12};
}
constexpr Flops operator""_GFLOP(long double x) { return Flops{double(x) * 1e9}; }
constexpr UsdPerSecond operator""_usd_per_hour(long double x) {
  return UsdPerSecond{double(x) / 3600};
}
}  // namespace literals

/// The simulator's clock: whole nanoseconds since the start of the scenario. Exact ordering, 292
/// years.
struct SimClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SimClock>;
  static constexpr bool is_steady = true;
};
using SimTime = SimClock::time_point;
using SimDuration = SimClock::duration;

/// The one place where a modelled duration becomes clock ticks: nearest nanosecond, ties to even.
/// Errors: Overflow beyond 145 years, so that the sum of two is still on the clock, and for NaN.
inline SimDuration to_clock(Seconds s) {
  constexpr double kLimit = 4.6e9;  // seconds: half of what 64 bits of nanoseconds hold
  if (!(std::abs(s.count()) <= kLimit)) throw_overflow("time", s.count(), kLimit, "s");
  return SimDuration{std::llrint(s.count() * 1e9)};
}
constexpr Seconds to_seconds(SimDuration d) { return Seconds{double(d.count()) * 1e-9}; }

}  // namespace reckon
