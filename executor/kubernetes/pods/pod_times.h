#pragma once
#include <map>
#include <string>
#include <vector>

#include "executor/kubernetes/pods/pod_view.h"
#include "executor/train/records/run_directory.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/plan.h"

namespace reckon::kubernetes {

/// What a pod's way from its creation to its start becomes in a run's Measurements: spans
/// "schedule", "pull image" and "start container" of its pool and rank, and, where a node was added
/// for it, how long that took.
class PodTimes {
 public:
  PodTimes(const Plan& plan, const RunClock& clock) : plan_(plan), clock_(clock) {}
  void see(const EventView& event);
  /// The records of a pod whose container has started; once each.
  std::vector<MeasurementRecord> see(const PodView& pod);

 private:
  struct Pull {
    std::optional<Time> begin, end;
    bool node_added = false;
  };
  const Plan& plan_;
  RunClock clock_;
  std::map<std::string, Pull> pulls_;  // by pod
  std::map<std::string, bool> done_;   // by uid
};

}  // namespace reckon::kubernetes
