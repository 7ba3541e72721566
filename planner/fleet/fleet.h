#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/fleet/mip.h"
#include "planner/planner.h"

// A fleet plan: which pools to have for a list of jobs over a period, and which job runs where and
// when. Each job has options, a kind of node in one place bought in one way and how many of them,
// each with the forecast of that job alone in such a pool; a mixed-integer program
// (planner/fleet/mix.h) picks one of them and a start for each job. Then each pool is made a
// scenario with its jobs, which `simulate` replays: the difference is the program's error.
namespace reckon::planner {

/// A pool that could be had. It grows and shrinks with its jobs, and only what runs is paid; or its
/// nodes are held, and paid, for the whole period (pricing: reserved).
struct FleetPool {
  Hardware hardware;
  Offer offer;
  bool held = false;
  int most_held = 0;         // nodes of the reservation
  double held_usd_hour = 0;  // of one of them
  double fee_usd_hour = 0;   // of the pool's cluster
  std::string quota;         // key of the question's; "": none
  std::string agrees;        // what its jobs must have in common: precision, stack, storage
};

/// A way to run a job: what the forecast of it alone says.
struct FleetOption {
  std::size_t pool = 0;  // of Fleet::pools
  Split split;
  double seconds = 0;  // mean, from its start to its end
  double held_to = 0;  // seconds: the statistic that its deadline is held against
  double usd = 0;      // mean, without the cluster's fee and without held nodes
  std::string text;    // the scenario of the job alone in the pool
  int nodes() const { return split.nodes; }
};

struct FleetJob {
  std::string name;      // "night-3"
  std::size_t kind = 0;  // of Fleet::options: jobs that are submitted again share them
  double submit = 0;     // seconds
  std::optional<Limit> deadline;
};

/// The question as the program sees it.
struct Fleet {
  std::vector<FleetPool> pools;
  std::vector<std::vector<FleetOption>> options;  // by kind of job
  std::vector<FleetJob> jobs;
  double period = 0;  // seconds
  std::optional<Limit> budget;
  std::map<std::string, int> quota;  // accelerators
  bool by_time = false;              // least time of the last end, then least cost; else least cost
  // What a replay said that the forecasts of jobs alone did not:
  /// By job and option, the statistic that the deadline is held against, from the job's start.
  std::map<std::pair<std::size_t, std::size_t>, double> replayed_held_to;  // seconds
  /// The program's cost that the budget does for; nullopt: the budget itself.
  std::optional<double> program_budget;  // USD
};

/// What the program chose.
struct FleetChoice {
  struct Run {
    std::size_t option = 0;  // of the job's kind
    double start = 0;        // seconds
  };
  std::vector<Run> runs;  // by job
  std::vector<int> held;  // nodes, by pool
  double usd = 0;         // of the program: all jobs, held nodes and fees
  double end = 0;         // seconds, of the last job
};

/// One limit and what it does: the cost without it, or what it would have to be.
struct FleetLimit {
  std::string name;               // "quota", "deadlines", "budget", "period"
  std::optional<double> without;  // USD or seconds of the objective, if it were not there
  // In `unit`: the least that makes a plan fit, the others as they are.
  std::optional<double> needed;
  std::string unit;  // of `needed`: "USD", "s later", "accelerators more"
};

struct ReplayedJob {
  Quantiles seconds;   // from the user's submit to the end
  double held_to = 0;  // seconds: what the deadline is held against; without one the mean
  bool meets = true;
};
struct ReplayedPool {
  std::size_t pool = 0;
  int nodes = 0;  // at most at once
  std::string text;
  Forecast forecast;
  double held_usd = 0;  // of held nodes from the last end to the end of the period, mean
};
struct Replay {
  std::vector<ReplayedPool> pools;
  std::vector<ReplayedJob> jobs;  // as in the fleet
  Quantiles usd, end_seconds;
  bool meets_budget = true;
  double budget_held_to = 0;  // USD: the statistic that the budget is held against
  bool meets_all() const;
};

struct FleetAnswer {
  std::string scenario;
  Objective objective = Objective::cost;
  std::uint64_t seed = 1;
  int replications = 0, option_replications = 0;
  Fleet fleet;
  std::int64_t considered = 0;
  std::size_t columns = 0, rows = 0;  // of the program
  bool proven = true;                 // no choice is better, as the program sees it
  double bound = 0;                   // no choice costs less: USD; by time: seconds of the last end
  std::optional<FleetChoice> choice;  // none: no plan fits
  std::optional<Replay> replay;
  /// How often the program was solved again because a replay missed a limit. The choice is then the
  /// first whose replay meets all of them, or the very first where none was found.
  int solved_again = 0;
  std::vector<FleetLimit> limits;  // that bind; of none that fits: which would have to give way
  std::vector<std::string> without_plan;  // jobs that no offer can run, with why
};

/// Has the scenario several jobs?
bool is_fleet(const ScenarioFile& file);

struct FleetOptions {
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;
  int threads = 0;
};
Expected<FleetAnswer> plan_fleet(const Base& base, const Catalog& catalog,
                                 const NetworkModel& network, const FleetOptions& options);

/// The replayed scenario of one pool as a file: relative paths from `directory`.
std::string fleet_file(const FleetAnswer& answer, std::size_t replayed_pool,
                       std::string_view reckon_version);

}  // namespace reckon::planner
