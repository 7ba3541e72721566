#pragma once
#include <span>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/queue/backfill/backfill.h"
#include "sim/queue/job_list.h"
#include "sim/queue/multifactor/fair_share.h"
#include "sim/scenario/spec/scheduler.h"

// Slurm: priority/multifactor with sched/backfill, partitions, and the limits of QOS and accounts.
namespace reckon {

/// Cells of the nodes (NodeGroup::cell) by partition.
struct PartitionCells {
  std::vector<CellSet> of_partition;  // in order of SlurmSpec::partitions; one, if it has none
};

/// A job's priority (https://slurm.schedmd.com/priority_multifactor.html) is the whole part of the
/// sum of weights times factors in 0..1: age = time waited over PriorityMaxAge; fair-share
/// (fair_share.h) of its user; size = its GPUs over the cluster's, or with PriorityFavorSmall what
/// is left of 1, so that one GPU has 1; partition and QOS = their priority over the highest. It is
/// calculated when the job comes and each PriorityCalcPeriod, as of a multiple of it.
/// Limits (https://slurm.schedmd.com/resource_limits.html): a job over one of its QOS (GrpTRES,
/// GrpJobs, MaxTRESPerUser, MaxJobsPerUser, MaxTRESPerAccount, MaxJobsPerAccount) or of an account
/// above it (GrpTRES, GrpJobs) waits and blocks nobody; one that is over MaxTRESPerJob,
/// MaxWallDurationPerJob, its partition's MaxTime or one of the others by itself never runs.
/// Preemption (https://slurm.schedmd.com/preempt.html, PreemptType=preempt/qos): a job requeues or
/// cancels jobs of the QOS that its own lists under Preempt, by the PreemptMode of their QOS or of
/// the cluster, once they ran for PreemptExemptTime; the lowest QOS priority first, then the fewest
/// GPUs (plugins/preempt/qos, _gen_job_prio(), of nodes), or with preempt_youngest_first who
/// started last. Who has a GraceTime goes on so long, and the job waits for it. A requeued job
/// keeps its age here. PreemptMode SUSPEND is refused: it releases no GRES (slurm.conf(5)). Not
/// modelled: reservations, TRES but GPUs, DenyOnLimit, Grp*Mins.
class MultifactorRules : public QueueRules {
 public:
  /// The queue, QOS, team and user of a job are its partition, QOS, account and user; a QOS or an
  /// account that `slurm` does not list has no limits, priority 0 and one share. `gpus`: of the
  /// cluster. Needs known partitions (unknown_partitions).
  MultifactorRules(const JobList& list, const SlurmSpec& slurm, const PartitionCells& cells,
                   int gpus);

  double priority(std::size_t job, SimTime now) override;  // Slurm's priority points
  /// Of the same user and account, QOS and size, partition and QOS factors: the older first.
  std::size_t group(std::size_t job) const override { return claims_[job].group; }
  std::optional<SimTime> recalculates(SimTime now) override;
  CellSet cells(std::size_t job) const override;
  bool may_start(std::size_t job) const override;
  std::size_t depth() const override { return static_cast<std::size_t>(slurm_.bf_max_job_test); }
  void started(std::size_t job, SimTime now) override { count(job, now, 1); }
  void ended(std::size_t job, SimTime now) override { count(job, now, -1); }
  std::optional<std::string> never(std::size_t job) const override;
  bool preempts() const override { return preempts_; }
  bool may_preempt(std::size_t job, std::size_t running) const override;
  double worth(std::size_t running) const override;  // priority of the QOS, then GPUs
  SimTime exempt_until(std::size_t running, SimTime since) const override;
  SimDuration kept(SimDuration done) const override;
  SimDuration grace(std::size_t running) const override;
  bool cancels(std::size_t running) const override;
  SimDuration requeue_delay() const override { return to_clock(slurm_.requeue_delay); }

 private:
  struct InUse {
    int jobs = 0, gpus = 0;
  };
  struct Claim {
    std::int32_t node = 0;  // of the user below its account
    std::int32_t partition = 0, qos = JobOwner::kNotSaid;
    std::int32_t of_user = 0, of_account = 0;  // in qos_users_ and qos_accounts_
    double constant = 0;  // priority points of size, partition and QOS, weighted
    std::uint32_t group = 0;
  };
  void make_tree();
  int account_node(std::int32_t team);
  void make_claims(int gpus);
  void calculate_factors(SimTime at);
  void count(std::size_t job, SimTime now, int jobs);

  const JobList& list_;
  const SlurmSpec& slurm_;
  PartitionCells cells_;
  ShareTree tree_;
  std::vector<int> spec_of_node_;                // index of SlurmSpec::accounts; -1: none
  std::vector<int> node_of_team_;                // by team + 1
  std::vector<DecayedUsage> usage_;              // by node, of users
  std::vector<double> factors_;                  // by node
  std::vector<InUse> account_use_;               // by node
  std::vector<InUse> qos_use_;                   // by QOS of SlurmSpec
  std::vector<InUse> qos_users_, qos_accounts_;  // of each pair
  std::vector<Claim> claims_;                    // by job
  SimTime calculated_{};
  bool preempts_ = false;                        // does any QOS?
  std::vector<std::vector<char>> qos_preempts_;  // by QOS, and QOS of the running job
};

/// Partitions that jobs name and `slurm` does not have.
std::vector<std::string> unknown_partitions(const JobList& list, const SlurmSpec& slurm);

}  // namespace reckon
