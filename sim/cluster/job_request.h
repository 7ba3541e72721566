#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/cluster/notice.h"

// What a cluster needs to know of a job: which pods it asks for, from when on, and for how long. A
// job of a plan, of a recorded trace and of a queue are the same value, a few hundred bytes each.
namespace reckon {

inline constexpr std::int32_t kWholeGpu = 1000;  // thousandths of a GPU

/// What one pod asks for. Units as in Alibaba's cluster-trace-gpu-v2023: thousandths of a CPU and
/// of a GPU, MiB of memory. A GPU is any accelerator.
struct PodRequest {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  int gpus = 0;
  std::int32_t gpu_milli = 0;  // of each GPU: 1..1000, and 1000 where there are several; 0: no GPU
  std::string models;          // "V100M16|V100M32": one of these; "": any

  std::int64_t gpu_milli_in_all() const { return std::int64_t{gpus} * gpu_milli; }
  bool shares_a_gpu() const { return gpus == 1 && gpu_milli < kWholeGpu; }
  friend auto operator<=>(const PodRequest&, const PodRequest&) = default;
};
/// A pod that asks for so many whole GPUs, on whatever node has them; 0: for CPUs.
inline PodRequest pod_of_gpus(int gpus) {
  return {.gpus = gpus, .gpu_milli = gpus > 0 ? kWholeGpu : 0};
}

/// Work that takes as long as was recorded, on whichever nodes.
struct FixedTime {
  SimDuration time{};
  std::optional<SimDuration> limit{};  // what it asked for at most, if told
};

/// So many steps, at a rate that the kind of accelerator decides.
struct StepsByKind {
  std::int64_t steps = 0;
  std::vector<double> rates;  // steps per second, in the order of the cluster's kinds; 0: none
  friend bool operator==(const StepsByKind&, const StepsByKind&) = default;
};

/// A job's checkpoints on its own nodes, in front of those in the storage.
struct LocalTierPace {
  Seconds every{};             // useful work between two saves; 0: there is no such tier
  Seconds save{};              // training stands still
  Seconds write{};             // to peers or disks behind it, beside training
  Seconds restore{};           // of the whole job, from the tier
  bool outlives_node = false;  // the tier holds what one lost node held
};

/// How a synchronous job goes on when a part of it is lost.
struct RestartRules {
  RestartKind kind = RestartKind::full;
  Seconds regroup{};             // the communicators are made anew
  bool copies_hold_all = false;  // each data-parallel copy has all of the state
  int workers_of_a_copy = 1;     // they come and go together
  int least = 0;                 // elastic: workers, it trains on no fewer
};

/// What the step model tells of a training: everything is a constant between two events.
struct JobPace {
  std::int64_t steps = 0;
  /// Seconds of wall time an optimizer step's worth of samples takes, by number of live workers
  /// (index; [0] unused). Synchronous strategies only use the last: all workers or none. Elastic
  /// ones have 0 where the job cannot be so small.
  std::vector<Seconds> step_by_workers;
  double input_share = 0;      // of step time: exposed waiting for input (badput data_loading)
  Seconds evaluation{};        // total of all evaluation passes, spread evenly over the run
  Seconds checkpoint_save{};   // training stands still
  Seconds checkpoint_write{};  // behind it, beside training; 0: saves are blocking
  int checkpoint_writers = 1;  // nodes that save side by side
  Seconds checkpoint_restore{};
  double step_factor = 1;         // of this job, besides LifeOptions' on every step
  Seconds checkpoint_interval{};  // useful work between two saves; 0: none are made
  Bytes checkpoint_size{};        // kept in storage from submit to finish
  Bytes data_a_step{};            // read from a bucket in another region
  Bytes gradients_a_step{};       // that cross from a zone to another, both ways together
  LocalTierPace local;
  Seconds peer_restore{};  // all state of one node, from the memory of another's processes
};

/// Whose job it is and where it waits, as numbers of a list of names (sim/queue/job_list.h).
struct JobOwner {
  static constexpr std::int32_t kNotSaid = -1;
  std::int32_t user = kNotSaid, team = kNotSaid;  // Slurm: user and account
  std::int32_t queue = kNotSaid;                  // Slurm: partition; Kueue: ClusterQueue
  std::int32_t qos = kNotSaid;                    // of Slurm
  std::int32_t priority = 0;                      // of Kueue: the higher goes first
  std::int32_t topology = kNotSaid;               // of Kueue: the level within one domain of which
  bool topology_required = false;                 // it must stand, or should
  std::optional<bool> do_not_disrupt{};           // of its pods; not given: as Karpenter has it
  std::int32_t resource = kNotSaid;               // devices that GPUs are cut into; else whole GPUs
  friend bool operator==(const JobOwner&, const JobOwner&) = default;
};

struct JobRequest {
  static constexpr std::int32_t kAlikeEverywhere = -1;
  SimTime submit{};
  int workers = 1;          // pods that compute; all of them are needed before it starts
  PodRequest worker;        // what each asks for
  int server_nodes = 0;     // nodes for its parameter servers
  bool synchronous = true;  // it stands still without one of its workers
  std::variant<FixedTime, StepsByKind, JobPace> work;
  ProgramOnNotice on_notice;
  RestartRules restart;
  JobOwner owner;
  double devices_of_gpu = 1;             // so many of what it asks for would take a whole GPU
  std::int32_t pace = kAlikeEverywhere;  // of its list: how fast it is where (sim/queue)
  int line = 0;                          // of the list that it was read from; 0: of none

  int gpus() const { return workers * worker.gpus; }
  /// GPUs that it holds, of which devices are parts.
  double whole_gpus() const { return double(gpus()) / devices_of_gpu; }
};

/// A recorded job: its list says how many GPUs it had, not in how many pods.
inline JobRequest recorded_job(SimTime submit, SimDuration time, int gpus,
                               std::optional<SimDuration> limit = {}, int line = 0) {
  return {
      .submit = submit, .worker = pod_of_gpus(gpus), .work = FixedTime{time, limit}, .line = line};
}

/// A job of a plan, at the pace that the step model gives it.
JobRequest request_of(const PlannedWorkload& job, JobPace pace);

}  // namespace reckon
