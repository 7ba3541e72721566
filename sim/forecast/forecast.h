#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/limits.h"
#include "sim/cluster/life/life.h"
#include "sim/forecast/energy.h"
#include "sim/forecast/prices.h"
#include "sim/forecast/purchases.h"
#include "sim/forecast/quantiles.h"
#include "sim/forecast/rates.h"
#include "sim/scenario/plan.h"
#include "sim/step/servers/delayed_updates.h"
#include "sim/step/step.h"

// From a plan to an answer with its uncertainty: N replications of the cluster, each with its own
// draws, and what they say.
namespace reckon {

struct ServingForecast;  // sim/serving/serving.h

/// How a job goes on after a loss, where its plan says so, or has checkpoints on its nodes.
struct RestartForecast {
  RestartKind kind = RestartKind::full;
  int spares = 0;            // nodes that stand by
  int min_workers = 0;       // elastic
  bool keeps_state = false;  // processes that are left when a node goes hold all of the work
  std::optional<PlannedLocalCheckpoint> local;
  double smaller = 0;  // elastic: share of the accelerator time with fewer workers
  double growths = 0;  // of a mean run, a count
};

/// What a job does when the provider says that it takes a spot node back, and how often a
/// checkpoint of all its nodes is made in time.
struct NoticeForecast {
  OnNotice policy = OnNotice::save;
  bool stated = false;       // by the scenario; else it follows from the program
  bool own_program = false;  // a container of the user's
  Seconds notice{};          // 0: the provider gives none
  Seconds save{};            // of all nodes, at the medians
  double probability = 0;    // that the save fits into the notice, at the medians
  double notices = 0;        // of a mean run, a count, to the job while it runs
  double in_time = 0;        // of them, a count: those after which no work was lost
};

struct AssumptionEffect {
  std::string what, value, source;  // value: "3 min 30 s (3 min .. 4 min)"
  double time_effect_seconds =
      0;  // mean time at its high end minus at its low end (signed by the larger half)
  std::optional<double> cost_effect_usd;
  std::string key, unit;                 // PlanAssumption's
  double median = 0, low = 0, high = 0;  // in `unit`; 5th and 95th percentile
  /// The same effect by what it falls on; what has none is left out. Time: "training" (steps that
  /// were kept, with their waits for data), the other causes of badput; of one step:
  /// "step.compute",
  /// ... (StepParts), there with all other numbers at their medians. Of several jobs each has its
  /// own: "jobs.NAME.step.compute".
  std::map<std::string, double> effects_seconds;
  std::map<std::string, double> effects_usd;  // by CostPart
};

/// One of the jobs that share the cluster. Times are since the first job's
/// submit, so the last finish is the forecast's time.
struct JobForecast {
  std::string name;
  Seconds submit{};
  StepEstimate step;
  MemoryEstimate memory;
  std::int64_t steps = 0;
  std::optional<DelayedLength> delayed;  // of asynchronous training to an accuracy: in `steps`
  int accelerators = 0;
  Seconds checkpoint_interval{};            // of useful work; 0: none are made
  std::optional<RestartForecast> restart;   // nullopt: the plan says nothing of it
  std::optional<NoticeForecast> on_notice;  // nullopt: no spot node, or no checkpoints
  Quantiles queued_seconds;                 // from its submit until it first had all its nodes
  Quantiles time_seconds;                   // from its submit to its end
  Quantiles finish_seconds;
  double unfinished_share = 0;
};

struct Forecast {
  std::string scenario;
  std::string engine{kNoEngine};  // who answered for the network (StepEstimate::engine)
  std::uint64_t seed = 1;
  int replications = 0;
  bool feasible = true;
  // Of several jobs: time, cost, goodput, badput and interruptions are those of
  // all of them together; step, steps, accelerators, memory and checkpoint
  // interval those of the first.
  std::vector<JobForecast> jobs;  // in the order of the plan
  StepEstimate step;
  std::int64_t steps = 0;
  int accelerators = 0;
  std::int64_t tokens_per_sample = 0;  // tokens_per_sample()
  MemoryEstimate memory;
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;                       // nullopt: a price is unknown
  std::vector<std::pair<std::string, double>> node_hours;  // by pool, mean
  std::array<double, kCostParts> cost_breakdown_usd{};     // means; they add up to cost_usd->mean
  std::vector<PriceForecast> prices;                       // empty: a price is unknown
  std::vector<PurchaseForecast> purchases;                 // bought beforehand
  std::optional<double> cost_at_medians_usd;               // mean, every price at its median
  std::optional<RunRates> rates;                           // nullopt: a price is unknown
  std::optional<EnergyForecast> energy;        // nullopt: an accelerator's power is not printed
  Quantiles goodput;                           // fraction of the job's accelerator time
  Quantiles lost_work_seconds;                 // done, and done again: of a whole gang
  std::array<double, kBadputCauses> badput{};  // shares, means; goodput.mean + all of them = 1
  std::array<double, kInterruptionCauses> interruptions{};  // counts, means of a run
  Quantiles interruptions_total;
  Seconds checkpoint_interval{};
  double unfinished_share = 0;  // replications that never finished
  std::string unfinished_reason;
  std::string prices_as_of, catalog_digest;
  std::vector<std::string> calibrations;
  std::vector<AssumptionEffect> assumptions;  // largest effect first
  std::optional<StepEvidence> evidence;       // the plan's
  std::vector<std::string> warnings;
  bool extrapolated = false;
  std::vector<double> times_seconds;  // by replication; infinite: it never finished
  std::vector<double> costs_usd;      // by replication; empty: a price is unknown
  std::vector<double> step_factors;   // by replication: a step's time over the medians'
  std::vector<double> start_seconds;  // by replication: of the first start, without steps
};

struct ForecastOptions {
  std::optional<int> replications;  // the plan's otherwise
  std::optional<std::uint64_t> seed;
  int threads = 0;  // 0: one a core
  bool assumption_effects =
      true;  // costs two more forecasts with few replications for each assumption
  std::function<void(double)> progress;  // share done, called from one thread at a time
  WorkLimits limits = work_limits();     // what takes more is refused before it begins
};

/// Errors: TooMuchWork, before any life; Overflow where a number of the plan leaves its range.
Forecast make_forecast(const Plan& plan, const NetworkModel& network,
                       const ForecastOptions& options = {});
/// The recorded life of one replication, for --trace.
LifeResult record_replication(const Plan& plan, const NetworkModel& network, std::uint64_t seed,
                              std::uint32_t replication);

struct ExpectationResult {
  std::string text;
  std::optional<double> value;  // of the expectation's metric, in Expectation::value's unit
  bool passed = false;
  std::string reason;
};
/// value nullopt: it cannot be said (a cost with unknown prices), which fails.
ExpectationResult evaluate(const Expectation& expectation, const Forecast& forecast);
/// Of a serving block: expectations that are about it (is_of_serving).
ExpectationResult evaluate(const Expectation& expectation, const ServingForecast& forecast);

}  // namespace reckon
