#include "sim/forecast/replicate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

constexpr Purpose kAssumption{"assumption"}, kPriceOrder{"price_order"};
constexpr std::uint32_t kStrata = 64;
constexpr double kScoreOfP95 = 1.6448536269514722;  // standard normal quantile of 0.95

/// Entity of an assumption's stream: its key, so that an assumption more in the plan changes no
/// other draw. FNV-1a.
std::uint32_t entity_of(std::string_view key) {
  std::uint32_t hash = 2166136261u;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

/// Log-linear between the median (1 at score 0) and the ends of the range.
double factor_at(double at_low, double at_high, double score) {
  const double end = score < 0 ? at_low : at_high;
  return std::exp(std::abs(score) * std::log(end));
}

void multiply(PaceFactors& product, const Sensitivity& s, double score) {
  product.step *= factor_at(s.low.step, s.high.step, score);
  product.evaluation *= factor_at(s.low.evaluation, s.high.evaluation, score);
  product.save *= factor_at(s.low.save, s.high.save, score);
  product.restore *= factor_at(s.low.restore, s.high.restore, score);
}

/// Of the workers, which every step waits for: the step's time over the step model's. The plan's
/// own value is in its steps; a draw counts against it.
double step_spread(const Plan& plan) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  const double spread = workers ? workers->efficiency.step_spread.value : 1.0;
  return spread > 0 ? spread : 1.0;  // 0: the catalog's row has none
}

}  // namespace

namespace {

using Strata = std::array<std::uint32_t, kStrata>;

/// Which stratum each replication of a block has.
Strata strata_of(std::uint32_t entity, std::uint64_t seed, std::uint32_t block) {
  RandomStream order(seed, block, kPriceOrder, entity);
  Strata strata;
  std::iota(strata.begin(), strata.end(), 0u);
  for (std::uint32_t k = kStrata - 1; k > 0; --k)
    std::swap(strata[k], strata[std::min(k, std::uint32_t(order.uniform() * (k + 1)))]);
  return strata;
}

double score_in(const Strata& strata, std::uint32_t entity, std::uint64_t seed,
                std::uint32_t replication) {
  RandomStream within(seed, replication, kAssumption, entity);
  const double u = (strata[replication % kStrata] + within.uniform()) / kStrata;
  return std::clamp(normal_quantile(u) / kScoreOfP95, -kScoreLimit, kScoreLimit);
}

}  // namespace

double price_score(std::string_view key, std::uint64_t seed, std::uint32_t replication) {
  const std::uint32_t entity = entity_of(key);
  return score_in(strata_of(entity, seed, replication / kStrata), entity, seed, replication);
}

std::vector<double> price_scores(std::string_view key, std::uint64_t seed,
                                 std::size_t replications) {
  const std::uint32_t entity = entity_of(key);
  std::vector<double> scores(replications);
  Strata strata{};
  for (std::uint32_t k = 0; k < replications; ++k) {
    if (k % kStrata == 0) strata = strata_of(entity, seed, k / kStrata);
    scores[k] = score_in(strata, entity, seed, k);
  }
  return scores;
}

double draw_score(const PlanAssumption& assumption, std::uint64_t seed, std::uint32_t replication) {
  if (is_price(assumption)) return price_score(assumption.key, seed, replication);
  RandomStream stream(seed, replication, kAssumption, entity_of(assumption.key));
  return std::clamp(stream.normal() / kScoreOfP95, -kScoreLimit, kScoreLimit);
}

bool is_price(const PlanAssumption& a) { return a.key.starts_with(kPriceOf); }

std::vector<double> price_factors(const PriceSpread& spread, std::uint64_t seed,
                                  std::size_t replications) {
  if (spread.certain()) return std::vector<double>(replications, 1.0);
  std::vector<double> factors =
      price_scores(std::string(kPriceOf) + spread.market, seed, replications);
  for (double& factor : factors)
    factor = std::exp(std::abs(factor) * std::log(factor < 0 ? spread.low : spread.high));
  return factors;
}

namespace {

/// value_at() of an assumption whose numbers are one job's.
double value_in(const AssumedRange& range, std::string_view unit, double score) {
  const double end = score < 0 ? range.low : range.high;
  const double way = std::abs(score);
  const double value = range.value > 0 && end > 0
                           ? range.value * std::exp(way * std::log(end / range.value))
                           : std::max(0.0, range.value + way * (end - range.value));
  return unit == "fraction" ? std::min(value, 1.0) : value;
}

}  // namespace

double value_at(const PlanAssumption& a, double score) {
  return value_in({a.value, a.low, a.high}, a.unit, score);
}

ForecastSetup make_setup(const Plan& plan, const NetworkModel& network) {
  ForecastSetup setup{plan, {}, {}};
  std::vector<std::pair<std::vector<PlanAssumption>, std::vector<Sensitivity>>> by_job;
  for (std::size_t k = 0; k < plan.jobs.size(); ++k) {
    if (const auto same = plan.jobs[k].same_as) {
      setup.jobs.push_back(setup.jobs[*same]);
      by_job.push_back(by_job[*same]);
      continue;
    }
    Plan scratch = plan_of_job(plan, k);
    setup.jobs.push_back({make_pace(scratch, network), {}, {}, step_spread(scratch)});
    std::vector<PlanAssumption> assumptions = assumptions_of(scratch);
    std::vector<Sensitivity> ends =
        sensitivities(scratch, assumptions, setup.jobs.back().paced, network);
    by_job.emplace_back(std::move(assumptions), std::move(ends));
  }
  for (std::size_t k = 0; k < by_job.size(); ++k)
    for (const PlanAssumption& a : by_job[k].first) {
      const bool known = std::any_of(setup.assumptions.begin(), setup.assumptions.end(),
                                     [&](const PlanAssumption& b) { return b.key == a.key; });
      if (!known) setup.assumptions.push_back(a);
    }
  for (std::size_t k = 0; k < by_job.size(); ++k)
    for (const PlanAssumption& a : setup.assumptions) {
      const auto& [own, ends] = by_job[k];
      const auto found = std::find_if(own.begin(), own.end(),
                                      [&](const PlanAssumption& b) { return b.key == a.key; });
      const bool rests = found != own.end();
      setup.jobs[k].sensitivities.push_back(
          rests ? std::optional(ends[std::size_t(found - own.begin())]) : std::nullopt);
      setup.jobs[k].ranges.push_back(rests ? AssumedRange{found->value, found->low, found->high}
                                           : AssumedRange{});
    }
  return setup;
}

double step_factor(const ForecastSetup& setup, std::uint64_t seed, std::uint32_t replication) {
  RECKON_CHECK(setup.jobs.size() == 1);
  PaceFactors factors;
  double spread = 1;
  for (std::size_t i = 0; i < setup.assumptions.size(); ++i) {
    const PlanAssumption& a = setup.assumptions[i];
    const std::optional<Sensitivity>& ends = setup.jobs.front().sensitivities[i];
    if (!ends) continue;
    const double score = draw_score(a, seed, replication);
    if (a.affects_step) multiply(factors, *ends, score);
    if (a.key.ends_with("efficiency.step_spread"))
      spread = value_at(a, score) / setup.jobs.front().step_spread;
    if (a.key.starts_with(kSamplesFactor)) factors.step *= value_at(a, score);
  }
  return factors.step * spread;
}

Replicator::Replicator(const ForecastSetup& setup) : setup_(setup) {
  requests_.resize(setup.jobs.size());
  for (std::size_t k = 0; k < setup.jobs.size(); ++k) {
    plans_.emplace_back();
    if (!setup.plan.jobs[k].same_as) plans_.back() = plan_of_job(setup.plan, k);
  }
}

JobPace Replicator::pace_of(std::size_t k, const PaceFactors& factors) const {
  const Plan& plan = *plans_[k];
  const PlannedWorkload& job = plan.only_job();
  JobPace pace = setup_.jobs[k].paced.pace;
  const double longer = job.samples_factor.value;
  pace.steps = std::int64_t(std::ceil(double(pace.steps) * longer));
  pace.evaluation = pace.evaluation * (factors.evaluation * longer);
  const SaveTimes save = save_times(plan, job, setup_.jobs[k].paced.step);
  pace.checkpoint_save = save.stall * factors.save;
  pace.checkpoint_write = save.write * factors.save;
  pace.checkpoint_restore = checkpoint_restore_time(plan, job) * factors.restore;
  pace.local = local_pace(plan, job, setup_.jobs[k].paced.step);
  pace.step_factor = factors.step;
  return pace;
}

LifeResult Replicator::run(std::uint64_t seed, std::uint32_t replication, std::optional<Held> held,
                           bool record) {
  std::vector<PaceFactors> factors(requests_.size());
  Plan& first = *plans_.front();
  for (std::size_t i = 0; i < setup_.assumptions.size(); ++i) {
    const PlanAssumption& a = setup_.assumptions[i];
    const double score =
        held && held->assumption == i ? held->score : draw_score(a, seed, replication);
    for (std::size_t k = 0; k < requests_.size(); ++k) {
      const std::optional<Sensitivity>& ends = setup_.jobs[k].sensitivities[i];
      if (!ends || !plans_[k]) continue;
      if (a.affects_step)
        multiply(factors[k], *ends, score);
      else
        a.set(*plans_[k], value_in(setup_.jobs[k].ranges[i], a.unit, score));
    }
    // A pool that the first job does not use is a pool of the cluster all the same.
    const bool of_others_only = !setup_.jobs.front().sensitivities[i];
    if (of_others_only && !a.affects_step && a.key.starts_with("pools."))
      a.set(first, value_at(a, score));
  }
  const double on_every_step = step_spread(first) / setup_.jobs.front().step_spread;
  // The checkpoint interval stays the plan's: who chose it knew the medians,
  // not this replication's luck.
  for (std::size_t k = 0; k < requests_.size(); ++k) {
    const PlannedWorkload& planned = setup_.plan.jobs[k];
    if (planned.same_as) {
      requests_[k] = requests_[*planned.same_as];
      requests_[k].submit = SimTime{} + to_clock(planned.submit);
    } else {
      const double own = step_spread(*plans_[k]) / setup_.jobs[k].step_spread;
      factors[k].step *= own / on_every_step;
      requests_[k] = request_of(plans_[k]->only_job(), pace_of(k, factors[k]));
    }
  }

  LifeOptions options;
  options.seed = seed;
  options.replication = replication;
  options.record = record;
  options.factors.step_time = on_every_step;
  return simulate_life(first, requests_, options);
}

}  // namespace reckon
