#include <fmt/format.h>

#include "exchange/infrastructure/writers.h"
#include "sim/base/text/shell_word.h"

// Commands of az that create an AKS cluster and its node pools. Options: Azure CLI 2, `az aks
// create` and `az aks nodepool add` [learn.microsoft.com/cli/azure/aks/nodepool]. AKS installs the
// drivers of GPUs by itself.
namespace reckon::infrastructure {
namespace {

/// One command, an option a line.
std::string az_command(const std::string& head, const std::vector<std::string>& options) {
  std::string text = head;
  for (const std::string& option : options) text += " \\\n    " + option;
  return text + '\n';
}

std::string option(const char* name, const std::string& value) {
  return fmt::format("--{} {}", name, shell_word(value));
}

std::string pool_commands(const CloudCluster& cluster, const CloudPool& p) {
  const PlannedPool& pool = *p.pool;
  const std::string group = "--resource-group \"$RESOURCE_GROUP\"";
  const std::string near = fmt::format("{}-{}", cluster.name, pool.name);
  std::string text;
  if (p.compact)
    text += az_command("az ppg create",
                       {group, option("name", near), option("location", cluster.plan->region)}) +
            '\n';
  std::vector<std::string> options{
      group, option("cluster-name", cluster.name), option("name", pool.name),
      option("node-vm-size", pool.machine.name), fmt::format("--node-count {}", p.initial)};
  if (pool.autoscaling) {
    options.emplace_back("--enable-cluster-autoscaler");
    options.push_back(fmt::format("--min-count {}", p.min));
    options.push_back(fmt::format("--max-count {}", p.max));
  }
  if (p.spot) options.emplace_back("--priority Spot --eviction-policy Delete --spot-max-price -1");
  std::string taints;  // those of spot nodes are AKS' own
  for (const NodeTaint& taint : p.taints)
    if (!taint.key.starts_with("kubernetes.azure.com/"))
      taints += (taints.empty() ? "" : ",") + to_text(taint);
  if (!taints.empty()) options.push_back(option("node-taints", taints));
  if (const std::string zone = azure_zone(*cluster.plan); !zone.empty())
    options.push_back(option("zones", zone));
  if (p.compact) options.push_back(option("ppg", near));
  if (p.reserved != Reserved::none) options.push_back("--crg-id \"$CAPACITY_RESERVATION_GROUP\"");
  return text + az_command("az aks nodepool add", options);
}

}  // namespace

InfrastructureText aks(const CloudCluster& cluster, Refusals& refused) {
  refuse_azure_names(cluster, refused);
  InfrastructureText out;
  out.text = ": \"${RESOURCE_GROUP:?name of the resource group}\"\n";
  for (const CloudPool& p : cluster.pools)
    if (p.reserved != Reserved::none) {
      out.text += ": \"${CAPACITY_RESERVATION_GROUP:?id of the capacity reservation group}\"\n";
      break;
    }
  // A small pool for the cluster's own pods; Cilium enforces the NetworkPolicy of the job's.
  out.text +=
      '\n' + az_command("az aks create",
                        {"--resource-group \"$RESOURCE_GROUP\"", option("name", cluster.name),
                         option("location", cluster.plan->region),
                         "--node-count 1 --node-vm-size Standard_D2s_v5",
                         "--network-plugin azure --network-plugin-mode overlay",
                         "--network-dataplane cilium", "--generate-ssh-keys"});
  for (const CloudPool& p : cluster.pools) out.text += '\n' + pool_commands(cluster, p);
  note_bucket(out, cluster, "az storage container create --account-name ACCOUNT --name NAME");
  return out;
}

}  // namespace reckon::infrastructure
