#pragma once
#include <vector>

#include "sim/queue/backfill/queue_rules.h"
#include "sim/queue/job_list.h"
#include "sim/queue/job_times.h"
#include "sim/scenario/spec/scheduler.h"

// kube-scheduler, of which the GPUs count.
namespace reckon {

/// Jobs in order of their priority, then of their submit
/// (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption, "Effect of Pod
/// priority on scheduling order"); one that finds no room waits, blocks nobody and has nothing kept
/// for it. With PreemptLowerPriority it evicts jobs of lower priority ("Preemption"): the lowest
/// first, then who started last. The pods of a job start together, as with coscheduling or Volcano.
/// Nodes by NodeResourcesFit: LeastAllocated the emptiest, MostAllocated the fullest.
/// Not modelled: pods that start one by one, affinity, topology spread, PodDisruptionBudgets, the
/// time of back-off (1 to 10 s), resources but GPUs.
class KubernetesRules : public QueueRules {
 public:
  /// Both outlive it.
  KubernetesRules(const JobList& list, const KubernetesSpec& kubernetes);

  double priority(std::size_t job, SimTime) override { return of(job); }  // PriorityClass's value
  std::size_t group(std::size_t job) const override { return groups_[job]; }
  bool reserves() const override { return false; }
  bool spreads() const override { return spec_.scoring == ScoringStrategy::least_allocated; }
  bool preempts() const override { return preempts_; }
  bool may_preempt(std::size_t job, std::size_t running) const override {
    return of(running) < of(job);
  }
  double worth(std::size_t running) const override { return of(running); }  // likewise
  SimDuration kept(SimDuration done) const override { return kept_work(done, spec_.checkpoint); }

 private:
  std::int32_t of(std::size_t job) const { return list_.jobs[job].owner.priority; }

  const JobList& list_;
  const KubernetesSpec& spec_;
  std::vector<std::size_t> groups_;  // by job: the number of its priority
  bool preempts_ = false;
};

}  // namespace reckon
