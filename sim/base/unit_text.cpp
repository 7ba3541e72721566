#include "sim/base/unit_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace reckon {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kWeek = 7 * kDay;
constexpr double kMonth = 730 * kHour;  // as clouds bill: 365 days / 12

struct Unit {
  std::string_view text;
  double factor;
};

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

tl::unexpected<std::string> fail(std::string message) {
  return tl::unexpected<std::string>(std::move(message));
}

struct Leading {
  double value;
  std::string_view rest;
};

/// The number at the front (digits may be grouped by '_'), and what follows it.
std::optional<Leading> leading_number(std::string_view text) {
  std::string digits;
  std::size_t i = 0;
  const auto is_digit = [&](std::size_t k) {
    return k < text.size() && std::isdigit(static_cast<unsigned char>(text[k])) != 0;
  };
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) digits += text[i++];
  if (!is_digit(i) && !(i < text.size() && text[i] == '.' && is_digit(i + 1))) return std::nullopt;
  for (; i < text.size(); ++i) {
    if (text[i] == '_' && is_digit(i - 1) && is_digit(i + 1)) continue;
    if (!is_digit(i) && text[i] != '.') break;
    digits += text[i];
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < text.size() && (text[j] == '-' || text[j] == '+')) ++j;
    if (is_digit(j)) {
      while (is_digit(j)) ++j;
      digits += text.substr(i, j - i);
      i = j;
    }
  }
  const char* begin = digits.c_str() + (digits[0] == '+' ? 1 : 0);
  const char* end = digits.c_str() + digits.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) return std::nullopt;
  return Leading{value, text.substr(i)};
}

/// One number and one unit of the table, blanks between them allowed.
Parsed<double> with_unit(std::string_view text, std::span<const Unit> units,
                         std::string_view what) {
  const std::string_view body = trimmed(text);
  const auto number = leading_number(body);
  if (!number) return fail(fmt::format("'{}' is not {}", body, what));
  const std::string_view unit = trimmed(number->rest);
  for (const Unit& u : units)
    if (u.text == unit) {
      const double value = number->value * u.factor;
      if (std::isfinite(value)) return value;
    }
  if (unit.empty()) return fail(fmt::format("'{}' has no unit; write {}", body, what));
  return fail(fmt::format("'{}' has an unknown unit '{}'; write {}", body, unit, what));
}

constexpr std::array kDurations{
    Unit{"ns", 1e-9},      Unit{"us", 1e-6},         Unit{"ms", 1e-3},         Unit{"s", 1},
    Unit{"sec", 1},        Unit{"min", kMinute},     Unit{"m", kMinute},       Unit{"h", kHour},
    Unit{"d", kDay},       Unit{"w", kWeek},         Unit{"day", kDay},        Unit{"days", kDay},
    Unit{"hour", kHour},   Unit{"hours", kHour},     Unit{"week", kWeek},      Unit{"weeks", kWeek},
    Unit{"y", 365 * kDay}, Unit{"year", 365 * kDay}, Unit{"years", 365 * kDay}};

constexpr std::array kByteUnits{Unit{"B", 1},        Unit{"kB", 1e3},     Unit{"KB", 1e3},
                                Unit{"MB", 1e6},     Unit{"GB", 1e9},     Unit{"TB", 1e12},
                                Unit{"PB", 1e15},    Unit{"KiB", 1024.0}, Unit{"MiB", 0x1p20},
                                Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40}, Unit{"PiB", 0x1p50}};

constexpr std::array kBandwidths{
    Unit{"B/s", 1},          Unit{"kB/s", 1e3},       Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},       Unit{"TB/s", 1e12},      Unit{"MiB/s", 0x1p20},
    Unit{"GiB/s", 0x1p30},   Unit{"TiB/s", 0x1p40},   Unit{"kbps", 1e3 / 8},
    Unit{"Mbps", 1e6 / 8},   Unit{"Gbps", 1e9 / 8},   Unit{"Tbps", 1e12 / 8},
    Unit{"Mbit/s", 1e6 / 8}, Unit{"Gbit/s", 1e9 / 8}, Unit{"Tbit/s", 1e12 / 8}};

constexpr std::array kFlopUnits{Unit{"FLOP", 1},     Unit{"kFLOP", 1e3},  Unit{"MFLOP", 1e6},
                                Unit{"GFLOP", 1e9},  Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15},
                                Unit{"EFLOP", 1e18}, Unit{"ZFLOP", 1e21}};

constexpr std::array kFlopRates{Unit{"GFLOPS", 1e9},  Unit{"TFLOPS", 1e12},  Unit{"PFLOPS", 1e15},
                                Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15},
                                Unit{"MFLOP/s", 1e6}, Unit{"EFLOP/s", 1e18}};

constexpr std::array kEnergies{Unit{"Wh", 3600},    Unit{"kWh", 3.6e6}, Unit{"MWh", 3.6e9},
                               Unit{"GWh", 3.6e12}, Unit{"J", 1},       Unit{"kJ", 1e3},
                               Unit{"MJ", 1e6},     Unit{"GJ", 1e9}};
constexpr std::array kMasses{Unit{"g", 1}, Unit{"kg", 1e3}, Unit{"t", 1e6}, Unit{"kt", 1e9}};

constexpr std::string_view kDurationHelp =
    "a duration such as 30s, 10min, 8h, 30d (units: ns us ms s min h d w)";

Parsed<double> amount_and_rest(std::string_view text, std::string& rest, std::string_view what) {
  const std::string_view body = trimmed(text);
  const auto number = leading_number(body);
  if (!number) return fail(fmt::format("'{}' is not {}", body, what));
  rest = std::string(trimmed(number->rest));
  return number->value;
}

bool is_currency(std::string_view text) {
  return text.size() == 3 && std::ranges::all_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

Parsed<double> parse_number(std::string_view text) {
  const std::string_view body = trimmed(text);
  const auto number = leading_number(body);
  if (!number || !number->rest.empty())
    return fail(fmt::format("'{}' is not a number such as 3 or 0.5", body));
  return number->value;
}

Parsed<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view body = trimmed(text);
  const auto number = leading_number(body);
  constexpr double kExact = 0x1p53;  // beyond it a double skips integers
  if (!number || !number->rest.empty() || number->value != std::floor(number->value) ||
      std::abs(number->value) > kExact)
    return fail(fmt::format("'{}' is not a whole number", body));
  return static_cast<std::int64_t>(number->value);
}

Parsed<double> parse_count(std::string_view text) {
  constexpr std::array kCounts{Unit{"", 1},    Unit{"k", 1e3}, Unit{"K", 1e3}, Unit{"M", 1e6},
                               Unit{"B", 1e9}, Unit{"G", 1e9}, Unit{"T", 1e12}};
  return with_unit(text, kCounts, "a count such as 1281167, 300M or 10B");
}

Parsed<double> parse_fraction(std::string_view text) {
  constexpr std::array kFractions{Unit{"", 1}, Unit{"%", 0.01}};
  return with_unit(text, kFractions, "a fraction such as 0.3 or 30%");
}

Parsed<Seconds> parse_duration(std::string_view text) {
  std::string_view rest = trimmed(text);
  double total = 0;
  int parts = 0;
  while (!rest.empty() || parts == 0) {  // 1h30min is a sum of parts
    const auto number = leading_number(rest);
    if (!number) return fail(fmt::format("'{}' is not {}", trimmed(text), kDurationHelp));
    std::string_view after = trimmed(number->rest);
    std::size_t letters = 0;
    while (letters < after.size() && std::isalpha(static_cast<unsigned char>(after[letters])))
      ++letters;
    const std::string_view unit = after.substr(0, letters);
    const auto* found =
        std::ranges::find_if(kDurations, [&](const Unit& u) { return u.text == unit; });
    if (unit.empty())
      return fail(fmt::format("'{}' has no unit; write {}", trimmed(text), kDurationHelp));
    if (found == kDurations.end())
      return fail(fmt::format("'{}' has an unknown unit '{}'; write {}", trimmed(text), unit,
                              kDurationHelp));
    if (parts > 0 && number->value < 0)
      return fail(fmt::format("'{}' is not {}", trimmed(text), kDurationHelp));
    total += (total < 0 ? -1 : 1) * number->value * found->factor;
    ++parts;
    rest = trimmed(after.substr(letters));
  }
  if (!std::isfinite(total)) return fail(fmt::format("'{}' is too long", trimmed(text)));
  return Seconds{total};
}

Parsed<Bytes> parse_bytes(std::string_view text) {
  return with_unit(text, kByteUnits, "a size such as 110kB, 512MiB or 16GiB").map([](double v) {
    return Bytes{v};
  });
}

Parsed<BytesPerSecond> parse_bandwidth(std::string_view text) {
  return with_unit(text, kBandwidths, "a bandwidth such as 100Gbps (bits) or 12.5GB/s (bytes)")
      .map([](double v) { return BytesPerSecond{v}; });
}

Parsed<Flops> parse_flops(std::string_view text) {
  return with_unit(text, kFlopUnits, "a number of operations such as 4.09GFLOP").map([](double v) {
    return Flops{v};
  });
}

Parsed<FlopsPerSecond> parse_flop_rate(std::string_view text) {
  return with_unit(text, kFlopRates, "a rate such as 125TFLOPS").map([](double v) {
    return FlopsPerSecond{v};
  });
}

Parsed<double> parse_energy(std::string_view text) {
  return with_unit(text, kEnergies, "an energy such as 500kWh or 1.2MWh");
}

Parsed<double> parse_mass(std::string_view text) {
  return with_unit(text, kMasses, "a mass such as 2t or 350kg");
}

Parsed<MoneyText> parse_money(std::string_view text) {
  constexpr std::string_view kHelp = "an amount such as 20000 USD";
  std::string currency;
  const auto amount = amount_and_rest(text, currency, kHelp);
  if (!amount) return fail(amount.error());
  if (currency.empty())
    return fail(fmt::format("'{}' has no currency; write {}", trimmed(text), kHelp));
  if (!is_currency(currency))
    return fail(fmt::format("'{}' is not a currency; write {}", currency, kHelp));
  return MoneyText{*amount, currency};
}

Parsed<MoneyText> parse_price(std::string_view text) {
  constexpr std::string_view kHelp = "a price such as 4.10 USD/h";
  constexpr std::array kPer{Unit{"s", 1},    Unit{"min", kMinute},  Unit{"h", kHour},
                            Unit{"d", kDay}, Unit{"month", kMonth}, Unit{"hour", kHour}};
  std::string rest;
  const auto amount = amount_and_rest(text, rest, kHelp);
  if (!amount) return fail(amount.error());
  const std::size_t slash = rest.find('/');
  if (slash == std::string::npos) return fail(fmt::format("'{}' is not {}", trimmed(text), kHelp));
  const std::string currency(trimmed(std::string_view(rest).substr(0, slash)));
  const std::string_view per = trimmed(std::string_view(rest).substr(slash + 1));
  if (!is_currency(currency))
    return fail(fmt::format("'{}' is not a currency; write {}", currency, kHelp));
  const auto* unit = std::ranges::find_if(kPer, [&](const Unit& u) { return u.text == per; });
  if (unit == kPer.end())
    return fail(fmt::format("'{}' is no time to pay for; write {}", per, kHelp));
  return MoneyText{*amount / unit->factor, currency};
}

}  // namespace reckon
