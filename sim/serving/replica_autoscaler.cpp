#include "sim/serving/replica_autoscaler.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

constexpr int kPodsInPeriod = 4;      // default policy of scaleUp: 4 pods ...
constexpr double kTimesInPeriod = 2;  // ... or 100 % more in 15 s, the larger one
constexpr Seconds kPolicyPeriod{15};
/// Sums of shares of busy time: 0.8 + 0.8 is not above 2 x 0.8.
constexpr double kRounding = 1e-9;

int rounded_up(double replicas) { return static_cast<int>(std::ceil(replicas - kRounding)); }

}  // namespace

int recommended_replicas(const ReplicaLoad& load, const ReplicaRules& rules) {
  if (load.ready == 0) return load.current;
  const double ratio = load.utilization / load.ready / rules.target_utilization;
  const auto near = [&](double r) { return std::abs(1 - r) <= rules.tolerance + kRounding; };
  const int starting = std::max(0, load.current - load.ready);
  if (starting == 0 || ratio <= 1)
    return near(ratio) ? load.current : rounded_up(ratio * load.ready);
  const int all = load.ready + starting;
  const double with_starting = load.utilization / all / rules.target_utilization;
  if (near(with_starting) || with_starting < 1) return load.current;
  return std::max(load.current, rounded_up(with_starting * all));
}

void ReplicaAutoscaler::record(SimTime now, int wanted) {
  while (!recent_.empty() && recent_.back().replicas <= wanted) recent_.pop_back();
  recent_.push_back({now, wanted});
}

/// From what there were at the begin of the last 15 s.
int ReplicaAutoscaler::scale_up_limit(SimTime now, int current) {
  while (!changes_.empty() && changes_.front().at <= now - to_clock(kPolicyPeriod))
    changes_.pop_front();
  int before = current;
  for (const Change& c : changes_) before -= c.added;
  const int limit = std::max(before + kPodsInPeriod, static_cast<int>(kTimesInPeriod * before));
  return std::max(limit, current);
}

int ReplicaAutoscaler::look(SimTime now, const ReplicaLoad& load) {
  int wanted = recommended_replicas(load, rules_);
  const SimTime oldest = now - to_clock(rules_.downscale_stabilization);
  while (!recent_.empty() && recent_.front().at < oldest) recent_.pop_front();
  if (!looked_) record(now, load.current);
  looked_ = true;
  record(now, wanted);
  // As many as anybody asked for lately; it never makes more than the present look wants.
  if (wanted < load.current) wanted = std::min(recent_.front().replicas, load.current);
  const int limited = std::min(wanted, scale_up_limit(now, load.current));
  const int desired = std::clamp(limited, rules_.min, rules_.max);
  if (desired != load.current) changes_.push_back({now, desired - load.current});
  return desired;
}

}  // namespace reckon
