#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/money.h"
#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/cluster/job_request.h"
#include "sim/scenario/plan.h"

// One life of the cluster: from the first submit to the last finish and the nodes' end, on an
// integer-nanosecond clock.
namespace reckon {

enum class Badput {
  provisioning,
  waiting,
  initialization,
  data_loading,
  checkpoint_save,
  checkpoint_restore,
  lost_work,
  stragglers
};
inline constexpr std::size_t kBadputCauses = 8;
constexpr auto words_of(Badput) {
  return std::array{Word<Badput>{"provisioning", Badput::provisioning},
                    Word<Badput>{"waiting", Badput::waiting},
                    Word<Badput>{"initialization", Badput::initialization},
                    Word<Badput>{"data_loading", Badput::data_loading},
                    Word<Badput>{"checkpoint_save", Badput::checkpoint_save},
                    Word<Badput>{"checkpoint_restore", Badput::checkpoint_restore},
                    Word<Badput>{"lost_work", Badput::lost_work},
                    Word<Badput>{"stragglers", Badput::stragglers}};
}

enum class Interruption { preemption, maintenance, failure };
inline constexpr std::size_t kInterruptionCauses = 3;
constexpr auto words_of(Interruption) {
  return std::array{Word<Interruption>{"preemption", Interruption::preemption},
                    Word<Interruption>{"maintenance", Interruption::maintenance},
                    Word<Interruption>{"failure", Interruption::failure}};
}

enum class CostPart { accelerators, machines, storage, network, management, idle, spares };
inline constexpr std::size_t kCostParts = 7;
constexpr auto words_of(CostPart) {
  return std::array{Word<CostPart>{"accelerators", CostPart::accelerators},
                    Word<CostPart>{"machines", CostPart::machines},
                    Word<CostPart>{"storage", CostPart::storage},
                    Word<CostPart>{"network", CostPart::network},
                    Word<CostPart>{"management", CostPart::management},
                    Word<CostPart>{"idle", CostPart::idle},
                    Word<CostPart>{"spares", CostPart::spares}};
}

/// A stretch of time of the one replication that was asked to be recorded.
struct Span {
  std::string name;      // "step", "checkpoint_save", "provisioning", ...
  std::string category;  // "goodput", a Badput, "node"
  int pool = -1;         // -1: a job
  int node = -1;         // slot in the pool; of several jobs the job's index
  SimTime begin{}, end{};
};
struct Mark {
  std::string name;
  int pool = -1;
  int node = -1;
  SimTime at{};
};
struct Timeline {
  std::vector<Span> spans;
  std::vector<Mark> marks;
};

/// One factor by which this replication differs from the plan's medians (drawn by the forecast).
struct LifeFactors {
  double step_time = 1;  // factor on every step
};

struct JobOutcome {
  bool finished = false;  // false: given up (backoff limit, or the horizon)
  std::string failure;    // why, when not finished
  SimTime submit{}, finish{};
  SimDuration queued{};  // from the submit until its gang was first complete
  std::int64_t steps_done = 0;
  AcceleratorTime total;  // its accelerators x (finish - submit)
  /// Spot notices that reached it while it ran and could not go on without the node, and those of
  /// them after which a checkpoint of the whole gang was made in time (sim/cluster/notice.h).
  std::int64_t notices = 0, notices_in_time = 0;
  /// Elastic: accelerator time of training with fewer workers than planned, and how often it grew
  /// back.
  AcceleratorTime smaller;
  std::int64_t growths = 0;
};

/// Node-nanoseconds. 65,536 nodes have 2e22 of them in ten years; the clock's 64 bits hold 9e18.
struct NodeTime {
  Int128 n = 0;
  friend constexpr bool operator==(NodeTime, NodeTime) = default;
  constexpr NodeTime& operator+=(SimDuration d) {
    n = checked_add(n, d.count(), "node time");
    return *this;
  }
};
constexpr Seconds to_seconds(NodeTime t) { return Seconds{double(t.n) * 1e-9}; }

struct LifeResult {
  bool finished = false;  // all jobs did
  std::string failure;    // why, when not finished: of the first that did not
  SimTime finish{};       // of the last job: the forecast's time
  std::int64_t steps_done = 0;
  std::vector<JobOutcome> jobs;  // in the order of the requests
  AcceleratorTime goodput;
  std::array<AcceleratorTime, kBadputCauses> badput{};
  /// Over all jobs: the strategy's accelerators x (finish - submit) == goodput
  /// + sum of badput, exactly. Synchronous: all of them do the same at any
  /// time. Asynchronous: a missing worker's are accounted by what it waits for.
  AcceleratorTime total;
  /// machines, accelerators: while the job ran on the node (initialising, training, saving,
  /// restoring); spares: while it stood by for a job with warm spares; idle: all the rest of a
  /// lease.
  std::array<NanoUsd, kCostParts> cost{};
  NanoUsd bill;  // == sum of cost == sum over leases + fee + storage, exactly
  std::array<std::int64_t, kInterruptionCauses> interruptions{};  // nodes lost by the running job
  std::vector<NodeTime> node_time;                                // by pool, billed
  std::vector<NodeTime> reserved_time;  // by pool, of it at a reservation's price
  /// By pool: its block's machines went before the last job was done.
  std::vector<bool> outlived;
  std::uint64_t events = 0;
  std::uint64_t digest = 0;  // FNV-1a over (time, kind, entity) of every event: for golden tests
  Timeline timeline;         // empty unless recorded
  LifeFactors factors;       // as they were given
};

struct LifeOptions {
  std::uint64_t seed = 1;
  std::uint32_t replication = 0;
  bool record = false;
  LifeFactors factors;
  Seconds horizon = std::chrono::hours(24 * 365 * 3);  // from the last submit; a life is cut there
};

/// The main loop: see life.cpp. Pure: the same arguments give the same result, digit for digit. A
/// request has fixed time or a pace (checked); of its pods the GPUs count, and which pools they
/// fit (placement.h).
///
/// Several jobs share the nodes, first submitted first served: a free node goes
/// to the earliest job that still lacks one of its pool, and stays with it
/// until the gang is complete; what comes later takes what the earlier ones do
/// not need, and nobody is evicted.
LifeResult simulate_life(const PlannedCluster& cluster, std::span<const JobRequest> jobs,
                         const LifeOptions& options);
inline LifeResult simulate_life(const PlannedCluster& cluster, const JobRequest& job,
                                const LifeOptions& options) {
  return simulate_life(cluster, std::span<const JobRequest>(&job, 1), options);
}

/// Optimal time between checkpoints [Daly 2006, Eq. 37; Young 1974 to first order]: work between
/// the ends of two saves. save: time of one save; mtti: mean time to interruption of the whole job.
/// mtti <= 0 (never): returns 0.
Seconds optimal_checkpoint_interval(Seconds save, Seconds mtti);

/// Mean time to interruption of the job, all causes that apply; infinite (Seconds::max()) where
/// none does.
Seconds mean_time_to_interruption(const Plan& plan, const PlannedWorkload& job);

}  // namespace reckon
