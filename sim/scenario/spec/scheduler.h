#pragma once
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/unit_text.h"
#include "sim/base/words.h"
#include "sim/scenario/spec/time_law.h"

// `cluster.scheduler:` as written, in the words of the real system: who chooses among jobs that
// share a cluster.
namespace reckon {

/// How a cluster chooses among the jobs that wait, or among nodes for the one job.
enum class SchedulingPolicy {
  fifo,              // in order of arrival, nobody overtakes
  easy_backfill,     // later ones start where they do not delay the first
  sjf,               // the shortest first, with backfill
  srtf,              // the shortest remaining time first; running jobs are suspended for it
  las,               // the least attained service first, likewise
  slurm,             // multifactor priority, limits and backfill
  kueue,             // quotas of ClusterQueues
  kubernetes,        // priorities and preemption of kube-scheduler
  fifo_perf,         // Gavel's performance-aware FIFO, in rounds
  max_min_fairness,  // its allocations by linear programs; _perf: aware of the kinds' throughputs
  max_min_fairness_perf,
  max_min_fairness_water_filling_perf,
  finish_time_fairness,
  finish_time_fairness_perf,
  min_total_duration,
  min_total_duration_perf,
  fgd,
  best_fit,
  dot_product,
  gpu_packing,
  gpu_clustering,
  random,
};
constexpr auto words_of(SchedulingPolicy) {
  using P = SchedulingPolicy;
  return std::array{
      Word<P>{"fifo", P::fifo},
      Word<P>{"easy_backfill", P::easy_backfill},
      Word<P>{"sjf", P::sjf},
      Word<P>{"srtf", P::srtf},
      Word<P>{"las", P::las},
      Word<P>{"slurm", P::slurm},
      Word<P>{"kueue", P::kueue},
      Word<P>{"kubernetes", P::kubernetes},
      Word<P>{"fifo_perf", P::fifo_perf},
      Word<P>{"max_min_fairness", P::max_min_fairness},
      Word<P>{"max_min_fairness_perf", P::max_min_fairness_perf},
      Word<P>{"max_min_fairness_water_filling_perf", P::max_min_fairness_water_filling_perf},
      Word<P>{"finish_time_fairness", P::finish_time_fairness},
      Word<P>{"finish_time_fairness_perf", P::finish_time_fairness_perf},
      Word<P>{"min_total_duration", P::min_total_duration},
      Word<P>{"min_total_duration_perf", P::min_total_duration_perf},
      Word<P>{"fgd", P::fgd},
      Word<P>{"best_fit", P::best_fit},
      Word<P>{"dot_product", P::dot_product},
      Word<P>{"gpu_packing", P::gpu_packing},
      Word<P>{"gpu_clustering", P::gpu_clustering},
      Word<P>{"random", P::random}};
}
/// Does it place pods that stay, rather than jobs that end?
constexpr bool places_pods(SchedulingPolicy policy) { return policy >= SchedulingPolicy::fgd; }
/// Is it Gavel's, for jobs with steps on several kinds of accelerators?
constexpr bool is_of_gavel(SchedulingPolicy policy) {
  return policy >= SchedulingPolicy::fifo_perf && !places_pods(policy);
}

// ---- Slurm: slurm.conf(5) and sacctmgr(1). Of the TRES only gres/gpu is known.

struct SlurmPartitionSpec {
  std::string name;
  std::vector<std::string> nodes;  // pools; empty: all
  int priority_job_factor = 1;
  std::optional<Seconds> max_time;
  bool is_default = false;
};

/// PreemptMode. SUSPEND is SUSPEND,GANG.
enum class SlurmPreemptMode { off, cancel, requeue, suspend };
constexpr auto words_of(SlurmPreemptMode) {
  return std::array{Word<SlurmPreemptMode>{"OFF", SlurmPreemptMode::off},
                    Word<SlurmPreemptMode>{"CANCEL", SlurmPreemptMode::cancel},
                    Word<SlurmPreemptMode>{"REQUEUE", SlurmPreemptMode::requeue},
                    Word<SlurmPreemptMode>{"SUSPEND", SlurmPreemptMode::suspend}};
}

/// Limits of a QOS; not given: none.
struct SlurmQosSpec {
  std::string name;
  int priority = 0;
  std::vector<std::string> preempt;                         // QOS whose jobs its own may preempt
  std::optional<Seconds> exempt_time;                       // PreemptExemptTime, of its jobs
  std::optional<SlurmPreemptMode> preempt_mode;             // of its jobs; not given: the cluster's
  Seconds grace_time{};                                     // GraceTime, of its jobs
  std::optional<int> grp_gpus, grp_jobs;                    // GrpTRES, GrpJobs: of all its jobs
  std::optional<int> max_gpus_per_user, max_jobs_per_user;  // MaxTRESPU, MaxJobsPU
  std::optional<int> max_gpus_per_account, max_jobs_per_account;  // MaxTRESPA, MaxJobsPA
  std::optional<int> max_gpus_per_job;                            // MaxTRESPerJob
  std::optional<Seconds> max_wall;                                // MaxWall
};

struct SlurmAccountSpec {
  std::string name, parent;  // "": root
  int fairshare = 1;
  std::map<std::string, int> users;  // shares of those that have not one
  std::optional<int> grp_gpus, grp_jobs;
};

struct SlurmSpec {
  int weight_age = 0, weight_fairshare = 0, weight_job_size = 0, weight_partition = 0,
      weight_qos = 0;
  Seconds max_age{7 * 86400.0}, decay_half_life{7 * 86400.0}, calc_period{300};
  bool favor_small = false;
  bool no_fair_tree = false;  // PriorityFlags=NO_FAIR_TREE
  int bf_max_job_test = 500;  // of SchedulerParameters
  // PreemptType=preempt/qos
  SlurmPreemptMode preempt_mode = SlurmPreemptMode::off;
  Seconds preempt_exempt_time{};
  bool preempt_youngest_first = false;  // of SchedulerParameters
  /// A requeued job starts again no sooner: cred_expire of AuthInfo, and a second.
  Seconds requeue_delay{121};
  std::optional<Seconds> checkpoint;  // work kept when a job is requeued; not given: none
  std::vector<SlurmPartitionSpec> partitions;
  std::vector<SlurmQosSpec> qos;
  std::vector<SlurmAccountSpec> accounts;
};

// ---- Kueue: ClusterQueue of kueue.x-k8s.io/v1beta2, of its resources those of GPUs.

enum class QueueingStrategy { best_effort_fifo, strict_fifo };
constexpr auto words_of(QueueingStrategy) {
  return std::array{Word<QueueingStrategy>{"BestEffortFIFO", QueueingStrategy::best_effort_fifo},
                    Word<QueueingStrategy>{"StrictFIFO", QueueingStrategy::strict_fifo}};
}
enum class ReclaimPolicy { never, lower_priority, any };
constexpr auto words_of(ReclaimPolicy) {
  return std::array{Word<ReclaimPolicy>{"Never", ReclaimPolicy::never},
                    Word<ReclaimPolicy>{"LowerPriority", ReclaimPolicy::lower_priority},
                    Word<ReclaimPolicy>{"Any", ReclaimPolicy::any}};
}
enum class WithinPolicy { never, lower_priority, lower_or_newer_equal };
constexpr auto words_of(WithinPolicy) {
  return std::array{
      Word<WithinPolicy>{"Never", WithinPolicy::never},
      Word<WithinPolicy>{"LowerPriority", WithinPolicy::lower_priority},
      Word<WithinPolicy>{"LowerOrNewerEqualPriority", WithinPolicy::lower_or_newer_equal}};
}
enum class ShareStrategy { final_share, initial_share };
constexpr auto words_of(ShareStrategy) {
  return std::array{Word<ShareStrategy>{"LessThanOrEqualToFinalShare", ShareStrategy::final_share},
                    Word<ShareStrategy>{"LessThanInitialShare", ShareStrategy::initial_share}};
}
/// What stops the search for a flavor.
enum class WhenCan { may_stop_search, try_next_flavor };
constexpr auto words_of(WhenCan) {
  return std::array{Word<WhenCan>{"MayStopSearch", WhenCan::may_stop_search},
                    Word<WhenCan>{"TryNextFlavor", WhenCan::try_next_flavor}};
}

struct KueueFlavorSpec {
  std::string name;  // a pool
  int nominal_quota = 0;
  std::optional<int> borrowing_limit, lending_limit;
  /// "nvidia.com/mig-1g.10gb": a flavor whose GPUs are cut by several profiles has a quota for
  /// each, and stands here once for each; "": the pool's only resource.
  std::string resource{};
};
enum class BorrowWithinPolicy { never, lower_priority };
constexpr auto words_of(BorrowWithinPolicy) {
  return std::array{Word<BorrowWithinPolicy>{"Never", BorrowWithinPolicy::never},
                    Word<BorrowWithinPolicy>{"LowerPriority", BorrowWithinPolicy::lower_priority}};
}
struct KueueBorrowWithinSpec {
  BorrowWithinPolicy policy = BorrowWithinPolicy::never;
  std::optional<int> max_priority_threshold;
};
struct KueuePreemptionSpec {
  ReclaimPolicy reclaim_within_cohort = ReclaimPolicy::never;
  WithinPolicy within_cluster_queue = WithinPolicy::never;
  KueueBorrowWithinSpec borrow_within_cohort{};
};
struct KueueFungibilitySpec {
  WhenCan when_can_borrow = WhenCan::may_stop_search;
  WhenCan when_can_preempt = WhenCan::try_next_flavor;
};
struct KueueWeightSpec {
  double weight = 1;
};
/// A rule of admissionChecksStrategy.
struct KueueCheckRuleSpec {
  std::string name;                     // of the check
  std::vector<std::string> on_flavors;  // empty: all
};
struct ClusterQueueSpec {
  std::string name, cohort;  // "": no cohort
  QueueingStrategy strategy = QueueingStrategy::best_effort_fifo;
  KueuePreemptionSpec preemption;
  KueueFungibilitySpec fungibility;
  KueueWeightSpec fair_sharing;
  std::vector<KueueFlavorSpec> flavors;
  std::vector<KueueCheckRuleSpec> admission_checks{};  // admissionChecksStrategy
};
/// AdmissionCheck of kueue.x-k8s.io/v1beta2, with the retryStrategy of its
/// ProvisioningRequestConfig and what is not Kueue's: how long it takes.
struct KueueRetrySpec {
  int backoff_limit_count = 3;
  Seconds backoff_base{60}, backoff_max{1800};  // backoffBaseSeconds, backoffMaxSeconds
};
struct KueueAdmissionCheckSpec {
  std::string name;
  TimeLaw ready_after = Seconds{};  // the reservation of quota; of a failure, likewise
  double failures = 0;              // share of the attempts that fail
  KueueRetrySpec retry{};
};
/// Cohort of kueue.x-k8s.io/v1beta2: below another, and with quotas of its own.
struct KueueCohortSpec {
  std::string name, parent;  // "": none
  std::vector<KueueFlavorSpec> flavors;
  KueueWeightSpec fair_sharing{};
};
/// Topology of kueue.x-k8s.io/v1beta2, the widest level first.
struct KueueLevelSpec {
  std::string node_label;
  int nodes = 1;  // nodes of a pool, one behind the other, that a domain has
};
struct KueueTopologySpec {
  std::string name;
  std::vector<KueueLevelSpec> levels;
};
/// ResourceFlavor of kueue.x-k8s.io/v1beta2.
struct KueueResourceFlavorSpec {
  std::string name, topology;  // a pool; "": none
};
struct KueueSpec {
  /// fairSharing.preemptionStrategies of its Configuration; empty: classic preemption.
  std::vector<ShareStrategy> fair_sharing;
  std::optional<Seconds> checkpoint;  // work kept by eviction; not given: none
  std::vector<ClusterQueueSpec> cluster_queues;
  std::vector<KueueCohortSpec> cohorts{};  // those that a queue names need not be here
  std::vector<KueueTopologySpec> topologies{};
  std::vector<KueueResourceFlavorSpec> resource_flavors{};  // those with a topology
  std::vector<KueueAdmissionCheckSpec> admission_checks{};
};

// ---- Kubernetes: kube-scheduler; the pods of a job start together.

/// NodeResourcesFitArgs.scoringStrategy.type.
enum class ScoringStrategy { least_allocated, most_allocated };
constexpr auto words_of(ScoringStrategy) {
  return std::array{Word<ScoringStrategy>{"LeastAllocated", ScoringStrategy::least_allocated},
                    Word<ScoringStrategy>{"MostAllocated", ScoringStrategy::most_allocated}};
}
enum class PreemptionPolicy { preempt_lower_priority, never };
constexpr auto words_of(PreemptionPolicy) {
  return std::array{
      Word<PreemptionPolicy>{"PreemptLowerPriority", PreemptionPolicy::preempt_lower_priority},
      Word<PreemptionPolicy>{"Never", PreemptionPolicy::never}};
}
struct KubernetesSpec {
  ScoringStrategy scoring = ScoringStrategy::least_allocated;
  PreemptionPolicy preemption = PreemptionPolicy::preempt_lower_priority;  // of all jobs
  std::optional<Seconds> checkpoint;  // work kept by a preempted job; not given: none
};

// ---- nodes of a cloud that are bought for jobs that wait too long

struct OverflowSpec {
  int nodes = 0;                                // at most at a time
  int gpus = 8;                                 // of a node
  Seconds wait{3600};                           // a job that waited so long goes there
  std::optional<MoneyText> price;               // of a node's hour; not given: unknown
  Seconds provisioning_time{300};               // from the request until it takes jobs
  Seconds scale_down_unneeded_time{600};        // idle before it is given back
  std::optional<Seconds> mean_time_to_reclaim;  // of a spot node; not given: it stays
  std::optional<Seconds> checkpoint;  // work kept by a job whose node is taken; not given: none
};

struct SchedulerSpec {
  SchedulingPolicy policy = SchedulingPolicy::fifo;
  // Of Gavel's scheduler, by its own names:
  std::optional<Seconds> time_per_iteration;                      // a round
  std::optional<Seconds> minimum_time_between_allocation_resets;  // of decisions
  std::optional<SlurmSpec> slurm;
  std::optional<KueueSpec> kueue;
  std::optional<KubernetesSpec> kubernetes;  // not given: its defaults
  std::optional<OverflowSpec> overflow;      // not given: nodes stay
};

}  // namespace reckon
