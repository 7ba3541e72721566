#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/queue/job_list.h"
#include "sim/scenario/spec/scheduler.h"

// A shared cluster at one moment: its nodes, what runs, and what waits.
namespace reckon {

struct SnapshotNode {
  std::string name;
  int gpus = 0;
  std::string accelerator;          // as the system calls it: "a100", "NVIDIA-A100-SXM4-80GB"; ""
  std::vector<std::string> queues;  // Slurm: its partitions; empty: all jobs may use it
  std::string pool;                 // Kueue: its flavor; a scenario: its pool
  bool usable = true;               // neither down nor drained nor cordoned
};

struct SnapshotJob {
  std::string id, user, team, queue;  // Slurm: account, partition; Kubernetes: namespace, queue
  int gpus = 0;
  std::string accelerator;                      // that it asks for; "": any
  double priority = 0;                          // of the system's own scale; the higher goes first
  std::int64_t submit = 0;                      // s since 1970
  std::optional<std::int64_t> start;            // it runs since; nullopt: it waits
  std::optional<Seconds> limit;                 // that it asked for
  std::vector<std::pair<std::string, int>> on;  // nodes that it holds, with their GPUs of it
};

enum class SnapshotSystem { slurm, kubernetes, kueue, scenario };

struct ClusterSnapshot {
  SnapshotSystem system = SnapshotSystem::slurm;
  std::int64_t at = 0;  // s since 1970
  /// Of a scenario and of Kueue. Slurm: jobs have their priorities; Kubernetes: in order of
  /// priority, and nobody has a reservation.
  SchedulerSpec scheduler;
  std::vector<SnapshotNode> nodes;
  std::vector<SnapshotJob> jobs;
  JobList history;                 // jobs that ended; empty: none are known
  std::vector<std::string> notes;  // what the files do not say, and what is taken instead
};

}  // namespace reckon
