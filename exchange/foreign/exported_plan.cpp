#include "exchange/foreign/exported_plan.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "exchange/foreign/foreign_file.h"
#include "exchange/foreign/kubernetes_replicas.h"
#include "sim/base/text/printable.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {
namespace {

constexpr std::string_view kSuffix = "-plan";  // kubernetes.cpp

struct ExportedText {
  std::string config_map, scenario;
};

std::string key_text(const YamlNode& node, std::string_view key) {
  const auto* found = node.find(key);
  return found == nullptr ? "" : found->value.text;
}

std::optional<ExportedText> exported_text(const std::vector<YamlNode>& documents) {
  for (const YamlNode& document : documents) {
    const auto* metadata = document.find("metadata");
    const auto* data = document.find("data");
    if (key_text(document, "kind") != "ConfigMap" || metadata == nullptr || data == nullptr)
      continue;
    const auto* labels = metadata->value.find("labels");
    const std::string name = key_text(metadata->value, "name");
    if (labels == nullptr || !name.ends_with(kSuffix) ||
        key_text(labels->value, "app.kubernetes.io/managed-by") != "reckon")
      continue;
    if (std::string scenario = key_text(data->value, "plan.yaml"); !scenario.empty())
      return ExportedText{name, std::move(scenario)};
  }
  return std::nullopt;
}

/// Whether the manifests still ask for what the plan has: ranks, servers, and its own program.
bool agrees(const Plan& plan, const ScenarioFile& file, const ReplicasOfJob& job) {
  const PlannedStrategy& strategy = plan.only_job().strategy;
  int devices = 0, ranks = 0, servers = 0;
  for (const Replicas& r : job.replicas) {
    (r.role == Role::parameter_server ? servers : ranks) += r.pods;
    if (r.role != Role::parameter_server) devices += r.pods * r.pod.devices;
  }
  const int wanted = strategy.accelerators();
  const bool same_size = devices > 0 ? devices == wanted : ranks == strategy.workers;
  const bool own_servers = plan.pool_with(Role::parameter_server) != nullptr;
  if (!same_size || servers != (own_servers ? strategy.server_count() : 0)) return false;
  if (!file.scenario.workload || !file.scenario.workload->container) return true;
  const auto& container = *file.scenario.workload->container;
  for (const Replicas& r : job.replicas)
    if (r.pod.container.image != container.image || r.pod.container.command != container.command)
      return false;
  return true;
}

}  // namespace

Expected<std::optional<std::string>> exported_plan_of(std::string_view text,
                                                      const std::string& file,
                                                      const Catalog& catalog) {
  const auto documents = parse_documents(text, file);
  if (!documents) return tl::unexpected(documents.error());
  const auto exported = exported_text(*documents);
  if (!exported) return std::nullopt;
  const auto scenario = parse_scenario(exported->scenario, exported->config_map);
  if (!scenario) return std::nullopt;
  const auto plan = make_plan(*scenario, catalog);
  const auto job = replicas_of_manifests(text, file, catalog);
  if (!job) return tl::unexpected(job.error());
  if (!plan || plan->jobs.size() != 1 || !agrees(*plan, *scenario, *job)) return std::nullopt;
  return fmt::format(
      "# Written by `reckon import kubernetes`: the scenario that `reckon export` put into "
      "ConfigMap\n"
      "# {} of {}; ranks, image and command of the manifests are still its own.\n{}",
      exported->config_map, printable(file), exported->scenario);
}

}  // namespace reckon
