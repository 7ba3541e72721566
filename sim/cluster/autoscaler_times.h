#pragma once
#include "sim/base/quantity.h"
#include "sim/scenario/plan.h"

// Rules of the Kubernetes cluster-autoscaler, with its names [kubernetes/autoscaler,
// cluster-autoscaler/FAQ.md]. It looks at the cluster every scan_interval; the simulator leaps to
// the scans that find something to do.
namespace reckon {

struct AutoscalerTimes {
  explicit AutoscalerTimes(const AutoscalerRules& rules);
  SimDuration scan_interval, scale_down_unneeded_time, scale_down_delay_after_add;
  SimDuration max_node_provision_time, backoff_initial, backoff_max, backoff_reset;

  /// The first scan at or after `t`; scans stand at whole multiples of scan_interval.
  SimTime scan_at_or_after(SimTime t) const;
  /// The scan that deletes a node without pods since `unneeded_since`. The autoscaler notices at
  /// the next scan, waits scale_down_unneeded_time from there, and deletes nothing within
  /// scale_down_delay_after_add of the last scale-up anywhere in the cluster.
  SimTime scale_down_at(SimTime unneeded_since, SimTime last_scale_up) const;
  /// The scan that gives up on a node requested at `requested`, after so much patience.
  SimTime provision_timeout(SimTime requested, SimDuration patience) const;
};

/// Exponential backoff of a node group whose nodes did not come [cluster-autoscaler/utils/backoff]:
/// initial, doubled by each failure, at most max; forgotten after a scale-up that worked or `reset`
/// after the last failure.
class NodeGroupBackoff {
 public:
  void failed(SimTime now, const AutoscalerTimes& times);
  void succeeded() {
    duration_ = SimDuration{0};
    until_ = SimTime::min();
  }
  bool blocks(SimTime now) const { return now < until_; }
  SimTime until() const { return until_; }

 private:
  SimDuration duration_{};
  SimTime until_ = SimTime::min(), last_failure_ = SimTime::min();
};

}  // namespace reckon
