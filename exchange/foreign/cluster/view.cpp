#include "exchange/foreign/cluster/view.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "exchange/foreign/cluster/reader.h"
#include "sim/base/kubernetes_quantity.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

/// What all containers of a pod ask for.
double asked(const Json& pod, const std::string& resource) {
  double sum = 0;
  const Json::json_pointer containers("/spec/containers");
  if (!pod.contains(containers)) return 0;
  for (const Json& c : pod.at(containers))
    for (const char* which : {"/resources/limits", "/resources/requests"}) {
      const Json::json_pointer at(which);
      if (!c.contains(at)) continue;
      const double wanted = amount(c.at(at), resource);
      sum += wanted;
      if (wanted > 0) break;
    }
  return sum;
}

}  // namespace

double amount(const nlohmann::json& amounts, const std::string& resource) {
  const auto at = amounts.find(resource);
  if (at == amounts.end()) return 0;
  return kubernetes_quantity(at->is_string() ? at->get<std::string>() : at->dump()).value_or(0);
}

Expected<Imported> ClusterReader::read(const Json& list, const std::string& from) {
  out_.kind = "cluster";
  out_.from = from;
  sort(list);
  count_use();
  leave_out_tainted();
  for (const SeenNode& node : nodes_) add(node);
  read_autoscaler();
  if (pools_.empty() && problems_.empty())
    mistake("no nodes are in it", "kubectl get nodes --output=json");
  if (problems_.empty()) choose();
  if (!problems_.empty()) return tl::unexpected(std::move(problems_));
  say_what_waits();
  return std::move(out_);
}

void ClusterReader::sort(const Json& list) {
  for (const Json& item : list.at("items")) {
    const std::string kind = text_at(item, "/kind");
    if (kind == "Node")
      nodes_.push_back(seen_node(item, catalog_));
    else if (kind == "Pod")
      pods_.push_back(item);
    else if (kind == "ResourceQuota")
      quotas_.push_back(item);
    else if (kind == "ConfigMap" && text_at(item, "/metadata/name").ends_with("-status"))
      status_ = text_at(item, "/data/status");
    else
      out_.left_out.push_back(fmt::format("{} {}", kind, text_at(item, "/metadata/name")));
  }
  for (SeenNode& node : nodes_)
    if (node.devices > 0 && node.accelerator.empty()) node.accelerator = hinted();
}

/// Pods of the job go to none of them.
void ClusterReader::leave_out_tainted() {
  std::map<std::string, int> by_taint;
  for (const SeenNode& node : nodes_)
    if (!node.taints.empty()) ++by_taint[fmt::format("{}", fmt::join(node.taints, ", "))];
  const bool any = !nodes_.empty();
  std::erase_if(nodes_, [](const SeenNode& node) { return !node.taints.empty(); });
  for (const auto& [taints, count] : by_taint)
    out_.left_out.push_back(
        fmt::format("{} nodes that pods keep away from: taint {}", count, taints));
  if (any && nodes_.empty())
    mistake("all of its nodes have taints that the pods of a job do not tolerate",
            "kubectl describe nodes shows them");
}

std::string ClusterReader::hinted() const {
  const Accelerator* found = catalog_.find_accelerator(choice_.hints.accelerator);
  return found != nullptr ? found->name : "";
}

/// Accelerators that running pods hold, by node.
void ClusterReader::count_use() {
  for (const Json& pod : pods_) {
    const std::string phase = text_at(pod, "/status/phase");
    const std::string where = text_at(pod, "/spec/nodeName");
    if (where.empty() || phase == "Succeeded" || phase == "Failed") continue;
    const auto node = std::ranges::find(nodes_, where, &SeenNode::name);
    if (node == nodes_.end() || node->resource.empty()) continue;
    in_use_[where] += int(asked(pod, node->resource));
  }
}

std::string ClusterReader::key_of(const SeenNode& node) {
  return fmt::format("{}/{}/{}/{}/{:g}/{}", node.pool, node.machine, node.accelerator, node.devices,
                     node.cores, node.spot);
}

void ClusterReader::add(const SeenNode& node) {
  const std::string key = key_of(node);
  auto pool =
      std::ranges::find_if(pools_, [&](const SeenPool& p) { return key_of(p.like) == key; });
  if (pool == pools_.end()) {
    pools_.push_back({.name = name_of(node), .like = node});
    pool = std::prev(pools_.end());
  }
  ++pool->nodes;
  if (!node.ready || node.cordoned) return;
  ++pool->ready;
  if (in_use_.find(node.name) == in_use_.end() || in_use_.at(node.name) == 0) ++pool->free;
}

/// Letters, digits and hyphens, once each.
std::string ClusterReader::name_of(const SeenNode& node) const {
  std::string name = !node.pool.empty()          ? node.pool
                     : !node.machine.empty()     ? node.machine
                     : !node.accelerator.empty() ? node.accelerator
                                                 : "nodes";
  for (char& c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) == 0
            ? '-'
            : char(std::tolower(static_cast<unsigned char>(c)));
  const bool taken = std::ranges::any_of(pools_, [&](const SeenPool& p) { return p.name == name; });
  return taken ? fmt::format("{}-{}", name, pools_.size()) : name;
}

void ClusterReader::read_autoscaler() {
  for (const ScaledGroup& group : scaled_groups(status_)) {
    const auto node =
        std::ranges::max_element(nodes_, {}, [&](const SeenNode& n) { return fit_of(group, n); });
    if (node == nodes_.end() || fit_of(group, *node) == 0) {
      out_.left_out.push_back(
          fmt::format("node group {}: up to {} nodes, none running", group.name, group.max));
      continue;
    }
    const auto pool = std::ranges::find_if(
        pools_, [&](const SeenPool& p) { return key_of(p.like) == key_of(*node); });
    pool->scaled = true;
    pool->min += group.min;
    pool->max += group.max;
    if (group.backs_off)
      assume(
          "nodes of pool {} did not come when the autoscaler asked for them; the forecast "
          "has the provider's usual delays",
          pool->name);
  }
}

void ClusterReader::say_what_waits() {
  int pods = 0;
  std::map<std::string, double> wanted;
  std::set<std::string> spaces;
  for (const Json& pod : pods_) {
    if (text_at(pod, "/status/phase") != "Pending" || !text_at(pod, "/spec/nodeName").empty())
      continue;
    ++pods;
    spaces.insert(text_at(pod, "/metadata/namespace"));
    for (const SeenPool& pool : pools_)
      if (!pool.like.resource.empty() && !wanted.contains(pool.like.resource))
        wanted[pool.like.resource] = 0;
    for (auto& [resource, sum] : wanted) sum += asked(pod, resource);
  }
  if (pods == 0) return;
  std::string devices;
  for (const auto& [resource, sum] : wanted)
    if (sum > 0) devices += fmt::format("{}{:g} {}", devices.empty() ? "" : ", ", sum, resource);
  assume("{} pods of {} wait for nodes{}{}; the forecast's job does not wait behind them", pods,
         fmt::join(spaces, ", "), devices.empty() ? "" : ", and ask for ", devices);
}

Expected<Imported> import_cluster(std::string_view json, const std::string& from,
                                  const ClusterChoice& choice, const Catalog& catalog) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list.at("items").is_array())
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {from, 0, 0},
                                       "it is no list of objects in JSON",
                                       "kubectl get nodes,pods --all-namespaces --output=json"}});
  return ClusterReader(choice, catalog).read(list, from);
}

}  // namespace reckon
