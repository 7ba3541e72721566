#include "executor/kubernetes/pods/free_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "executor/kubernetes/json_at.h"
#include "executor/kubernetes/pods/cluster_gang.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "executor/kubernetes/run_state.h"

namespace reckon::kubernetes {
namespace {

/// What a pod asks for: of a Job with such pods.
Resources requests_of(const Json& pod) {
  const Json job = {{"kind", "Job"},
                    {"spec", {{"template", {{"spec", pod.value("spec", Json::object())}}}}}};
  return demands_of({job}).front().requests;
}

bool is_of_run(const Json& pod, const std::string& run, const std::string& name_space) {
  return pod.value(Json::json_pointer("/metadata/namespace"), std::string()) == name_space &&
         mapped_text(pod, "/metadata/labels", "app.kubernetes.io/name") == "reckon" &&
         mapped_text(pod, "/metadata/labels", "app.kubernetes.io/instance") == run;
}

/// Those of spare nodes stand by, as many as before.
bool makes_workers(const Json& job) {
  const char* const labels = "/spec/template/metadata/labels";
  return mapped_text(job, labels, "app.kubernetes.io/component") == "worker" &&
         mapped_text(job, labels, "reckon/stands-by").empty();
}

}  // namespace

Json nodes_left(Json nodes, const Json& pods, const std::string& but,
                const std::string& name_space) {
  std::map<std::string, Resources> held;
  for (const Json& pod : pods.value("items", Json::array())) {
    const PodView view = pod_view(pod);
    if (view.node.empty() || view.ended() || is_of_run(pod, but, name_space)) continue;
    for (const auto& [resource, amount] : requests_of(pod)) held[view.node][resource] += amount;
  }
  if (!nodes.contains("items")) return nodes;
  for (Json& node : nodes["items"]) {
    const auto taken = held.find(node_view(node).name);
    if (taken == held.end()) continue;
    Json left = value_at(node, "/status/allocatable", Json::object());
    for (const auto& [resource, amount] : taken->second) {
      if (!left.contains(resource)) continue;
      const Json& all = left.at(resource);
      const auto there = quantity_of(all.is_string() ? all.get<std::string>() : all.dump());
      left[resource] = fmt::format("{:.6f}", std::max(0.0, there.value_or(0) - amount));
    }
    node["status"]["allocatable"] = std::move(left);
  }
  return nodes;
}

int workers_with_room(const Json& jobs, const Json& nodes_left, int most) {
  std::vector<PodDemand> others;
  std::optional<PodDemand> worker;
  for (Json job : jobs.value("items", Json::array())) {
    job["kind"] = "Job";  // lists leave it out of their items
    PodDemand demand = demands_of({job}).front();
    if (!makes_workers(job))
      others.push_back(std::move(demand));
    else if (!worker)
      worker = std::move(demand);
  }
  if (!worker) return 0;
  for (int count = most; count > 0; --count) {
    std::vector<PodDemand> tried = others;
    worker->count = count;
    tried.push_back(*worker);
    const Room room = room_for(tried, nodes_left);
    if (room.placed == room.pods) return count;
  }
  return 0;
}

std::optional<int> workers_with_room(const Kubectl& kubectl, const std::string& run, int most,
                                     const std::string& without) {
  try {
    const auto newest = newest_attempt(kubectl, run);
    if (!newest) return std::nullopt;
    // Pods that stayed are those of an earlier attempt.
    const Json jobs =
        kubectl.json({"get", "jobs", "--selector", selector_of(run, newest->objects)});
    Json left = nodes_left(kubectl.json({"get", "nodes"}), kubectl.raw("/api/v1/pods"), run,
                           kubectl.name_space());
    for (Json& node : left["items"])
      if (node_view(node).name == without) node["spec"]["unschedulable"] = true;
    return workers_with_room(jobs, left, most);
  } catch (const KubectlError&) {
    return std::nullopt;
  }
}

bool end_attempt_and_wait(const Kubectl& kubectl, const std::string& run, std::int64_t attempt,
                          Seconds limit, const std::function<bool()>& goes_on) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kForced{10};  // from a deletion by force until it is seen
  auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  bool forced = false;
  end_attempt(kubectl, run, attempt);
  for (;;) {
    const Json list = kubectl.json({"get", "pods", "--selector", selector_of(run, attempt)});
    std::vector<std::string> left;
    for (const Json& item : list.at("items"))
      if (const PodView pod = pod_view(item); !pod.ended()) left.push_back(pod.name);
    if (left.empty()) return true;
    if (goes_on && !goes_on()) return false;
    if (Clock::now() > until) {
      if (std::exchange(forced, true)) return false;
      for (const std::string& pod : left) remove_by_force(kubectl, pod);
      until = Clock::now() + kForced;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

}  // namespace reckon::kubernetes
