#include "executor/kubernetes/leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "executor/kubernetes/json_at.h"
#include "executor/kubernetes/lease.h"
#include "executor/kubernetes/pods/node_fit.h"
#include "executor/kubernetes/run_state.h"
#include "sim/base/text/base64.h"
#include "sim/scenario/artifact/artifact.h"

namespace reckon::kubernetes {
namespace {

using RunKey = std::pair<std::string, std::string>;  // namespace, name

const Json& items_of(const Json& list) {
  static const Json kNone = Json::array();
  return list.is_object() && list.contains("items") && list.at("items").is_array()
             ? list.at("items")
             : kNone;
}
std::string leftover_label(const Json& object, const char* key) {
  return mapped_text(object, "/metadata/labels", key);
}
RunKey key_of(const Json& object) {
  return {text_at(object, "/metadata/namespace"),
          leftover_label(object, "app.kubernetes.io/instance")};
}
bool has_ended(const Json& pod) {
  const std::string phase = text_at(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

/// A node's price in the plan of the run whose pod it has; nullopt: not known.
std::optional<HourlyRate> price_of_node(const Plan& plan, const std::string& component,
                                        const Json* node) {
  const Role role = component == "parameter-server" ? Role::parameter_server : Role::worker;
  const PlannedPool* pool = plan.pool_with(role);
  // What clouds call the group of a node: the pool's name, or its fallback's.
  constexpr std::array<const char*, 4> kGroups{
      "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup",
      "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool"};
  if (node != nullptr) {
    const std::string machine = leftover_label(*node, "node.kubernetes.io/instance-type");
    for (const PlannedPool& p : plan.pools)
      if (p.role == role && !machine.empty() && p.machine.name == machine &&
          (pool == nullptr || pool->machine.name != machine))
        pool = &p;
    for (const PlannedPool& p : plan.pools)
      for (const char* group : kGroups)
        if (p.name == leftover_label(*node, group)) pool = &p;
  }
  if (pool == nullptr || !pool->price.known) return std::nullopt;
  return HourlyRate{pool->price.machine.nano_usd_per_hour +
                    pool->price.accelerators.nano_usd_per_hour};
}

/// A run, as far as it matters who owns what it has made.
struct KnownRun {
  const Json* map = nullptr;  // nullptr: there is no such run
  bool foreign = false;       // its Jobs were applied by somebody, not by a launcher
  std::string why;            // nobody owns it; "": somebody does
  bool over = false;          // nobody goes on with it: its claims are left as well
  std::vector<const Json*> jobs, pods;
  std::optional<Plan> plan;
};

class LeftoverSearch {
 public:
  LeftoverSearch(const LeftoverView& view, Time now) : view_(view), now_(now) {}

  Leftovers answer() {
    collect();
    for (auto& [key, run] : runs_) judge(key, run);
    find_free_nodes();
    for (auto& [key, run] : runs_)
      if (!run.why.empty()) add_jobs(key, run);
    for (const Json& claim : items_of(view_.claims)) add_claim(claim);
    add_nodes();
    answer_.not_seen = view_.not_seen;
    return std::move(answer_);
  }

 private:
  void collect() {
    for (const Json& map : items_of(view_.runs)) {
      const RunKey key = key_of(map);
      if (text_at(map, "/metadata/name") == state_object_of(key.second)) runs_[key].map = &map;
    }
    for (const Json& job : items_of(view_.jobs)) {
      KnownRun& run = runs_[key_of(job)];
      run.jobs.push_back(&job);
      const std::string rank =
          mapped_text(job, "/spec/template/metadata/annotations", "reckon/first-rank");
      run.foreign = run.foreign || rank.empty();
    }
    for (const Json& pod : items_of(view_.pods)) {
      KnownRun& run = runs_[key_of(pod)];
      run.pods.push_back(&pod);
      if (mapped_text(pod, "/metadata/annotations", "reckon/first-rank").empty())
        run.foreign = true;
    }
    for (const Json& claim : items_of(view_.claims)) runs_[key_of(claim)];
    for (const Json& lease : items_of(view_.leases)) leases_[key_of(lease)] = &lease;
    for (const Json& node : items_of(view_.nodes)) nodes_[text_at(node, "/metadata/name")] = &node;
  }

  void judge(const RunKey& key, KnownRun& run) {
    if (run.map == nullptr) {
      if (run.foreign) return;  // exported, and applied by somebody
      run.over = true;
      run.why = "no run of that name: deleted, or a probe's";
      return;
    }
    const std::string phase = mapped_text(*run.map, "/metadata/annotations", "reckon/phase");
    run.over = phase == "finished" || phase == "failed" || phase == "stopped";
    run.why = run.over ? phase : why_unowned(key);
    if (run.why.empty()) return;
    run.plan = plan_of(*run.map, key.second);
  }

  static std::optional<Plan> plan_of(const Json& map, const std::string& run) {
    const auto bytes = from_base64(mapped_text(map, "/binaryData", "plan.reckon"));
    if (!bytes) return std::nullopt;
    auto read = read_artifact(*bytes, run);
    return read ? std::optional(std::move(read->artifact.plan)) : std::nullopt;
  }

  /// "": its launcher lives, or may for all that can be seen.
  std::string why_unowned(const RunKey& key) const {
    if (view_.leases.is_null()) return "";
    const auto at = leases_.find(key);
    const auto launcher = launcher_view(at == leases_.end() ? Json() : *at->second, now_);
    if (!launcher) return "no launcher: none holds a lease";
    if (launcher->lives) return "";
    if (launcher->identity.empty()) return fmt::format("no launcher since {}", launcher->renewed);
    return fmt::format("no launcher: the {} was last heard of at {}",
                       launcher_text(launcher->identity), launcher->renewed);
  }

  /// Those with pods that nobody owns and none besides.
  void find_free_nodes() {
    for (const auto& [key, run] : runs_) {
      for (const Json* pod : run.pods) {
        const std::string node = text_at(*pod, "/spec/nodeName");
        if (node.empty() || has_ended(*pod)) continue;
        if (run.why.empty())
          shared_.insert(node);
        else if (!carriers_.contains(node))
          carriers_[node] = {key, leftover_label(*pod, "app.kubernetes.io/component")};
        ours_.insert(text_at(*pod, "/metadata/uid"));
      }
    }
    for (const Json& pod : items_of(view_.other_pods))
      if (holds_its_node(pod)) shared_.insert(text_at(pod, "/spec/nodeName"));
  }

  /// A pod of others that keeps its node: what every node has does not.
  bool holds_its_node(const Json& pod) const {
    if (has_ended(pod) || ours_.contains(text_at(pod, "/metadata/uid"))) return false;
    if (text_at(pod, "/metadata/namespace") == "kube-system") return false;
    if (!mapped_text(pod, "/metadata/annotations", "kubernetes.io/config.mirror").empty())
      return false;
    const Json owners = pod.value(Json::json_pointer("/metadata/ownerReferences"), Json::array());
    return std::ranges::none_of(
        owners, [](const Json& owner) { return owner.value("kind", "") == "DaemonSet"; });
  }

  std::optional<HourlyRate> node_price(const std::string& name, const KnownRun& run,
                                       const std::string& component) const {
    if (!run.plan) return std::nullopt;
    const auto node = nodes_.find(name);
    return price_of_node(*run.plan, component, node == nodes_.end() ? nullptr : node->second);
  }

  void add_jobs(const RunKey& key, const KnownRun& run) {
    if (run.jobs.empty() && run.pods.empty()) return;
    Leftover left{.name_space = key.first, .run = key.second, .name = key.second, .why = run.why};
    left.jobs = int(run.jobs.size());
    std::set<std::string> held;
    for (const Json* pod : run.pods) {
      const std::string node = text_at(*pod, "/spec/nodeName");
      if (has_ended(*pod))
        ++left.pods_ended;
      else if (node.empty())
        ++left.pods_waiting;
      else
        ++left.pods_running;
      if (!has_ended(*pod) && !node.empty()) held.insert(node);
    }
    left.nodes.assign(held.begin(), held.end());
    left.price = HourlyRate{};
    for (const std::string& node : left.nodes) {
      if (shared_.contains(node)) continue;
      const auto price = node_price(node, run, carriers_.at(node).second);
      if (price && left.price)
        left.price->nano_usd_per_hour += price->nano_usd_per_hour;
      else
        left.price.reset();
    }
    answer_.items.push_back(std::move(left));
  }

  void add_claim(const Json& claim) {
    const RunKey key = key_of(claim);
    const KnownRun& run = runs_.at(key);
    if (run.why.empty() || !run.over) return;
    Leftover left{.kind = Leftover::Kind::claim,
                  .name_space = key.first,
                  .run = key.second,
                  .name = text_at(claim, "/metadata/name"),
                  .why = run.why};
    std::string size = text_at(claim, "/status/capacity/storage");
    if (size.empty()) size = text_at(claim, "/spec/resources/requests/storage");
    if (const auto bytes = quantity_of(size)) left.size = Bytes{*bytes};
    constexpr double kGigabyte = 1e9;
    if (left.size && run.plan && run.plan->storage_per_gb.nano_usd_per_hour > 0)
      left.price = scaled(run.plan->storage_per_gb, left.size->v / kGigabyte);
    count(left.price);
    answer_.items.push_back(std::move(left));
  }

  void add_nodes() {
    for (const auto& [node, carrier] : carriers_) {
      if (shared_.contains(node) || cordoned_by(node)) continue;
      const KnownRun& run = runs_.at(carrier.first);
      add_node(node, carrier.first, "only pods that nobody owns",
               node_price(node, run, carrier.second));
    }
    for (const auto& [node, object] : nodes_) {
      const auto by = cordoned_by(node);
      if (!by) continue;
      const auto run = runs_.find(*by);
      std::optional<HourlyRate> price;
      if (run != runs_.end() && run->second.map != nullptr)
        if (const auto plan = plan_of(*run->second.map, by->second))
          price = price_of_node(*plan, "worker", object);
      add_node(node, *by, "cordoned by reckon", price);
    }
  }

  void add_node(const std::string& name, const RunKey& run, const std::string& why,
                std::optional<HourlyRate> price) {
    count(price);
    answer_.items.push_back({.kind = Leftover::Kind::node,
                             .name_space = run.first,
                             .run = run.second,
                             .name = name,
                             .why = why,
                             .price = price});
  }

  std::optional<RunKey> cordoned_by(const std::string& name) const {
    const auto at = nodes_.find(name);
    if (at == nodes_.end()) return std::nullopt;
    const Json& node = *at->second;
    const Json::json_pointer cordon("/spec/unschedulable");
    const std::string by = mapped_text(node, "/metadata/annotations", kCordonedBy);
    const std::size_t slash = by.find('/');
    if (slash == std::string::npos || !node.contains(cordon) || node.at(cordon) != true)
      return std::nullopt;
    RunKey key{by.substr(0, slash), by.substr(slash + 1)};
    const bool looked_at = (view_.name_space.empty() || view_.name_space == key.first) &&
                           (view_.run.empty() || view_.run == key.second);
    return looked_at ? std::optional(std::move(key)) : std::nullopt;
  }

  void count(const std::optional<HourlyRate>& price) {
    if (price)
      answer_.total.nano_usd_per_hour += price->nano_usd_per_hour;
    else
      ++answer_.unknown_prices;
  }

  const LeftoverView& view_;
  const Time now_;
  std::map<RunKey, KnownRun> runs_;
  std::map<RunKey, const Json*> leases_;
  std::map<std::string, const Json*> nodes_;
  std::map<std::string, std::pair<RunKey, std::string>> carriers_;  // node: of a pod, component
  std::set<std::string> shared_, ours_;  // nodes that others hold as well; uids
  Leftovers answer_;
};

}  // namespace

std::optional<LauncherView> launcher_view(const Json& lease, Time now) {
  const auto record = lease_record(lease);
  if (!record) return std::nullopt;
  LauncherView view{record->holder, record->renewed, false};
  const auto renewed = parse_time(record->renewed);
  view.lives = !record->holder.empty() && renewed && Seconds(now - *renewed) < 2 * record->duration;
  return view;
}

LeftoverView look_for_leftovers(const Kubectl& kubectl, const std::string& name_space,
                                const std::string& run) {
  LeftoverView view{.name_space = name_space, .run = run};
  const std::string space = name_space.empty() ? "" : "/namespaces/" + name_space;
  const std::string ours =
      "?labelSelector=app.kubernetes.io%2Fmanaged-by%3Dreckon%2Capp.kubernetes.io%2Fname%3Dreckon" +
      (run.empty() ? "" : "%2Capp.kubernetes.io%2Finstance%3D" + run);
  const auto look = [&](Json& list, const std::string& path, const char* what) {
    try {
      list = kubectl.raw(path);
    } catch (const KubectlError& error) {
      if (error.failure() != KubectlFailure::forbidden) throw;
      list = Json();
      view.not_seen.push_back(fmt::format("without {}: {}", what, error.what()));
    }
  };
  // Of all namespaces, who may not look at the runs may look at nothing.
  view.runs = kubectl.raw("/api/v1" + space + "/configmaps" + ours + "%2C%21reckon%2Fattempt");
  look(view.jobs, "/apis/batch/v1" + space + "/jobs" + ours, "Jobs");
  look(view.pods, "/api/v1" + space + "/pods" + ours, "pods");
  look(view.claims, "/api/v1" + space + "/persistentvolumeclaims" + ours, "volume claims");
  look(view.leases, "/apis/coordination.k8s.io/v1" + space + "/leases" + ours,
       "runs whose launcher is gone");
  look(view.nodes, "/api/v1/nodes", "nodes that were cordoned");
  std::set<std::string> nodes;
  for (const Json& pod : items_of(view.pods))
    if (!has_ended(pod)) nodes.insert(text_at(pod, "/spec/nodeName"));
  nodes.erase("");
  view.other_pods = {{"items", Json::array()}};
  for (const std::string& node : nodes) {
    Json list;
    look(list, "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node, "other pods on the nodes");
    if (list.is_null()) {
      view.other_pods = Json();
      break;
    }
    for (const Json& pod : items_of(list)) view.other_pods["items"].push_back(pod);
  }
  return view;
}

Leftovers leftovers_of(const LeftoverView& view, Time now) {
  return LeftoverSearch(view, now).answer();
}

}  // namespace reckon::kubernetes
