#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/cluster/life/life.h"
#include "sim/forecast/pace.h"
#include "sim/scenario/plan.h"

// Replications: each draws every assumption of the plan from its own random stream and lives one
// life with them.
namespace reckon {

/// Draws stop at two and a half half-ranges (4.1 standard deviations): a tail that no one has
/// judged is not believed.
inline constexpr double kScoreLimit = 2.5;  // half-ranges

/// How far an assumption is from its median, in units of its range: 0 the median, -1 `low` (5th
/// percentile), +1 `high` (95th).
double draw_score(const PlanAssumption& assumption, std::uint64_t seed, std::uint32_t replication);

/// The price of a market (assumptions_of()).
bool is_price(const PlanAssumption& assumption);

/// Draws of prices are stratified: in every 64 replications from the first each 64th of the
/// distribution is drawn once, in an order of the market's own [McKay, Beckman and Conover 1979,
/// "A Comparison of Three Methods for Selecting Values of Input Variables in the Analysis of Output
/// from a Computer Code", Technometrics 21(2)]. So a cost's median is moved by what else is drawn
/// and hardly by chance, and of two markets neither looks cheaper by luck.
double price_score(std::string_view key, std::uint64_t seed, std::uint32_t replication);
/// Of the first replications.
/// Half-ranges.
std::vector<double> price_scores(std::string_view key, std::uint64_t seed,
                                 std::size_t replications);

/// What a market's prices are over the plan's in the first replications: value_at() of their
/// scores.
std::vector<double> price_factors(const PriceSpread& spread, std::uint64_t seed,
                                  std::size_t replications);

/// The number at that score. Two-piece log-normal: the median and both percentiles are met exactly,
/// also where the range is lopsided, and nothing turns negative. Where `low` or the value is 0 the
/// pieces are linear, cut at 0.
double value_at(const PlanAssumption& assumption, double score);

/// How an assumption stands for one job: PlanAssumption's numbers.
struct AssumedRange {
  double value = 0, low = 0, high = 0;
};
/// What all replications of one forecast share; immutable while they run.
struct JobSetup {
  PacedJob paced;
  /// By assumption of the forecast; nullopt: the job does not rest on it.
  std::vector<std::optional<Sensitivity>> sensitivities;
  /// The same, where the job rests on it: jobs that share an assumption share its score, and each
  /// has its own range.
  std::vector<AssumedRange> ranges;
  double step_spread = 1;  // the plan's own, of the job's step: factor
};
struct ForecastSetup {
  const Plan& plan;
  std::vector<JobSetup> jobs;               // as in the plan
  std::vector<PlanAssumption> assumptions;  // of all jobs, each once, as the first of them has it
};
ForecastSetup make_setup(const Plan& plan, const NetworkModel& network);

/// What a replication's draws make of a step of a plan with one job, over its step at the medians.
double step_factor(const ForecastSetup& setup, std::uint64_t seed, std::uint32_t replication);

/// One assumption held at a score instead of its draw; all else keeps its draws (common random
/// numbers).
struct Held {
  std::size_t assumption = 0;
  double score = 0;  // half-ranges, as draw_score()
};

/// Runs replications one after the other on its own copy of the plan, whose assumed numbers it sets
/// in place: a copy of the whole plan for each replication would cost more than the life itself.
class Replicator {
 public:
  explicit Replicator(const ForecastSetup& setup);
  LifeResult run(std::uint64_t seed, std::uint32_t replication, std::optional<Held> held = {},
                 bool record = false);

 private:
  JobPace pace_of(std::size_t k, const PaceFactors& factors) const;

  const ForecastSetup& setup_;
  /// Of each job by itself, nullopt where it repeats another; the first's cluster is that of all.
  std::vector<std::optional<Plan>> plans_;
  std::vector<JobRequest> requests_;  // as in the plan
};

}  // namespace reckon
