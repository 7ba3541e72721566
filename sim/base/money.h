#pragma once
#include <cstdint>

#include "sim/base/quantity.h"

// Ledgers are integers, so that parts add up to the whole exactly. A bill is nano-dollars
// (int64: 9.2 billion USD); accelerator time is accelerator-nanoseconds (128 bits: 100,000
// accelerators for a year do not fit in 64).
namespace reckon {

__extension__ typedef __int128 Int128;

struct NanoUsd {
  std::int64_t n = 0;
  friend constexpr auto operator<=>(NanoUsd, NanoUsd) = default;
  friend constexpr NanoUsd operator+(NanoUsd a, NanoUsd b) { return {a.n + b.n}; }
  friend constexpr NanoUsd operator-(NanoUsd a, NanoUsd b) { return {a.n - b.n}; }
  constexpr NanoUsd& operator+=(NanoUsd o) {
    n += o.n;
    return *this;
  }
};
constexpr Usd to_usd(NanoUsd m) { return Usd{double(m.n) * 1e-9}; }
inline NanoUsd to_nano_usd(Usd m) { return {std::llrint(m.v * 1e9)}; }

/// A price as the bill computes it: whole nano-dollars an hour.
struct HourlyRate {
  std::int64_t nano_usd_per_hour = 0;
  friend constexpr auto operator<=>(HourlyRate, HourlyRate) = default;
};
inline HourlyRate to_hourly_rate(UsdPerSecond r) { return {std::llrint(r.v * 3600e9)}; }
/// rate x time, rounded half up to a nano-dollar. time >= 0.
constexpr NanoUsd charge(HourlyRate rate, SimDuration time) {
  constexpr Int128 kHour = 3'600'000'000'000;
  const Int128 product = Int128{rate.nano_usd_per_hour} * time.count();
  return {static_cast<std::int64_t>((product + kHour / 2) / kHour)};
}

struct AcceleratorTime {
  Int128 n = 0;  // accelerator-nanoseconds
  friend constexpr bool operator==(AcceleratorTime, AcceleratorTime) = default;
  friend constexpr AcceleratorTime operator+(AcceleratorTime a, AcceleratorTime b) {
    return {a.n + b.n};
  }
  friend constexpr AcceleratorTime operator-(AcceleratorTime a, AcceleratorTime b) {
    return {a.n - b.n};
  }
  constexpr AcceleratorTime& operator+=(AcceleratorTime o) {
    n += o.n;
    return *this;
  }
};
constexpr AcceleratorTime accelerator_time(int accelerators, SimDuration d) {
  return {Int128{accelerators} * d.count()};
}
constexpr double ratio(AcceleratorTime part, AcceleratorTime whole) {
  return whole.n == 0 ? 0.0 : double(part.n) / double(whole.n);
}

}  // namespace reckon
