#include "executor/kubernetes/pods/cluster_gang.h"

#include <fmt/format.h>

#include <cmath>

#include "executor/kubernetes/pods/gang/watched_gang.h"

namespace reckon::kubernetes {

std::string selector_of(const std::string& run) {
  return fmt::format("app.kubernetes.io/name=reckon,app.kubernetes.io/instance={}", run);
}
std::string selector_of(const std::string& run, std::int64_t attempt) {
  return fmt::format("{},reckon/attempt={}", selector_of(run), attempt);
}

void end_attempt(const Kubectl& kubectl, const std::string& run, std::int64_t attempt,
                 std::optional<Seconds> grace) {
  // First, as what is being deleted its Job lets be, and no later deletion makes a period longer.
  if (grace)
    kubectl.run({"delete", "pods", "--selector", selector_of(run, attempt), "--field-selector",
                 "status.phase!=Succeeded,status.phase!=Failed",
                 fmt::format("--grace-period={}", std::llround(std::ceil(grace->count()))),
                 "--wait=false", "--ignore-not-found"},
                {}, kManyObjects);
  const Json jobs = kubectl.json({"get", "jobs", "--selector", selector_of(run, attempt)});
  if (jobs.at("items").empty()) return;
  // A Job that wants no pods ends those that run and keeps those that have ended.
  kubectl.run(
      {"patch", "--filename", "-", "--type", "merge", "--patch", R"({"spec":{"parallelism":0}})"},
      jobs.dump(), kManyObjects);
}

void remove_by_force(const Kubectl& kubectl, const std::string& pod) {
  kubectl.attempt(
      {"delete", "pod", pod, "--force", "--grace-period=0", "--wait=false", "--ignore-not-found"});
}

GangEnd watch_cluster_gang(const Kubectl& kubectl, const ClusterGangOptions& options,
                           const ClusterGangEvents& events,
                           const std::function<StopRequest()>& stop) {
  return ClusterGang(kubectl, options, events).run(stop);
}

}  // namespace reckon::kubernetes
