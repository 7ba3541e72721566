#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "executor/kubernetes/kubectl.h"
#include "executor/kubernetes/pods/cluster_gang.h"

namespace reckon::kubernetes {

class ClusterGang;

/// The pods of a job that goes on with those that are left: a pod that is lost is made again by its
/// Job, the others stay, leave the start and wait. When those that the next start needs run, by
/// ClusterGangOptions::seating, they are told their parts in it
/// (executor/train/records/pod_orders.h). What StandingProcesses and run_gang() are for processes
/// of this machine.
class StandingPods {
 public:
  /// ClusterGangOptions::attempt: the one that their objects are of.
  StandingPods(const Kubectl& kubectl, ClusterGangOptions options, ClusterGangEvents events);
  ~StandingPods();
  StandingPods(const StandingPods&) = delete;
  StandingPods& operator=(const StandingPods&) = delete;

  /// From waiting for the pods to the end of the job, or the loss of a rank's pod, after which the
  /// others are there; or until an elastic job can be of more ranks: the next start tells them to
  /// regroup. A start that an earlier launcher began is watched. Throws KubectlError for what does
  /// not pass by itself.
  GangEnd run(std::int64_t start, const std::function<StopRequest()>& stop);
  /// False: pods are done or were ended, and nobody makes them again.
  bool can_go_on() const;
  /// Attempt that their objects are of.
  std::int64_t objects() const { return options_.attempt; }

 private:
  ClusterGangOptions options_;
  ClusterGangEvents events_;
  std::unique_ptr<ClusterGang> gang_;
};

}  // namespace reckon::kubernetes
