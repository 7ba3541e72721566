#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

/// Three significant digits in the largest unit that keeps the number at or above 1.
template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {  // largest first
  const Scale* chosen = &scales.back();
  for (const Scale& s : scales)
    if (std::abs(value) >= s.factor * 0.9995) {
      chosen = &s;
      break;
    }
  const double shown = value / chosen->factor;
  const double size = std::abs(shown);
  const int digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", shown, digits, chosen->unit);
}

std::string grouped(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

/// "1,234.56": fixed decimals, thousands grouped.
std::string grouped_fixed(double value, int decimals) {
  const std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t dot = text.find('.');
  const std::string whole = grouped(text.substr(0, dot));
  const std::string rest = dot == std::string::npos ? "" : text.substr(dot);
  return (value < 0 ? "-" : "") + whole + rest;
}

}  // namespace

std::string format_duration(Seconds s) {
  const double total = s.count();
  if (total < 0) return "-" + format_duration(-s);
  if (total == 0) return "0 s";
  if (total < 60) {
    constexpr std::array kShort{Scale{1, "s"}, Scale{1e-3, "ms"}, Scale{1e-6, "us"},
                                Scale{1e-9, "ns"}};
    return scaled(total, kShort);
  }
  struct Pair {
    double large, small;
    const char *large_unit, *small_unit;
  };
  constexpr std::array kPairs{Pair{86400, 3600, "d", "h"}, Pair{3600, 60, "h", "min"},
                              Pair{60, 1, "min", "s"}};
  for (const Pair& p : kPairs) {
    // Round first, so that 59.9 min becomes 1 h and not 0 h 60 min.
    const double small = std::round(total / p.small);
    const double per = p.large / p.small;
    if (small < per) continue;
    const double large = std::floor(small / per);
    const double rest = small - large * per;
    if (rest == 0) return fmt::format("{:.0f} {}", large, p.large_unit);
    return fmt::format("{:.0f} {} {:.0f} {}", large, p.large_unit, rest, p.small_unit);
  }
  return fmt::format("{:.1f} s", total);
}

std::string format_bytes(Bytes b) {
  constexpr std::array kScales{Scale{0x1p50, "PiB"}, Scale{0x1p40, "TiB"}, Scale{0x1p30, "GiB"},
                               Scale{0x1p20, "MiB"}, Scale{0x1p10, "KiB"}, Scale{1, "B"}};
  return scaled(b.v, kScales);
}

std::string format_bandwidth(BytesPerSecond r) {
  constexpr std::array kScales{Scale{1e12, "TB/s"}, Scale{1e9, "GB/s"}, Scale{1e6, "MB/s"},
                               Scale{1e3, "kB/s"}, Scale{1, "B/s"}};
  return scaled(r.v, kScales);
}

std::string format_flops(Flops f) {
  constexpr std::array kScales{Scale{1e18, "EFLOP"}, Scale{1e15, "PFLOP"}, Scale{1e12, "TFLOP"},
                               Scale{1e9, "GFLOP"},  Scale{1e6, "MFLOP"},  Scale{1e3, "kFLOP"},
                               Scale{1, "FLOP"}};
  return scaled(f.v, kScales);
}

std::string format_flop_rate(FlopsPerSecond r) {
  constexpr std::array kScales{Scale{1e18, "EFLOP/s"}, Scale{1e15, "PFLOP/s"},
                               Scale{1e12, "TFLOP/s"}, Scale{1e9, "GFLOP/s"},
                               Scale{1e6, "MFLOP/s"}};
  return scaled(r.v, kScales);
}

std::string format_usd(Usd amount) {
  const double value = in_printed_currency(amount.v);
  const double size = std::abs(value);
  int decimals = 2;
  if (size > 0 && size < 0.01)
    decimals = std::min(9, 1 - static_cast<int>(std::floor(std::log10(size))));
  return grouped_fixed(value, decimals) + " " + printed_currency().code;
}

std::string format_energy(double joules) {
  constexpr std::array kScales{Scale{3.6e12, "GWh"}, Scale{3.6e9, "MWh"}, Scale{3.6e6, "kWh"},
                               Scale{3600, "Wh"}};
  return scaled(joules, kScales);
}

std::string format_mass(double grams) {
  constexpr std::array kScales{Scale{1e9, "kt"}, Scale{1e6, "t"}, Scale{1e3, "kg"}, Scale{1, "g"}};
  return scaled(grams, kScales);
}

std::string format_count(double n) {
  const bool whole = n == std::floor(n);
  return grouped_fixed(n, whole || std::abs(n) >= 1000 ? 0 : 1);
}

std::string format_percent(double fraction) { return fmt::format("{:.1f} %", fraction * 100); }

}  // namespace reckon
