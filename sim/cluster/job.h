#pragma once
#include <cstdint>
#include <vector>

#include "sim/cluster/ledger.h"
#include "sim/cluster/life/life.h"
#include "sim/cluster/notice.h"
#include "sim/cluster/placement.h"
#include "sim/cluster/progress.h"
#include "sim/cluster/restart.h"
#include "sim/scenario/restart.h"

// The job as the life sees it: its phase, how far it has come, and the Kubernetes Job's rules for
// trying again.
namespace reckon {

enum class JobPhase : std::uint8_t {
  unsubmitted,
  queued,        // waits for its gang
  initializing,  // image, framework, compilation, then restore
  running,       // trains and saves
  evacuating,    // makes the checkpoint that a notice left time for
  hung,          // a node failed and nobody knows: all wait for it in a collective
  backoff,       // waits to be tried again
  done
};

/// What an asynchronous or elastic job's workers do while it runs; all of another one's are live.
struct WorkerShares {
  int live = 0, joining = 0, provisioning = 0, waiting = 0;
  friend bool operator==(const WorkerShares&, const WorkerShares&) = default;
};

/// A node under notice for which an emergency checkpoint is being made.
struct Evacuation {
  std::uint32_t node = 0;
  Interruption cause{};
};

/// Delay before try k + 1 after k counted failures: base, twice that, ... at most cap [Kubernetes
/// Job].
SimDuration retry_delay(const RetryRules& rules, int failures);

/// What the job has of a pool.
struct Holding {
  int held = 0;              // nodes
  int workers_to_place = 0;  // of the job's share of the pool; a fallback has none of its own
};

struct Job {
  Job(const PlannedCluster& cluster, std::uint32_t index, const JobRequest& request,
      const LifeFactors& factors);

  // constant
  std::uint32_t index = 0;  // among the requests
  std::int64_t steps = 0;   // 1 of fixed time
  Bytes checkpoint_size{}, data_a_step{}, gradients_a_step{};
  Placement placement;
  SimTime submit{};
  int workers = 1;
  int accelerators_per_worker = 1;
  bool synchronous = true;
  CheckpointCycle cycle;
  NoticeRules notice;  // its save: of the moment
  SimDuration image_pull{}, start_up{}, restore{};
  RestartRules restart_rules;
  LocalTierPace local;       // of its checkpoints on the nodes
  bool keeps_state = false;  // processes that are left when a node goes hold all of it
  SimDuration regroup{}, peer_restore{}, local_restore{};
  double straggler_share = 0;  // of the work, less what waits for input
  std::vector<double> speed;   // factors by live workers; 1: as all of them
  double input_share = 0;      // of the work

  // state
  JobPhase phase = JobPhase::unsubmitted;
  SimTime banked{};  // up to here the ledger knows
  Progress progress;
  WorkerShares shares;
  Badput queue_cause = Badput::waiting;
  SimTime phase_began{};
  SimDuration init_time{};    // of the present start; what follows is the restore
  SimDuration active_time{};  // on nodes, up to phase changes before active_since
  SimTime active_since{};
  bool chief_placed = false;
  bool started = false;           // its gang was complete once
  std::vector<Holding> holdings;  // by pool
  TimeLedger time;
  JobOutcome outcome;
  int interruptions = 0;                  // of the job as a whole
  int emergency_saves = 0, restores = 0;  // to and from the storage
  int failures = 0;                       // those that count against the backoff limit
  Kept kept = Kept::storage;              // by whom its state is, while it does not train
  bool tried_smaller = false;             // elastic: it has waited long enough for its whole gang
  bool growing = false;                   // elastic: it saves in order to grow
  std::vector<std::uint32_t> cold_nodes;
  std::vector<std::uint32_t> new_nodes;  // not of a full restart: their processes have to start
  std::vector<Evacuation> evacuated;

  int accelerators_of(int some_workers) const { return some_workers * accelerators_per_worker; }
  int accelerators() const { return accelerators_of(workers); }
  bool submitted() const { return phase != JobPhase::unsubmitted; }
  bool done() const { return phase == JobPhase::done; }
  bool wants_nodes() const { return submitted() && !done(); }
  bool active() const {
    return phase == JobPhase::initializing || phase == JobPhase::running ||
           phase == JobPhase::evacuating || phase == JobPhase::hung;
  }
  /// The pool that the pool's nodes are for: itself, or the pool whose fallback it is.
  std::size_t home(std::size_t pool) const {
    return placement.pools[pool].fallback_for.value_or(pool);
  }
  /// What it needs of the pool, or of the pool whose fallback this is.
  const PoolShare& share(std::size_t pool) const { return placement.pools[home(pool)]; }
  /// Nodes that the job does not have yet of the share of a pool that is no fallback; those of its
  /// fallbacks count.
  int not_held(std::size_t home) const {
    const PoolShare& share = placement.pools[home];
    int nodes = share.nodes - holdings[home].held;
    for (const std::size_t other : share.fallbacks) nodes -= holdings[other].held;
    return nodes;
  }
  /// All of its gang is placed.
  bool is_complete() const {
    for (std::size_t p = 0; p < holdings.size(); ++p)
      if (!placement.pools[p].fallback_for && not_held(p) != 0) return false;
    return true;
  }
  bool is_elastic() const { return restart_rules.kind == RestartKind::elastic; }
  bool goes_on_with_fewer() const { return !synchronous || is_elastic(); }
  bool keeps_processes() const { return restart_rules.kind != RestartKind::full; }
  /// Elastic: workers whose processes have started and that can train together; 0: too few.
  int usable_workers() const {
    int there = workers - shares.joining;
    for (const Holding& holding : holdings) there -= holding.workers_to_place;
    const int each = restart_rules.workers_of_a_copy;
    for (int n = reckon::usable_workers(there, each, restart_rules.least); n > 0;
         n = reckon::usable_workers(n - each, each, restart_rules.least))
      if (speed[static_cast<std::size_t>(n)] > 0) return n;  // 0: it does not fit into memory
    return 0;
  }
  /// Has it the nodes that it needs to start?
  bool can_start() const {
    if (!is_elastic()) return is_complete();
    return usable_workers() > 0 && (started || tried_smaller || is_complete());
  }
  /// Nodes of the share that it still needs.
  int lacks(std::size_t pool) const { return wants_nodes() ? not_held(home(pool)) : 0; }
  /// Time in which the job ran on its nodes, up to `now`.
  SimDuration active_until(SimTime now) const {
    return active() ? active_time + (now - active_since) : active_time;
  }
  double pace() const { return speed[static_cast<std::size_t>(shares.live)]; }
};

}  // namespace reckon
