#include "sim/forecast/prices.h"

#include <algorithm>
#include <cmath>

#include "sim/forecast/forecast.h"
#include "sim/forecast/replicate.h"

namespace reckon {
namespace {

constexpr double kScoreOfP95InPrices = 1.6448536269514722;  // standard normal quantile of 0.95

double usd_per_hour(const NodePrice& price) {
  return double(price.machine.nano_usd_per_hour + price.accelerators.nano_usd_per_hour) * 1e-9;
}

std::string source_of(const Plan& plan, const NodePrice& price) {
  if (price.spread.certain()) return "";
  const auto slot = std::size_t(price.spread.source);
  return slot < plan.sources.size() ? plan.sources[slot].id : "";
}

/// A pool's part of the bill that is proportional to its price, in every life at the median.
std::vector<double> paid_of(const PlannedPool& pool, std::size_t slot,
                            const std::vector<LifeResult>& lives) {
  std::vector<double> paid(lives.size());
  if (pool.reservation) return paid;
  for (std::size_t k = 0; k < lives.size(); ++k)
    paid[k] = to_seconds(lives[k].node_time[slot]).count() / 3600 * usd_per_hour(pool.price);
  return paid;
}

double mean_of_all(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / double(values.size());
}

/// P(price > at): the two-piece log-normal that value_at() draws from.
double chance_above(const PriceForecast& p, double at) {
  if (p.certain || at <= 0) return at < p.usd_per_hour ? 1 : 0;
  const double way = std::log(at / p.usd_per_hour);
  const double end = way < 0 ? p.low : p.high;
  const double half = std::log(end / p.usd_per_hour);
  if (half == 0) return way < 0 ? 1 : 0;
  const double score = way / std::abs(half);
  return 0.5 * std::erfc(score * kScoreOfP95InPrices / std::sqrt(2.0));
}

}  // namespace

void summarize_prices(const Plan& plan, const std::vector<LifeResult>& lives, Forecast& f) {
  std::vector<double> at_medians = f.costs_usd;
  for (const PlannedPool& pool : plan.pools) {
    const NodePrice& price = pool.price;
    const auto slot = std::size_t(&pool - plan.pools.data());
    const std::vector<double> paid = paid_of(pool, slot, lives);
    if (const auto& held = pool.reservation) {
      const double hour = double(held->price.nano_usd_per_hour) * 1e-9;
      f.prices.push_back({"reservation of pool " + pool.name, true, hour, hour, hour, "", "", 0});
    }
    const std::vector<double> factors = price_factors(price.spread, f.seed, lives.size());
    for (std::size_t k = 0; k < paid.size(); ++k) at_medians[k] -= paid[k] * (factors[k] - 1);
    const std::string what = price.spread.certain() ? "pool " + pool.name : price.spread.market;
    const auto same = std::ranges::find(f.prices, what, &PriceForecast::what);
    if (same != f.prices.end()) {
      same->usd += mean_of_all(paid);
      continue;
    }
    const double hour = usd_per_hour(price);
    f.prices.push_back({what, price.spread.certain(), hour, hour * price.spread.low,
                        hour * price.spread.high, price.as_of, source_of(plan, price),
                        mean_of_all(paid)});
  }
  f.cost_at_medians_usd = mean_of_all(at_medians);
}

std::optional<RankTurn> rank_turn(const Forecast& cheaper, const Forecast& other) {
  if (!cheaper.cost_usd || !other.cost_usd) return std::nullopt;
  std::optional<RankTurn> found;
  for (const PriceForecast& p : cheaper.prices) {
    const auto same = std::ranges::find_if(
        other.prices, [&](const PriceForecast& o) { return !p.certain && o.what == p.what; });
    const double slope = p.usd - (same == other.prices.end() ? 0 : same->usd);
    if (p.usd <= 0 || slope == 0) continue;
    const double gap = *other.cost_at_medians_usd - *cheaper.cost_at_medians_usd;
    const double at = p.usd_per_hour * (1 + gap / slope);
    if (!(at > 0) || !std::isfinite(at)) continue;
    RankTurn turn{p, at, 0, at >= p.usd_per_hour};
    turn.chance = turn.dearer ? chance_above(p, at) : 1 - chance_above(p, at);
    if (!found || turn.chance > found->chance) found = turn;
  }
  return found;
}

}  // namespace reckon
