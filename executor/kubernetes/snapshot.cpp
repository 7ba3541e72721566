#include "executor/kubernetes/snapshot.h"

#include <fmt/format.h>

namespace reckon::kubernetes {
namespace {

/// What of a pod says what it holds and whether it runs; the rest would be megabytes.
Json essence_of_pod(const Json& pod) {
  Json containers = Json::array();
  const auto spec = pod.value("spec", Json::object());
  for (const Json& c : spec.value("containers", Json::array()))
    containers.push_back({{"resources", c.value("resources", Json::object())}});
  return {{"kind", "Pod"},
          {"metadata", pod.value("metadata", Json::object())},
          {"spec", {{"nodeName", spec.value("nodeName", "")}, {"containers", containers}}},
          {"status", {{"phase", pod.value("status", Json::object()).value("phase", "")}}}};
}

}  // namespace

Snapshot snapshot_of(const Kubectl& kubectl, const std::string& name_space) {
  Snapshot snapshot;
  Json items = Json::array();
  const Json nodes = kubectl.raw("/api/v1/nodes");
  const auto add_list = [&](const Json& list, const char* kind) {
    for (Json item : list.at("items")) {
      item["kind"] = kind;  // lists leave it out of their items
      items.push_back(item["kind"] == "Pod" ? essence_of_pod(item) : std::move(item));
    }
  };
  add_list(nodes, "Node");
  // Who may not see all namespaces may see one's own.
  const auto raw = [&](const std::string& path, const std::string& own) {
    try {
      return kubectl.raw(path);
    } catch (const KubectlError& error) {
      if (error.failure() != KubectlFailure::forbidden || own.empty()) throw;
      return kubectl.raw(own);
    }
  };
  const auto look = [&](const std::string& path, const char* what, const auto& take,
                        const std::string& own = "") {
    try {
      take(raw(path, own));
    } catch (const KubectlError& error) {
      if (error.failure() == KubectlFailure::missing) return;
      if (error.failure() != KubectlFailure::forbidden) throw;
      snapshot.not_seen.push_back(fmt::format("without {}: {}", what, error.what()));
    }
  };
  const auto own = [&](const char* kind) {
    return name_space.empty() ? "" : fmt::format("/api/v1/namespaces/{}/{}", name_space, kind);
  };
  look(
      "/api/v1/pods", "what runs and waits", [&](const Json& l) { add_list(l, "Pod"); },
      own("pods"));
  look(
      "/api/v1/resourcequotas", "quotas", [&](const Json& l) { add_list(l, "ResourceQuota"); },
      own("resourcequotas"));
  look("/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status",
       "the autoscaler's status", [&](Json map) {
         map["kind"] = "ConfigMap";
         items.push_back(std::move(map));
       });
  snapshot.list = Json{{"kind", "List"}, {"items", std::move(items)}}.dump();
  return snapshot;
}

}  // namespace reckon::kubernetes
