#include "executor/kubernetes/pods/pod_times.h"

#include <algorithm>

namespace reckon::kubernetes {
namespace {

SimTime sim_time(const RunClock& clock, Time at) {
  return SimTime{to_clock(std::max(Seconds{0}, Seconds(at - clock.started())))};
}

/// The pool of a process, and its place among the plan's.
const PlannedPool* pool_of_rank(const Plan& plan, int rank, int& index) {
  const bool server = rank >= plan.only_job().strategy.workers;
  const PlannedPool* pool = server ? plan.pool_with(Role::parameter_server) : nullptr;
  if (pool == nullptr) {
    const auto pools = computing_pools(plan);
    pool = pools.empty() ? nullptr : pools.back();
  }
  for (std::size_t k = 0; k < plan.pools.size(); ++k)
    if (&plan.pools[k] == pool) index = int(k);
  return pool;
}

}  // namespace

void PodTimes::see(const EventView& event) {
  Pull& pull = pulls_[event.name];
  if (event.reason == "Pulling") pull.begin = event.at;
  if (event.reason == "Pulled") pull.end = event.at;
  if (event.reason == "TriggeredScaleUp") pull.node_added = true;
}

std::vector<MeasurementRecord> PodTimes::see(const PodView& pod) {
  if (!pod.created || !pod.scheduled || !pod.started || done_[pod.uid]) return {};
  done_[pod.uid] = true;
  int index = -1;
  const PlannedPool* pool = pool_of_rank(plan_, pod.rank, index);
  if (pool == nullptr) return {};
  std::vector<MeasurementRecord> records;
  // Kubernetes tells whole seconds: what began and ended in one took none of them, and was there.
  const auto span = [&](const char* name, Badput category, Time begin, Time end) {
    if (end >= begin)
      records.push_back(Span{name, std::string(to_text(category)), index, pod.rank,
                             sim_time(clock_, begin), sim_time(clock_, end)});
  };
  const Pull pull = pulls_[pod.name];
  const bool pulled = pull.begin && pull.end;
  span("schedule", pull.node_added ? Badput::provisioning : Badput::waiting, *pod.created,
       *pod.scheduled);
  if (pulled) span("pull image", Badput::initialization, *pull.begin, *pull.end);
  span("start container", Badput::initialization,
       pulled ? std::max(*pod.scheduled, *pull.end) : *pod.scheduled, *pod.started);
  if (pull.node_added)
    records.push_back(ProvisioningRecord{.pool = pool->name,
                                         .node = pod.rank,
                                         .machine = pool->machine.name,
                                         .at = *pod.created - clock_.started(),
                                         .seconds = *pod.scheduled - *pod.created});
  return records;
}

}  // namespace reckon::kubernetes
