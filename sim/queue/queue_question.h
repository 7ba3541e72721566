#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/arrivals.h"
#include "sim/queue/fifo.h"
#include "sim/queue/karpenter/karpenter_run.h"
#include "sim/queue/multifactor/multifactor.h"
#include "sim/queue/pace/own_jobs.h"
#include "sim/queue/queue_costs.h"
#include "sim/scenario/spec/scheduler.h"

// Jobs with a length that share a cluster, recorded or drawn, and who schedules them.
namespace reckon {

struct DrawnJobs {
  ArrivalsSpec arrivals;
  WeekProfile profile{};
  std::int64_t begins = 0;          // seconds since 1970
  std::vector<ClassPaces> paces{};  // by class
};

struct QueueQuestion {
  std::vector<NodeGroup> groups;
  std::vector<std::string> group_names;  // of their pools, for people
  std::vector<NodeRates> rates;          // of a node, by group
  std::optional<double> overflow_rate;   // USD per second of a node of the overflow, if known
  std::vector<std::string> pools;        // names by cell, where pools are told apart
  int nodes_per_leaf = 0;                // of the network; 0: one leaf has all
  PartitionCells partitions;             // of policy slurm
  SchedulerSpec scheduler;
  JobList list;  // recorded; empty with
  std::optional<DrawnJobs> drawn;
  std::size_t running = 0;  // jobs at the head of a recorded list that are not measured
  std::optional<KarpenterMarket> karpenter;  // it makes all nodes; `groups` has none
};

/// Of jobs that ask for devices, how many of them a GPU has: as the groups say.
void set_devices(JobList& list, std::span<const NodeGroup> groups);
/// By job, where it may stand: nodes with what it asks for, of pools on which it runs. Empty: all
/// jobs may stand everywhere.
std::vector<CellSet> cells_of_jobs(const QueueQuestion& question, const JobList& list);

/// The jobs of one replication.
JobList jobs_of(const QueueQuestion& question, std::uint64_t seed, std::uint32_t replication);

/// `measured`: of the jobs behind those that are not.
QueueRun run_queue(const QueueQuestion& question, const JobList& list, std::size_t first_measured,
                   std::size_t measured, const RunOptions& options = {});
/// Of drawn jobs the first that was submitted behind the warm-up.
std::size_t first_measured(const QueueQuestion& question, const JobList& list);

/// Why each of `jobs` can never run, as a clause; "": it can.
std::vector<std::string> why_never(const QueueQuestion& question, const JobList& list,
                                   std::span<const std::size_t> jobs);

/// "3 of the jobs can never run; the first, line 7 of the list, asks for 64 GPUs: the cluster has
/// 32"; nullopt: all can.
std::optional<std::string> note_of_never(const QueueQuestion& question, const JobList& list,
                                         const std::vector<std::size_t>& never);

/// "team 'intern' is no account of Slurm, so it has a share of 1; did you mean 'interns'?" of the
/// first such team, where accounts are listed; nullopt: there is none.
std::optional<std::string> note_of_accounts(const QueueQuestion& question, const JobList& list);

}  // namespace reckon
