#pragma once
#include <deque>

#include "sim/base/quantity.h"
#include "sim/scenario/resolve/serving.h"

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

/// The limits over time, with the default policies: up by the larger of 4 replicas and 100 % in 15
/// s (however many looks that is), down to the most that was recommended in
/// `downscale_stabilization`, of which the number at the first look counts as one; within min..max
/// [Kubernetes, pkg/controller/podautoscaler/horizontal.go, calculateScaleUpLimitWithScalingRules,
/// recordInitialRecommendation].
class ReplicaAutoscaler {
 public:
  explicit ReplicaAutoscaler(const ReplicaRules& rules) : rules_(rules) {}
  int look(SimTime now, const ReplicaLoad& load);

 private:
  struct Recommendation {
    SimTime at;
    int replicas;
  };
  struct Change {
    SimTime at;
    int added;  // below 0: removed
  };
  void record(SimTime now, int wanted);
  int scale_up_limit(SimTime now, int current);

  ReplicaRules rules_;
  // Those that may still become the most: older ones are larger than younger ones.
  std::deque<Recommendation> recent_;
  bool looked_ = false;
  std::deque<Change> changes_;  // of the last 15 s
};

}  // namespace reckon
