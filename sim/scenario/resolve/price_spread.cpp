#include "sim/scenario/resolve/price_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "sim/base/unit_text.h"
#include "sim/catalog/operations_keys.h"

namespace reckon::planning {

std::optional<int> days_between(std::string_view from, std::string_view to) {
  const auto day = [](std::string_view text) -> std::optional<std::chrono::sys_days> {
    std::array<int, 3> part{0, 1, 1};  // "2025-07" is its first day
    std::size_t at = 0;
    for (int& p : part) {
      const std::size_t dash = std::min(text.find('-', at), text.size());
      const Parsed<std::int64_t> number = parse_integer(text.substr(at, dash - at));
      if (!number) return std::nullopt;
      p = static_cast<int>(*number);
      if (dash == text.size()) break;
      at = dash + 1;
    }
    const std::chrono::year_month_day date{std::chrono::year{part[0]},
                                           std::chrono::month{static_cast<unsigned>(part[1])},
                                           std::chrono::day{static_cast<unsigned>(part[2])}};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days{date};
  };
  const auto first = day(from), second = day(to);
  if (!first || !second) return std::nullopt;
  return static_cast<int>((*second - *first).count());
}

double age_years(const std::string& date, const std::string& day) {
  const std::optional<int> days = days_between(date, day);
  return days ? std::max(0, *days) / 365.0 : 0;
}

PriceRange range_after(const Fact<UsdPerSecond>& price, CapacityType capacity, double years,
                       const OperationalDefaults& operations) {
  if (price.value.v <= 0) return {};
  const auto log_of = [&](UsdPerSecond end) {
    return price.assumed && end.v > 0 ? std::abs(std::log(end.v / price.value.v)) : 0.0;
  };
  const double below = log_of(price.low), above = log_of(price.high);
  if (price.source == SourceId::user) return {std::exp(-below), std::exp(above), price.source};
  const bool spot = capacity == CapacityType::spot;
  const Fact<double>& fall = operations.at(spot ? keys::kSpotFall : keys::kListFall);
  const Fact<double>& rise = operations.at(spot ? keys::kSpotRise : keys::kListRise);
  const double down = std::log(1 - std::min(fall.value, 0.99)), up = std::log(1 + rise.value);
  return {std::exp(-std::sqrt(below * below + years * down * down)),
          std::exp(std::sqrt(above * above + years * up * up)), fall.source};
}

PriceRange sum_of(const PriceRange& one, UsdPerSecond rate, const PriceRange& other,
                  UsdPerSecond other_rate) {
  const double all = rate.v + other_rate.v;
  if (!(all > 0)) return one;
  return {(one.low * rate.v + other.low * other_rate.v) / all,
          (one.high * rate.v + other.high * other_rate.v) / all,
          one.certain() ? other.source : one.source};
}

PriceRange capped(PriceRange range, double most) {
  range.high = std::max(1.0, std::min(range.high, most));
  return range;
}

PriceRange range_of(double uncertainty) {
  return {1 - std::min(uncertainty, 0.99), 1 + uncertainty, SourceId::user};
}

std::string market_of(const Plan& plan, const std::string& item, CapacityType capacity) {
  const std::string_view provider = to_text(plan.provider);
  if (capacity != CapacityType::spot) return fmt::format("{} ({})", item, provider);
  return plan.zone.empty()
             ? fmt::format("{} on spot in {} ({})", item, plan.region, provider)
             : fmt::format("{} on spot in {}, {} ({})", item, plan.region, plan.zone, provider);
}

}  // namespace reckon::planning
