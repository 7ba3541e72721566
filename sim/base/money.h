#pragma once
#include <cstdint>

#include "sim/base/overflow.h"
#include "sim/base/quantity.h"

// Ledgers are integers, so that parts add up to the whole exactly: nano-dollars for a bill,
// accelerator-nanoseconds for accelerator time. Both have 128 bits (1.7e29 USD, 5e21
// accelerator-years) and throw Overflow beyond them.
namespace reckon {

struct NanoUsd {
  Int128 n = 0;
  friend constexpr auto operator<=>(NanoUsd, NanoUsd) = default;
  friend constexpr NanoUsd operator+(NanoUsd a, NanoUsd b) {
    return {checked_add(a.n, b.n, "money")};
  }
  friend constexpr NanoUsd operator-(NanoUsd a, NanoUsd b) {
    return {checked_subtract(a.n, b.n, "money")};
  }
  constexpr NanoUsd& operator+=(NanoUsd o) { return *this = *this + o; }
};
constexpr Usd to_usd(NanoUsd m) { return Usd{double(m.n) * 1e-9}; }
/// Nearest nano-dollar. Errors: Overflow beyond 1e28 USD, and for what is no number.
inline NanoUsd to_nano_usd(Usd m) {
  constexpr double kLimit = 1e28;  // USD; Int128 holds 1.7e29
  if (!(std::abs(m.v) <= kLimit)) throw_overflow("money", m.v, kLimit, "USD");
  return {static_cast<Int128>(std::nearbyint(m.v * 1e9))};
}

/// A price as the bill computes it: whole nano-dollars an hour.
struct HourlyRate {
  std::int64_t nano_usd_per_hour = 0;
  friend constexpr auto operator<=>(HourlyRate, HourlyRate) = default;
};
/// `times` x rate to the nearest nano-dollar an hour (nodes of a pool, gigabytes of a store).
/// Errors: Overflow beyond 9e9 USD/h.
inline HourlyRate scaled(HourlyRate rate, double times) {
  constexpr double kLimit = 9e9;  // USD/h; std::int64_t holds 9.2e9 of nano-dollars
  const double nano = double(rate.nano_usd_per_hour) * times;
  if (!(std::abs(nano) <= kLimit * 1e9))
    throw_overflow("an hourly price", nano * 1e-9, kLimit, "USD/h");
  return {std::llrint(nano)};
}
/// Nearest nano-dollar an hour. Errors: Overflow beyond 9e9 USD/h.
inline HourlyRate to_hourly_rate(UsdPerSecond r) { return scaled({1}, r.v * 3600e9); }
/// rate x time, rounded half up to a nano-dollar. time >= 0.
constexpr NanoUsd charge(HourlyRate rate, SimDuration time) {
  if (time.count() == 0 || rate.nano_usd_per_hour == 0) return {};
  constexpr Int128 kHour = 3'600'000'000'000;
  const Int128 product = Int128{rate.nano_usd_per_hour} * time.count();  // 64 x 64 bits
  return {(product + kHour / 2) / kHour};
}

struct AcceleratorTime {
  Int128 n = 0;  // accelerator-nanoseconds
  friend constexpr bool operator==(AcceleratorTime, AcceleratorTime) = default;
  friend constexpr AcceleratorTime operator+(AcceleratorTime a, AcceleratorTime b) {
    return {checked_add(a.n, b.n, "accelerator time")};
  }
  friend constexpr AcceleratorTime operator-(AcceleratorTime a, AcceleratorTime b) {
    return {checked_subtract(a.n, b.n, "accelerator time")};
  }
  constexpr AcceleratorTime& operator+=(AcceleratorTime o) { return *this = *this + o; }
};
constexpr AcceleratorTime accelerator_time(int accelerators, SimDuration d) {
  return {Int128{accelerators} * d.count()};  // 32 x 64 bits
}
constexpr double ratio(AcceleratorTime part, AcceleratorTime whole) {
  return whole.n == 0 ? 0.0 : double(part.n) / double(whole.n);
}

}  // namespace reckon
