#pragma once
#include <deque>

#include "sim/base/quantity.h"
#include "sim/scenario/plan_serving.h"

// How many replicas the HorizontalPodAutoscaler asks for.
namespace reckon {

/// What its look at the load finds.
struct ReplicaLoad {
  int current = 0;         // asked for by the last look
  int ready = 0;           // of them, with a utilisation of their own
  double utilization = 0;  // of the ready ones, summed (each 0..1)
};

/// The rule before any limit [Kubernetes, pkg/controller/podautoscaler/replica_calculator.go,
/// GetResourceReplicas; documentation "Algorithm details"]:
///   desired = ceil(current * utilisation / target), unless the ratio is within the tolerance of 1.
/// Replicas that are starting count as idle where more are asked for, and are left out where fewer
/// are; where counting them would turn more into fewer, nothing changes.
int recommended_replicas(const ReplicaLoad& load, const ReplicaRules& rules);

/// The limits over time, with the default policies: up by the larger of 4 replicas and 100 % in one
/// look, down to the most that was recommended in `downscale_stabilization`; within min..max.
class ReplicaAutoscaler {
 public:
  explicit ReplicaAutoscaler(const ReplicaRules& rules) : rules_(rules) {}
  int look(SimTime now, const ReplicaLoad& load);

 private:
  struct Recommendation {
    SimTime at;
    int replicas;
  };
  ReplicaRules rules_;
  std::deque<Recommendation> recent_;
};

}  // namespace reckon
