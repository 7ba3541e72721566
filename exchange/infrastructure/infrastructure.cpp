#include "exchange/infrastructure/infrastructure.h"

#include <fmt/format.h>

#include <algorithm>

#include "exchange/infrastructure/writers.h"

namespace reckon {
namespace {

struct Writer {
  Infrastructure tool;
  const char* service;  // of catalogs/services.yaml
  InfrastructureText (*write)(const CloudCluster&, Refusals&);
};
constexpr std::array kWriters{
    Writer{Infrastructure::terraform, "gke", infrastructure::terraform_gke},
    Writer{Infrastructure::terraform, "eks", infrastructure::terraform_eks},
    Writer{Infrastructure::terraform, "aks", infrastructure::terraform_aks},
    Writer{Infrastructure::eksctl, "eks", infrastructure::eksctl},
    Writer{Infrastructure::karpenter, "eks", infrastructure::karpenter},
    Writer{Infrastructure::aks, "aks", infrastructure::aks}};

std::string services_of(Infrastructure tool) {
  std::string text;
  for (const Writer& writer : kWriters)
    if (writer.tool == tool) text += fmt::format("{}{}", text.empty() ? "" : ", ", writer.service);
  return text;
}

}  // namespace

Expected<InfrastructureText> infrastructure_text(Infrastructure tool, const CloudCluster& cluster,
                                                 const Places& places) {
  const ServiceRules& service = cluster.plan->service;
  Refusals refused(fmt::format("export {}", to_text(tool)), places, "workload");
  const auto* writer = std::ranges::find_if(kWriters, [&](const Writer& w) {
    return w.tool == tool && w.service == to_text(service.id);
  });
  if (writer == kWriters.end()) {
    refused.add("cluster.service", service.called,
                fmt::format("cluster: {{service: ...}} of {}", services_of(tool)));
    return tl::unexpected(refused.take());
  }
  if (cluster.plan->karpenter && tool != Infrastructure::karpenter)
    refused.add("cluster.autoscaler", "nodes that Karpenter makes",
                "reckon export karpenter, or autoscaler: cluster_autoscaler");
  if (cluster.plan->node_auto_provisioning)
    refused.add("cluster.autoscaler", "node pools that node auto-provisioning makes",
                "autoscaler: cluster_autoscaler");
  if (cluster.plan->slurm)
    refused.add("cluster.autoscaler", "machines that Slurm powers on and off",
                "autoscaler: cluster_autoscaler, or leave it out");
  for (const CloudPool& p : cluster.pools)
    if (is_flex_start(p.pool->provisioning_model) && tool != Infrastructure::terraform)
      refused.add("cluster.pools." + p.pool->name + ".provisioning", "flex-start",
                  "reckon export gcloud");
  for (const CloudPool& p : cluster.pools)
    if (!p.sold)
      refused.add("cluster.pools." + p.pool->name + ".machine",
                  "a machine of dimensions of its own",
                  fmt::format("a type of {}: reckon catalog list machines {}",
                              cluster.plan->provider.name, cluster.plan->provider.name));
  InfrastructureText text = writer->write(cluster, refused);
  if (!refused.empty()) return tl::unexpected(refused.take());
  return text;
}

}  // namespace reckon
