#include "planner/search/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planner/question.h"
#include "sim/base/check.h"
#include "sim/forecast/replicate.h"

namespace reckon::planner {
namespace {

constexpr std::string_view kImagePull = "job_start.image_pull";
constexpr std::string_view kFrameworkStart = "job_start.framework_start";

enum class Direction { speed, burden, unknown };

/// Is more of it faster, or slower? By the assumption's key (sim/scenario/assumptions.cpp).
Direction direction_of(std::string_view key) {
  constexpr std::array<std::string_view, 12> kSpeeds{"efficiency.convolution",
                                                     "efficiency.matmul",
                                                     "efficiency.attention",
                                                     "efficiency.memory",
                                                     "accelerator.peak",
                                                     "accelerator.memory_bandwidth",
                                                     "accelerator.peer_bandwidth",
                                                     "accelerator.host_bandwidth",
                                                     "link.efficiency",
                                                     "machine.network",
                                                     "per_vcpu",
                                                     "storage.read_per_node"};
  constexpr std::array<std::string_view, 9> kBurdens{"efficiency.half_size",
                                                     "efficiency.launch",
                                                     "efficiency.host",
                                                     "link.latency",
                                                     "dataset.bytes_per_sample",
                                                     "dataset.decode_cpu_seconds",
                                                     "framework.expert_imbalance",
                                                     "framework.step_jitter",
                                                     "framework.overlap_slowdown"};
  const auto ends = [key](std::string_view end) { return key.ends_with(end); };
  if (std::ranges::any_of(kSpeeds, ends)) return Direction::speed;
  if (std::ranges::any_of(kBurdens, ends)) return Direction::burden;
  return Direction::unknown;
}

/// The least that the draw can have made of a step: min(r, 1/r)^|s|, 1 where it made it slower.
double least_factor(const PlanAssumption& a, Direction direction, double score) {
  if (direction == Direction::speed && score < 0) return 1;
  if (direction == Direction::burden && score > 0) return 1;
  const double end = score < 0 ? a.low : a.high;
  if (!(a.value > 0) || !(end > 0)) return 0;
  const double r = end / a.value;
  return std::pow(std::min(r, 1 / r), std::abs(score));
}

bool is_spread(const PlanAssumption& a) { return a.key.ends_with("efficiency.step_spread"); }
/// Multiplies the work by what is drawn.
bool is_factor(const PlanAssumption& a) {
  return is_spread(a) || a.key.starts_with(kSamplesFactor);
}
bool bounds_rest_on(const PlanAssumption& a) {
  return a.affects_step || is_factor(a) || a.key == kImagePull || a.key == kFrameworkStart;
}

}  // namespace

void Draws::draw(const Site& site) {
  for (const PlanAssumption& a : site.assumptions) {
    if (!bounds_rest_on(a)) continue;
    std::vector<double>& scores = by_key_[a.key];
    if (scores.empty())
      for (int k = 0; k < replications_; ++k)
        scores.push_back(draw_score(a, seed_, std::uint32_t(k)));
  }
}
const std::vector<double>& Draws::scores(const PlanAssumption& assumption) const {
  const auto drawn = by_key_.find(assumption.key);
  RECKON_CHECK(drawn != by_key_.end());
  return drawn->second;
}

namespace {

/// G(k).
std::vector<double> time_factors(const Site& site, const Draws& draws) {
  std::vector<double> factors(std::size_t(draws.replications()), 1.0);
  for (const PlanAssumption& a : site.assumptions) {
    const bool factor = is_factor(a);
    if (!factor && !a.affects_step) continue;
    const std::vector<double>& scores = draws.scores(a);
    const Direction direction = direction_of(a.key);
    for (std::size_t k = 0; k < factors.size(); ++k)
      factors[k] *= factor ? value_at(a, scores[k]) : least_factor(a, direction, scores[k]);
  }
  return factors;
}

/// What a new node needs before a job works on it, in every replication.
std::vector<double> start_seconds(const Site& site, const Draws& draws) {
  std::vector<double> seconds(std::size_t(draws.replications()), 0.0);
  const auto add = [&](std::string_view key, Seconds median) {
    const auto drawn = std::ranges::find(site.assumptions, key, &PlanAssumption::key);
    for (std::size_t k = 0; k < seconds.size(); ++k)
      seconds[k] += drawn == site.assumptions.end() ? median.count()
                                                    : value_at(*drawn, draws.scores(*drawn)[k]);
  };
  add(kImagePull, site.image_pull);
  add(kFrameworkStart, site.framework_start);
  return seconds;
}

LeastStatistics statistics_of(const std::vector<double>& starts, const std::vector<double>& factors,
                              const Question& question) {
  const LeastStatistic mean{mean_of(starts), mean_of(factors)};
  const double least_start = *std::ranges::min_element(starts);
  const auto at = [&](std::optional<double> probability) {
    return probability ? LeastStatistic{least_start, quantile(factors, *probability)} : mean;
  };
  LeastStatistics least{.mean = mean, .p95 = at(0.95)};
  if (question.deadline) least.at_deadline = at(question.deadline->probability);
  if (question.budget) least.at_budget = at(question.budget->probability);
  return least;
}

}  // namespace

const LeastFactors::Cost& LeastFactors::cost_in(const std::vector<PriceSpread>& markets) const {
  const auto found = std::ranges::find(costs, markets, &Cost::markets);
  RECKON_CHECK(found != costs.end());
  return *found;
}

namespace {

/// P(k).
std::vector<double> least_prices(const std::vector<PriceSpread>& markets, const Draws& draws) {
  const auto n = std::size_t(draws.replications());
  std::vector<double> least = markets.empty() ? std::vector<double>(n, 1.0)
                                              : price_factors(markets.front(), draws.seed(), n);
  for (const PriceSpread& market : markets) {
    const std::vector<double> factors = price_factors(market, draws.seed(), n);
    for (std::size_t k = 0; k < n; ++k) least[k] = std::min(least[k], factors[k]);
  }
  return least;
}

}  // namespace

LeastFactors least_factors(const Question& question, const Site& site, const Draws& draws) {
  const std::vector<double> factors = time_factors(site, draws);
  LeastFactors least;
  const std::vector<double> start = start_seconds(site, draws);
  least.time = statistics_of(start, factors, question);
  for (const Offer& offer : site.offers) {
    LeastFactors::Cost cost;
    cost.markets = offer.markets();
    if (std::ranges::find(least.costs, cost.markets, &LeastFactors::Cost::markets) !=
        least.costs.end())
      continue;
    std::vector<double> paid_start = least_prices(cost.markets, draws), paid = paid_start;
    for (std::size_t k = 0; k < paid.size(); ++k) {
      paid[k] *= factors[k];
      paid_start[k] *= start[k];
    }
    cost.certain = cost.spot = statistics_of(paid_start, paid, question);
    if (site.free_within.count() > 0) {
      for (std::size_t k = 0; k < paid.size(); ++k)
        if (start[k] < site.free_within.count()) paid[k] = paid_start[k] = 0;
      cost.spot = statistics_of(paid_start, paid, question);
    }
    least.costs.push_back(std::move(cost));
  }
  return least;
}

namespace {

/// USD a second of the gang's nodes: of all, and of those that are never free.
struct Rates {
  double all = 0, certain = 0;
};

Rates rates_of(const Site& site, const Split& split, const Offer& offer) {
  Rates rates;
  const bool elastic = offer.restart && offer.restart->kind == RestartKind::elastic;
  if (site.asynchronous || elastic || !offer.known) return rates;  // fewer nodes may do
  const auto usd_second = [](HourlyRate rate, int nodes) {
    return double(rate.nano_usd_per_hour) * 1e-9 / 3600 * nodes;
  };
  const int base = base_nodes(offer, split.nodes);
  rates.certain = usd_second(offer.mix.base_lowest, base);
  for (std::size_t p = 0; p < offer.pools_lowest.size(); ++p) {
    if (std::ranges::count(site.fallbacks, p) > 0) continue;
    const bool worker = p == site.worker;
    HourlyRate least = offer.pools_lowest[p];
    if (worker)
      for (const std::size_t other : site.fallbacks)
        least = std::min(least, offer.pools_lowest[other]);
    if (worker && offer.mix.patience) least = std::min(least, offer.mix.fallback_lowest);
    rates.all += usd_second(least, worker ? split.nodes - base : split.parameter_servers);
  }
  rates.all += rates.certain;
  return rates;
}

}  // namespace

Bounds bounds_of(const Question& question, const Site& site, const LeastFactors& least,
                 const Split& split, const Offer& offer) {
  const double work = double(split.steps) * split.step_seconds;
  const Rates rates = rates_of(site, split, offer);
  // A rounding of the clock or the ledger must not lift a bound over what it bounds; a drawn price
  // is rounded to a nano-dollar, of a cent an hour 1e-7.
  constexpr double kRounding = 1 - 1e-9, kPriceRounding = 1 - 1e-6;
  const LeastStatistics& in_time = least.time;
  const LeastFactors::Cost& paid = least.cost_in(offer.markets());
  const bool spot =
      offer.pricing == CapacityType::spot || offer.made_of[std::size_t(CapacityType::spot)];
  const auto time = [&](const LeastStatistic& of) { return kRounding * of.of(work); };
  const auto cost = [&](const LeastStatistic& of_certain, const LeastStatistic& of_spot) {
    return kPriceRounding * std::max(rates.certain * time(of_certain),
                                     rates.all * time(spot ? of_spot : of_certain));
  };
  Bounds b;
  b.deadline = time(in_time.at_deadline);
  b.budget = cost(paid.certain.at_budget, paid.spot.at_budget);
  const bool p95 = is_of_p95(question.objective);
  b.score = score_of(
      question.objective, time(p95 ? in_time.p95 : in_time.mean),
      p95 ? cost(paid.certain.p95, paid.spot.p95) : cost(paid.certain.mean, paid.spot.mean));
  return b;
}

}  // namespace reckon::planner
