#include "sim/cluster/autoscaler_times.h"

#include <algorithm>

#include "sim/cluster/never.h"

namespace reckon {

AutoscalerTimes::AutoscalerTimes(const AutoscalerRules& rules)
    : scan_interval(std::max(clock_or_never(rules.scan_interval), SimDuration{1})),
      scale_down_unneeded_time(clock_or_never(rules.scale_down_unneeded_time)),
      scale_down_delay_after_add(clock_or_never(rules.scale_down_delay_after_add)),
      max_node_provision_time(clock_or_never(rules.max_node_provision_time)),
      backoff_initial(clock_or_never(rules.node_group_backoff_initial)),
      backoff_max(clock_or_never(rules.node_group_backoff_max)),
      backoff_reset(clock_or_never(rules.node_group_backoff_reset)) {}

SimTime AutoscalerTimes::scan_at_or_after(SimTime t) const {
  const SimDuration since = t.time_since_epoch();
  return SimTime{(since + scan_interval - SimDuration{1}) / scan_interval * scan_interval};
}

SimTime AutoscalerTimes::scale_down_at(SimTime unneeded_since, SimTime last_scale_up) const {
  SimTime at = scan_at_or_after(unneeded_since) + scale_down_unneeded_time;
  if (last_scale_up != SimTime::min())
    at = std::max(at, last_scale_up + scale_down_delay_after_add);
  return scan_at_or_after(at);
}

SimTime AutoscalerTimes::provision_timeout(SimTime requested, SimDuration patience) const {
  return scan_at_or_after(requested + patience);
}

void NodeGroupBackoff::failed(SimTime now, const AutoscalerTimes& times) {
  if (blocks(now)) return;  // nodes of one scale-up that fail together count once
  const bool forgotten = duration_.count() == 0 || last_failure_ + times.backoff_reset < now;
  duration_ = forgotten ? times.backoff_initial : std::min(2 * duration_, times.backoff_max);
  last_failure_ = now;
  until_ = now + duration_;
}

}  // namespace reckon
