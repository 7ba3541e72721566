#include "executor/kubernetes/pods/node_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/kubernetes/json_at.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "sim/base/kubernetes_quantity.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

Resources resources_of(const Json& object) {
  Resources resources;
  for (const auto& [name, amount] : object.items()) {
    const auto value = quantity_of(amount.is_string() ? amount.get<std::string>() : amount.dump());
    if (value) resources[name] = *value;
  }
  return resources;
}

struct Node {
  std::string name;
  Resources left;
  std::map<std::string, std::string> labels;
  Json taints = Json::array();
  bool usable = false;
};

Node node_of(const Json& object) {
  Node node;
  const NodeView view = node_view(object);
  node.name = view.name;
  node.usable = view.ready && !view.cordoned;
  node.left = resources_of(value_at(object, "/status/allocatable", Json::object()));
  node.taints = value_at(object, "/spec/taints", Json::array());
  const Json labels = value_at(object, "/metadata/labels", Json::object());
  for (const auto& [key, value] : labels.items())
    if (value.is_string()) node.labels[key] = value;
  return node;
}

bool tolerates(const Json& toleration, const Json& taint) {
  const std::string key = toleration.value("key", ""), effect = toleration.value("effect", "");
  if (!key.empty() && key != taint.value("key", "")) return false;
  if (!effect.empty() && effect != taint.value("effect", "")) return false;
  return toleration.value("operator", "Equal") == "Exists" ||
         toleration.value("value", "") == taint.value("value", "");
}

/// Why a pod cannot be placed on the node, whatever else runs there; "": nothing keeps it away.
std::string obstacle(const PodDemand& pod, const Node& node) {
  if (!node.usable) return "not ready or cordoned";
  for (const auto& [key, value] : pod.selector) {
    const auto at = node.labels.find(key);
    if (at == node.labels.end() || at->second != value)
      return fmt::format("no label {}={}", key, value);
  }
  for (const Json& taint : node.taints) {
    const std::string effect = taint.value("effect", "");
    if (effect != "NoSchedule" && effect != "NoExecute") continue;
    // Of a node that is ready it is about to be taken away: the cluster does so a while later.
    if (taint.value("key", "") == "node.kubernetes.io/not-ready") continue;
    const bool tolerated = std::ranges::any_of(
        pod.tolerations, [&](const Json& toleration) { return tolerates(toleration, taint); });
    if (!tolerated) return fmt::format("its taint {}", taint.value("key", ""));
  }
  return "";
}

std::string amount_text(const std::string& resource, double amount) {
  if (resource == "cpu") return fmt::format("{:g} cores", amount);
  if (resource == "memory") return format_bytes(Bytes{amount}) + " of memory";
  return fmt::format("{:g} {}", amount, resource);
}

/// What the node lacks for one more of the pods; "": it has room.
std::string shortage(const PodDemand& pod, const Node& node) {
  for (const auto& [resource, wanted] : pod.requests) {
    const auto at = node.left.find(resource);
    const double there = at != node.left.end() ? at->second : 0;
    constexpr double kRounding = 1e-9;
    if (wanted > there * (1 + kRounding) + kRounding)
      return fmt::format("{} where {} is asked for", amount_text(resource, there),
                         amount_text(resource, wanted));
  }
  return "";
}

/// The same to a scheduler: where an older cluster has a Job for each rank there are hundreds.
bool alike(const PodDemand& a, const PodDemand& b) {
  return a.requests == b.requests && a.selector == b.selector && a.tolerations == b.tolerations;
}

std::string misfit_text(const PodDemand& pod, int others, const std::vector<Node>& nodes) {
  std::map<std::string, int> reasons;
  for (const Node& node : nodes) {
    const std::string why = obstacle(pod, node);
    ++reasons[why.empty() ? shortage(pod, node) : why];
  }
  const std::string more =
      others == 0 ? ""
                  : fmt::format(", nor of {} other job{} like it", others, others == 1 ? "" : "s");
  std::string text =
      fmt::format("no node has room for a pod of {}{} (of {} nodes", pod.name, more, nodes.size());
  for (const auto& [why, count] : reasons) text += fmt::format("; {}: {}", count, why);
  return text + ')';
}

}  // namespace

std::optional<double> quantity_of(const std::string& text) { return kubernetes_quantity(text); }

std::vector<PodDemand> demands_of(const std::vector<Json>& manifests) {
  std::vector<PodDemand> demands;
  for (const Json& manifest : manifests) {
    if (manifest.value("kind", "") != "Job") continue;
    PodDemand demand;
    demand.name = "job " + value_at(manifest, "/metadata/name", "").get<std::string>();
    demand.count = value_at(manifest, "/spec/parallelism", 1).get<int>();
    const Json spec = value_at(manifest, "/spec/template/spec", Json::object());
    for (const Json& container : spec.value("containers", Json::array())) {
      // Where only a limit is given it is the request too.
      Resources asked = resources_of(value_at(container, "/resources/limits", Json::object()));
      for (const auto& [name, amount] :
           resources_of(value_at(container, "/resources/requests", Json::object())))
        asked[name] = amount;
      for (const auto& [name, amount] : asked) demand.requests[name] += amount;
    }
    demand.requests["pods"] = 1;
    const Json selector = spec.value("nodeSelector", Json::object());
    for (const auto& [key, value] : selector.items())
      demand.selector[key] = value.get<std::string>();
    demand.tolerations = spec.value("tolerations", Json::array());
    demands.push_back(std::move(demand));
  }
  return demands;
}

std::vector<std::string> nodes_for(const PodDemand& demand, const Json& list) {
  std::vector<std::string> names;
  for (const Json& object : list.value("items", Json::array())) {
    const Node node = node_of(object);
    if (obstacle(demand, node).empty() && shortage(demand, node).empty())
      names.push_back(node.name);
  }
  return names;
}

Room room_for(const std::vector<PodDemand>& demands, const Json& list) {
  std::vector<Node> nodes;
  for (const Json& node : list.value("items", Json::array())) nodes.push_back(node_of(node));
  const std::vector<Node> empty = nodes;
  std::vector<const PodDemand*> order;
  for (const PodDemand& demand : demands) order.push_back(&demand);
  const auto cpu = [](const PodDemand* d) {
    const auto at = d->requests.find("cpu");
    return at != d->requests.end() ? at->second : 0;
  };
  std::ranges::sort(order, [&](auto* a, auto* b) {
    return std::pair(-cpu(a), a->name) < std::pair(-cpu(b), b->name);
  });
  std::vector<std::pair<const PodDemand*, int>> misfits;  // with the number of others like it
  Room room;
  room.nodes = int(empty.size());
  room.not_ready = int(std::ranges::count_if(empty, [](const Node& n) { return !n.usable; }));
  for (const PodDemand* demand : order) {
    room.pods += demand->count;
    const bool fits_somewhere = std::ranges::any_of(empty, [&](const Node& node) {
      return obstacle(*demand, node).empty() && shortage(*demand, node).empty();
    });
    if (!fits_somewhere) {
      const auto same = std::ranges::find_if(
          misfits, [&](const auto& misfit) { return alike(*misfit.first, *demand); });
      if (same != misfits.end())
        ++same->second;
      else
        misfits.emplace_back(demand, 0);
      continue;
    }
    for (int k = 0; k < demand->count; ++k) {
      const auto node = std::ranges::find_if(nodes, [&](const Node& n) {
        return obstacle(*demand, n).empty() && shortage(*demand, n).empty();
      });
      if (node == nodes.end()) break;
      for (const auto& [resource, amount] : demand->requests) node->left[resource] -= amount;
      ++room.placed;
    }
  }
  for (const auto& [demand, others] : misfits)
    room.misfits.push_back(misfit_text(*demand, others, empty));
  return room;
}

}  // namespace reckon::kubernetes
