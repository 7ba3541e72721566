#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/queue/snapshot/snapshot.h"

// "If I submit now, when does it start and end, and what does it wait for?"
namespace reckon {

/// The job that is submitted.
struct Submission {
  int gpus = 0;
  std::string accelerator;        // of the snapshot's names; "": any
  std::string user, team, queue;  // queue: see likely_queue()
  // As SnapshotJob's; nullopt: the lowest of those that wait, as of a new job.
  std::optional<double> priority;
  std::optional<Seconds> limit;  // that it asks for
  std::vector<Seconds> times;    // that it takes, each as likely as the next; at least one
  Seconds after{};               // it is submitted so long after the snapshot
};

struct StartQuantiles {
  double p5 = 0, p50 = 0, p95 = 0;  // seconds after the snapshot; infinite: it never comes to that
};

/// A job that held GPUs of the nodes which the submitted one got, until shortly before.
struct Blocker {
  std::size_t job = 0;  // of the snapshot
  double share = 0;     // of the replications
  bool waits = false;   // it waits as well now, and starts first
  StartQuantiles end;   // of those replications
};

struct StartForecast {
  int replications = 0;
  std::uint64_t seed = 1;
  StartQuantiles start, end;
  double at_once = 0;                // share of replications that start when it is submitted
  int nodes = 0;                     // that it gets: the median
  std::size_t ahead = 0;             // jobs that wait now and go before it
  StartQuantiles first;              // how many of them, or of later ones, start before it
  std::vector<Blocker> blockers;     // the most frequent first
  std::optional<std::string> never;  // why it cannot run, as a clause
};

/// Replications of the cluster from the snapshot on, until the submitted job has started (under
/// Kueue: ended). Lengths of the others are JobLengths; the submitted job's are its `times` in
/// turn. Where the snapshot has a history, later jobs come: recorded ones, each as likely as the
/// next, as a Poisson process with the recorded rate of the hour of the week, for the time that the
/// start takes without them times three and a day, two weeks at most. Draws are of (seed,
/// replication, purpose, job), so that two submissions see the same luck. Any number of threads
/// gives the same. Needs snapshot_problem() and submission_problem() to be nullopt.
StartForecast forecast_start(const ClusterSnapshot& snapshot, const Submission& mine,
                             int replications, std::uint64_t seed, int threads);

/// Why no start can be forecast from the snapshot, as a clause; nullopt: one can.
std::optional<std::string> snapshot_problem(const ClusterSnapshot& snapshot);
/// What is wrong with the submission: a queue that the cluster does not have.
std::optional<std::string> submission_problem(const ClusterSnapshot& snapshot,
                                              const Submission& mine);

/// The queue of a job that names none: that with the most GPUs of the accelerator that a job may
/// use; "": there are no queues.
std::string likely_queue(const ClusterSnapshot& snapshot, const std::string& accelerator);
/// All names of its queues.
std::vector<std::string> queues_of(const ClusterSnapshot& snapshot);
/// All names of accelerators of nodes that are up.
std::vector<std::string> accelerators_of(const ClusterSnapshot& snapshot);

}  // namespace reckon
