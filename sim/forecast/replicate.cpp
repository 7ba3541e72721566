#include "sim/forecast/replicate.h"

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"

namespace reckon {
namespace {

constexpr Purpose kAssumption{"assumption"};
constexpr double kScoreOfP95 = 1.6448536269514722;  // standard normal quantile of 0.95
/// Draws stop at two and a half half-ranges (4.1 standard deviations): a tail that no one has
/// judged is not believed.
constexpr double kScoreLimit = 2.5;

/// Entity of an assumption's stream: its key, so that an assumption more in the plan changes no
/// other draw. FNV-1a.
std::uint32_t entity_of(const std::string& key) {
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

/// What the fit of the efficiencies left unexplained, as drawn into the plan: of the workers, which
/// every step waits for.
double step_spread(const Plan& plan) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  const double spread = workers ? workers->efficiency.step_spread.value : 1.0;
  return spread > 0 ? spread : 1.0;  // 0: the catalog's row has none
}

}  // namespace

double draw_score(const PlanAssumption& assumption, std::uint64_t seed, std::uint32_t replication) {
  RandomStream stream(seed, replication, kAssumption, entity_of(assumption.key));
  return std::clamp(stream.normal() / kScoreOfP95, -kScoreLimit, kScoreLimit);
}

double value_at(const PlanAssumption& a, double score) {
  const double end = score < 0 ? a.low : a.high;
  const double way = std::abs(score);
  const double value = a.value > 0 && end > 0 ? a.value * std::exp(way * std::log(end / a.value))
                                              : std::max(0.0, a.value + way * (end - a.value));
  return a.unit == "fraction" ? std::min(value, 1.0) : value;
}

ForecastSetup make_setup(const Plan& plan, const NetworkModel& network) {
  ForecastSetup setup{plan, make_pace(plan, network), assumptions_of(plan), {}};
  Plan scratch = plan;
  setup.sensitivities = sensitivities(scratch, setup.assumptions, setup.paced, network);
  return setup;
}

Replicator::Replicator(const ForecastSetup& setup)
    : setup_(setup), plan_(setup.plan), pace_(setup.paced.pace) {}

LifeResult Replicator::run(std::uint64_t seed, std::uint32_t replication, std::optional<Held> held,
                           bool record) {
  PaceFactors factors;
  for (std::size_t i = 0; i < setup_.assumptions.size(); ++i) {
    const PlanAssumption& a = setup_.assumptions[i];
    const double score =
        held && held->assumption == i ? held->score : draw_score(a, seed, replication);
    if (a.affects_step)
      multiply(factors, setup_.sensitivities[i], score);
    else
      a.set(plan_, value_at(a, score));
  }
  // The checkpoint interval stays the plan's: who chose it knew the medians, not this replication's
  // luck.
  const PlannedWorkload& job = plan_.jobs.front();
  pace_.evaluation = setup_.paced.pace.evaluation * factors.evaluation;
  pace_.checkpoint_save = checkpoint_save_time(plan_, job) * factors.save;
  pace_.checkpoint_restore = checkpoint_restore_time(plan_, job) * factors.restore;

  LifeOptions options;
  options.seed = seed;
  options.replication = replication;
  options.record = record;
  options.factors.step_time = factors.step * step_spread(plan_);
  return simulate_life(plan_, pace_, options);
}

}  // namespace reckon
