#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/queue/backfill/queue_rules.h"
#include "sim/queue/queue_question.h"
#include "sim/queue/snapshot/start_forecast.h"

// Inside sim/queue/snapshot: a snapshot and the job that is submitted, as a scheduler takes them.
namespace reckon {

class SnapshotCase {
 public:
  SnapshotCase(const ClusterSnapshot& snapshot, const Submission& mine);

  /// Jobs of the snapshot that count, then the submitted one; lengths are those of none.
  const JobList& jobs() const { return jobs_; }
  std::size_t mine() const { return jobs_.jobs.size() - 1; }
  const ClusterSnapshot& snapshot() const { return snapshot_; }
  const SnapshotJob& recorded(std::size_t job) const { return snapshot_.jobs[of_snapshot_[job]]; }
  std::size_t index_of_recorded(std::size_t job) const { return of_snapshot_[job]; }
  bool runs(std::size_t job) const { return recorded(job).start.has_value(); }
  std::size_t ahead() const;

  /// Of a job of the history, in `list`, which begins with jobs(); false: it has no queue here.
  bool add_later(JobList& list, SimTime submit, const JobRequest& job) const;

  /// Schedules `list`, which begins with jobs().
  QueueRun run(const JobList& list, std::vector<Holding>& holdings) const;
  /// Why the submitted job cannot run, as a clause.
  std::string why_never() const;

 private:
  void make_nodes();
  void make_question();
  void add(std::size_t job);
  std::vector<NodePart> parts_of(const SnapshotJob& job);
  void place_running();
  CellSet cells_of_pool(const std::string& pool) const;
  CellSet cells_of(const std::string& queue, const std::string& accelerator) const;
  bool has_priorities() const;

  const ClusterSnapshot& snapshot_;
  Submission mine_;
  QueueQuestion question_;              // without its jobs
  std::vector<int> node_;               // by node of the snapshot: of the groups; -1: not usable
  std::vector<int> left_;               // by node of the groups: GPUs that no running job holds
  std::vector<std::size_t> cell_like_;  // by cell: a node of the snapshot
  JobList jobs_;
  std::vector<std::size_t> of_snapshot_;  // by job but the submitted one
  std::vector<double> priorities_;        // by job, as SnapshotJob::priority
  std::vector<RunningJob> running_;
};

}  // namespace reckon
