#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/space/hardware_plan.h"
#include "planner/space/space.h"
#include "sim/accuracy/evidence/evidence.h"
#include "sim/forecast/forecast.h"
#include "sim/step/network/network.h"
#include "sim/step/step.h"

// One kind of hardware with everything that could run on it.
namespace reckon::planner {

/// Why candidates were left out, with how many; in the order of the words.
using Rejections = std::map<std::string, std::int64_t>;

/// What interrupts a job and what that takes, in seconds.
struct Interruptions {
  double every = std::numeric_limits<double>::infinity();  // mean time between two; infinite: never
  double interval = 0;           // of useful work between two saves; 0: there are none
  double save = 0, restart = 0;  // of a checkpoint; of an interruption, with the restore
  bool optimal = false;          // the interval is by Young and Daly, from `every`
};
/// Time over useful time, of so much work [Daly 2006, Eq. 20 over T_s]: with M the mean time to
/// interruption, t the work between two saves (without saves all of it), d a save and R a restart,
///   (M / t) exp(R / M) (exp((t + d) / M) - 1)
/// To first order 1 + d / t + (t / 2 + R) / M. Infinite where it hardly ever gets to a save.
double stretch_of(const Interruptions& by, double work_seconds);

/// A life outside its steps, at medians; to rank by, not to answer with.
struct Outside {
  double start_seconds = 0;  // from the request to the first step
  Interruptions on_demand, spot;
  double node_seconds = 0;  // of it: a node's provisioning
};
/// What a gang of so many nodes, bought so, lives through: reclaims are those of its spot nodes.
Interruptions interruptions_of(const Outside& outside, const Offer& offer, int nodes);

struct Site {
  Hardware hardware;
  std::vector<Offer> offers;                // undominated, dearest last
  std::vector<Split> splits;                // that fit in memory
  std::vector<Outside> outside;             // by nodes: of splits[k] at index nodes
  std::vector<PlanAssumption> assumptions;  // of the largest split; `set` is not kept
  int pools = 1;
  std::size_t worker = 0;              // index of the computing pool among the plan's
  std::vector<std::size_t> fallbacks;  // pools whose nodes come in place of the workers' own
  ShortageRules shortage;              // of spot nodes
  bool asynchronous = false;
  /// A spot node that is reclaimed so soon after it was asked for costs nothing (0: never), and
  /// what a new node needs before a job works on it: medians, where they are not assumed.
  Seconds free_within{}, image_pull{}, framework_start{};
  std::int64_t considered = 0;  // splits with and without memory enough, times all offers
  Rejections rejected;
  /// Of what does not fit in memory, the one that lacks the least of what it needs.
  std::optional<MemoryEstimate> closest;
  Diagnostics refused;  // why nothing can be planned on it
};

/// Mean seconds for which a request for spot nodes waits for a shortage to end, or for those that
/// then replace them; 0 where none are asked for.
double wait_for_spot(const Site& site, const Offer& offer, int nodes);

/// Everything on that hardware: prices of every place, splits by the question's freedom, memory,
/// one step of each by the step model that the forecast uses.
Site make_site(const Question& question, const Hardware& hardware, const Catalog& catalog,
               const NetworkModel& network);

/// Training to an accuracy by steps of more samples than any published run's: nobody knows whether
/// it is reached.
bool is_beyond_runs(const PlannedWorkload& job, std::int64_t global_batch);
/// Samples of one step that the question allows and that are not beyond the runs.
std::int64_t most_global_batch(const Question& question, const PlannedWorkload& job);

/// What splits are made from. The plan takes one after the other.
struct SplitSource {
  const Question& question;
  const Hardware& hardware;
  const NetworkModel& network;
  HardwarePlan& on;
  std::optional<MemoryEstimate>& closest;  // Site::closest
  bool takes_evidence = false;             // the question's, and the step model's factor is 1
};
/// Moves a split's step, as the step model has it, by what evidence says of it.
void move_by(Split& split, const Residual& residual);
/// Does it fit by the question's limits? If not, it may be the closest so far.
bool fits(const SplitSource& source, const MemoryEstimate& memory);
/// Kinds of strategy that the question allows on so many nodes of the hardware.
std::vector<StrategyKind> kinds_for(const SplitSource& source, int nodes);

/// Splits that fit in memory, with their step. Where the model is not cut, and where it is: every
/// layout that keeps the rules (sim/scenario/layout.h), of a workload that says its global batch.
std::vector<Split> whole_splits(const SplitSource& source, Rejections& rejected);
std::vector<Split> cut_splits(const SplitSource& source, Rejections& rejected);

/// Why a candidate was left out, where more than one file says so.
inline constexpr const char* kTooLittleMemory = "does not fit in memory";
inline constexpr const char* kOverQuota = "above the quota";
inline constexpr const char* kTooManyNodes = "more nodes than allowed";
inline constexpr const char* kForbidden = "only in regions that residency or carbon exclude";
inline constexpr const char* kBatchDoesNotDivide = "the global batch cannot be shared out evenly";
inline constexpr const char* kBatchTooLarge = "more samples a step than allowed";
inline constexpr const char* kBatchNeverReached =
    "more samples a step than any published run to the accuracy";

}  // namespace reckon::planner
