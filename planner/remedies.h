#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "planner/change.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"

// What helps a run that will miss its deadline or its budget: other numbers of workers and other
// layouts for the steps that are left, from a checkpoint on.
namespace reckon::planner {

/// Of the whole run, from its first start.
struct RunLimits {
  std::optional<Seconds> deadline;
  std::optional<Usd> budget;
};

/// How the whole run ends, as far as it can be seen.
struct RunOutlook {
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;  // nullopt: a price is unknown
  double miss = 0;                    // probability that a limit is not kept
};
/// By replication, seconds and USD; costs are empty where a price is unknown, and then keep no
/// budget.
RunOutlook outlook_of(const std::vector<double>& times, const std::vector<double>& costs,
                      const RunLimits& limits);

/// Where the run is.
struct RunSoFar {
  std::int64_t steps_left = 0;
  Seconds elapsed{};
  Usd spent{};
  Seconds stop{};  // what ending the step under way and saving takes, before another plan begins
};

/// A plan as the run would go on under it, at its place. A step takes `step_factor` times what the
/// model says, by what was measured of the run, to within `step_spread` (one standard deviation of
/// the logarithm).
struct PlanHere {
  Plan plan;
  double step_factor = 1, step_spread = 0;  // factor; standard deviation of ln
};

/// Seconds and USD of `steps` steps of the plan from a start on, by replication: the forecast's
/// replications with their steps as measured. What goes with the steps (saves, lost work; means)
/// takes as much longer as they do. No price: usd is empty.
struct RestOfRun {
  std::vector<double> seconds, usd;
};
RestOfRun rest_of_run(PlanHere here, std::int64_t steps, const NetworkModel& network,
                      int replications, std::uint64_t seed);

/// What could be changed of a run, each a list of changes of its scenario: numbers of nodes with
/// their workers, and what a model can be cut into on them. Each step trains the samples that it
/// trains now; where they do not divide, there is no such change. Nothing is said of whether a plan
/// comes of it. Empty for what has no layout of our own: asynchronous training.
std::vector<std::vector<Change>> changes_of_run(const Scenario& scenario, const Plan& now,
                                                const std::vector<int>& nodes);
/// The numbers of nodes to consider: those of `plan: {vary: {nodes: ...}}`; else what the workers'
/// pool may have, where that is a range; else up to twice as many as now.
std::vector<int> nodes_of_run(const Scenario& scenario);

struct Remedy {
  std::vector<Change> changes;
  std::string what;  // "two more workers", "one worker fewer, as sharded, ZeRO-1"
  Plan plan;         // all of its steps
  RunOutlook outlook;
};
/// Whole copies of the model are alike; else all degrees but the number of copies.
bool same_layout(const PlannedStrategy& a, const PlannedStrategy& b);
/// What the plan changes for people.
std::string what_changes(const Plan& now, const Plan& next);

struct RemedyQuestion {
  std::vector<std::vector<Change>> changes;
  Plan now;
  RunSoFar so_far;
  RunLimits limits;
  std::uint64_t seed = 1;
  /// The plan with the changes; nullopt: there is none, or it cannot run there.
  std::function<std::optional<PlanHere>(std::span<const Change>)> here;
};
/// Best first: by the probability to miss, of equal ones (to 2 %) the cheaper, without prices the
/// one of fewer workers, then the one that ends sooner; another layout has to gain a twentieth. A
/// look at all with few replications, then the best with more. Ends early, with what it has, where
/// it is told to stop.
std::vector<Remedy> remedies(const RemedyQuestion& question, const NetworkModel& network,
                             const std::stop_token& stop = {});

/// A limit is told to be missed from this probability on, and a remedy is one that at least halves
/// it.
inline constexpr double kMissedFrom = 0.2;  // probability
inline constexpr double kHelpsBy = 0.5;     // factor on that probability

}  // namespace reckon::planner
