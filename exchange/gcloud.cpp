#include "exchange/gcloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/base/text/shell_word.h"

namespace reckon {
namespace {

/// TPU v2 and v3 are resources of pods (cloud-tpus.google.com/v2), not nodes of a pool.
bool tpu_without_nodes(const PlannedPool& pool) {
  return pool.slice && (pool.slice->accelerator == "TPU-v2" || pool.slice->accelerator == "TPU-v3");
}

/// One command, a flag a line, each line but the last ending with a backslash. `name` is what it
/// makes; the reader of scenarios lets no name begin with '-'.
std::string command(const char* head, const std::string& name,
                    const std::vector<std::string>& flags) {
  std::string text = fmt::format("{} {}", head, shell_word(name));
  for (const std::string& flag : flags) text += " \\\n    " + shell_word(flag);
  return text + '\n';
}

std::string accelerator_flag(const PlannedPool& pool) {
  return fmt::format("--accelerator=type={},count={}", cloud_name_of(*pool.accelerator),
                     pool.accelerators_per_node);
}

std::string pool_command(const Plan& plan, const PlannedPool& pool, const std::string& where) {
  std::vector<std::string> flags{"--cluster=" + plan.name, where,
                                 "--machine-type=" + pool.machine.name};
  if (pool.slice)
    flags.push_back(fmt::format("--tpu-topology={}", fmt::join(pool.slice->torus, "x")));
  else if (pool.accelerator)
    flags.push_back(accelerator_flag(pool));
  const int hosts = pool.slice ? pool.slice->hosts : 1;
  flags.push_back(fmt::format("--num-nodes={}", pool.nodes_initial * hosts));
  if (pool.autoscaling) {
    flags.emplace_back("--enable-autoscaling");
    flags.push_back(fmt::format("--min-nodes={}", pool.nodes_min * hosts));
    flags.push_back(fmt::format("--max-nodes={}", pool.nodes_max * hosts));
  }
  if (pool.pricing == CapacityType::spot) flags.emplace_back("--spot");
  // "Run a large-scale workload with flex-start with queued provisioning" has all of these.
  if (is_flex_start(pool.provisioning_model))
    flags.insert(flags.end(), {"--flex-start", "--location-policy=ANY",
                               "--reservation-affinity=none", "--no-enable-autorepair"});
  if (pool.provisioning_model == ProvisioningModel::flex_start_queued)
    flags.emplace_back("--enable-queued-provisioning");
  if (pool.max_run_duration)
    flags.push_back(fmt::format("--max-run-duration={:.0f}s", pool.max_run_duration->count()));
  return command("gcloud container node-pools create", pool.name, flags);
}

}  // namespace

std::string cloud_name_of(const Accelerator& accelerator) {
  for (const std::string& alias : accelerator.aliases)
    if (alias.starts_with("nvidia-")) return alias;
  return accelerator.name;
}

Expected<std::string> gcloud_commands(const ScenarioFile& file, const Plan& plan) {
  if (plan.service.cluster_tool != "gcloud")
    return tl::unexpected(Diagnostics{
        {.at = file.places.find("cluster.service"),
         .what = fmt::format("gcloud makes node pools of GKE, not of {}", to_text(plan.service.id)),
         .hint = "cluster: {provider: gcp, service: gke, ...}"}});
  if (plan.node_auto_provisioning)
    return tl::unexpected(Diagnostics{
        {.at = file.places.find("cluster.autoscaler"),
         .what = "`export gcloud` writes node pools, and node auto-provisioning makes its own",
         .hint = "autoscaler: cluster_autoscaler"}});
  const std::string where = plan.zone.empty() ? "--region=" + plan.region : "--zone=" + plan.zone;
  // A small pool for the cluster's own pods; and what Cloud TPUs needed before they were nodes.
  std::vector<std::string> flags{where, "--num-nodes=1", "--machine-type=e2-standard-2"};
  if (std::any_of(plan.pools.begin(), plan.pools.end(), tpu_without_nodes))
    flags.insert(flags.end(), {"--enable-ip-alias", "--enable-tpu"});
  std::string text = command("gcloud container clusters create", plan.name, flags);
  for (const PlannedPool& pool : plan.pools)
    if (!tpu_without_nodes(pool)) text += '\n' + pool_command(plan, pool, where);
  return text;
}

}  // namespace reckon
