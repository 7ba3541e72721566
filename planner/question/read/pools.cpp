#include <fmt/format.h>

#include <algorithm>

#include "planner/question/reader.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"

// Pools: their sizes, parameter servers, and mixes of spot nodes with others.
namespace reckon::planner {

bool QuestionReader::can_vary_pools(const Scenario& s) {
  const std::size_t before = problems.size();
  for (const PoolSpec& pool : s.cluster.pools)
    if (pool.role == Role::chief)
      error("cluster.pools." + pool.name, "clusters with a chief are not planned yet",
            "let the workers' pool hold it: leave the chief's pool out");
  if (s.workload && !s.workload->strategy.stages.empty())
    error("workload.strategy.stages",
          "a plan has one kind of accelerator, and this pipeline has stages on several",
          "reckon simulate answers it; other stages: --set 'workload.strategy.stages=[...]'");
  return problems.size() == before;
}

void QuestionReader::read_scaling(const Scenario& s) {
  const PoolSpec& pool = worker_pool(s);
  const bool queued = pool.provisioning != ProvisioningModel::standard;
  const bool expanders = s.cluster.cluster_autoscaler.has_value();
  const bool chosen = s.cluster.autoscaler != AutoscalerKind::cluster_autoscaler || expanders;
  q_.may.as_scaled = pool.autoscaling && (queued || chosen);
  if (!q_.may.as_scaled && !queued) return;
  // Who decides, and what else than `plan.vary` asks for another decision.
  const std::string at = "cluster.pools." + pool.name;
  const std::string sweep = "compare by `reckon compare FILE --sweep ";
  const std::string who = queued ? fmt::format("provisioning {}", to_text(pool.provisioning))
                          : s.cluster.autoscaler == AutoscalerKind::cluster_autoscaler
                              ? std::string("the expander of the cluster-autoscaler")
                              : std::string(called(s.cluster.autoscaler));
  const auto refuse = [&](const char* key, const std::string& what, const std::string& hint) {
    if (varied(key)) error(fmt::format("plan.vary.{}", key), what, hint);
  };
  const auto kept = [&](const char* key, const std::string& path) {
    refuse(key,
           fmt::format("under {} the pool's machine says what a pod asks for, and a plan keeps it",
                       who),
           sweep + path + "=A,B`");
  };
  kept("provider", "cluster.provider");
  kept("region", "cluster.region");
  kept("zone", "cluster.zone");
  kept("machine", at + ".machine");
  kept("accelerator", at + ".machine");
  if (!q_.may.as_scaled) return;
  const std::string buys = queued ? sweep + at + ".provisioning=standard," +
                                        std::string(to_text(pool.provisioning)) + "`"
                           : s.cluster.autoscaler == AutoscalerKind::karpenter
                               ? "karpenter.sh/capacity-type among the requirements of a NodePool"
                           : s.cluster.autoscaler == AutoscalerKind::node_auto_provisioning
                               ? "computeClass: {priorities: [{spot: true}, {spot: false}]}"
                               : sweep + at + ".pricing=spot,on_demand`";
  for (const char* key : {"pricing", "base", "fallback"})
    refuse(key, fmt::format("{} decides how nodes are bought", who), buys);
  refuse("autoscaling", fmt::format("{} makes as many nodes as the job needs", who),
         "leave plan.vary.autoscaling out");
  if (traits_of(s.workload->strategy.kind).servers && server_pool(s) != nullptr &&
      server_pool(s)->autoscaling)
    error(
        "cluster.pools." + server_pool(s)->name,
        fmt::format("a plan keeps parameter servers on nodes that stay, and {} scales these", who),
        "leave autoscaling out of their pool");
  q_.may.bounds = {PoolBounds{"0..100%", 0, 1}};
}

bool QuestionReader::autoscales(const ClusterSpec& cluster) const {
  const ServiceRules* service = planning::service_of(cluster, catalog_);
  return service != nullptr && service->scales != Scales::nothing;
}

std::string QuestionReader::service_name(const ClusterSpec& cluster) const {
  const ServiceRules* service = planning::service_of(cluster, catalog_);
  return service == nullptr ? "" : service->id.name;
}

void QuestionReader::read_bounds(const Scenario& s) {
  const auto* texts = varied("autoscaling");
  if (!texts) return;
  for (const std::string& text : *texts) {
    PoolBounds bounds;
    if (text != "fixed") {
      const std::size_t dots = text.find("..");
      bounds.text = text;
      bounds.least = *parse_fraction(std::string_view(text).substr(0, dots));
      bounds.most = dots == std::string::npos
                        ? bounds.least
                        : *parse_fraction(std::string_view(text).substr(dots + 2));
    }
    q_.may.bounds.push_back(std::move(bounds));
  }
  const bool scaled = std::ranges::any_of(q_.may.bounds, &PoolBounds::autoscaled);
  if (scaled && !autoscales(s.cluster))
    error("plan.vary.autoscaling",
          fmt::format("service {} does not autoscale node pools", service_name(s.cluster)),
          "a Kubernetes service: " + planning::autoscaling_services(catalog_));
}

bool QuestionReader::has_servers(const Scenario& s) const {
  return q_.may.kinds.empty() ? traits_of(s.workload->strategy.kind).servers
                              : std::ranges::any_of(q_.may.kinds, [](StrategyKind kind) {
                                  return traits_of(kind).servers;
                                });
}

void QuestionReader::read_server_machines(const Scenario& s) {
  const auto* names = varied("parameter_server_machine");
  const bool counted = !q_.may.parameter_servers.empty() && q_.may.parameter_servers.back() > 0;
  if (colocates_servers(q_)) {
    if (names)
      error("plan.vary.parameter_server_machine",
            "colocated parameter servers have no machine of their own", "leave it out");
    return;
  }
  if (!names && counted && has_servers(s) && server_pool(s) == nullptr)
    error("plan.vary.parameter_servers",
          "the parameter servers have no machine: the cluster has no pool for them",
          "plan: {vary: {parameter_server_machine: n1-highmem-8}}, or 0 servers, which run beside "
          "the workers");
  if (!names) return;
  const auto known = [&](const std::string& name) {
    return std::ranges::any_of(q_.may.providers, [&](const Provider& provider) {
      return catalog_.find_machine(provider, name) != nullptr;
    });
  };
  for (const std::string& name : *names)
    if (!known(name))
      error("plan.vary.parameter_server_machine", fmt::format("unknown machine '{}'", name),
            "reckon catalog list machines");
  if (!has_servers(s))
    error("plan.vary.parameter_server_machine", "no strategy with parameter servers may be taken",
          "plan: {vary: {strategy: [parameter_server], parameter_servers: 1..8}}");
  if (server_pool(s) == nullptr && q_.may.parameter_servers.empty())
    error("plan.vary.parameter_server_machine", "how many parameter servers is not said",
          "plan: {vary: {parameter_servers: 1..8}}");
  q_.may.server_machines = *names;
}

void QuestionReader::read_mixes(const Scenario& s) {
  const auto *bases = varied("base"), *fallbacks = varied("fallback");
  if (!bases && !fallbacks) return;
  const char* at = bases ? "plan.vary.base" : "plan.vary.fallback";
  if (std::ranges::count(q_.may.pricing, CapacityType::spot) == 0)
    error(at, "mixes are of spot nodes with others, and no spot nodes may be bought",
          "plan: {vary: {pricing: [spot, on_demand]}}");
  const PoolSpec& own = worker_pool(s);
  if (s.cluster.pools.size() > 1)
    error(at, "mixes beside other pools than the workers' are not planned yet",
          "leave base and fallback out");
  if (!q_.may.hardware && (own.tpu || !std::holds_alternative<MachineByName>(own.machine)))
    error(at, "mixes of TPU slices or machines of your own are not planned yet",
          "leave base and fallback out");
  if (fallbacks && !autoscales(s.cluster))
    error("plan.vary.fallback",
          fmt::format(
              "service {} does not autoscale node pools, so no pool can be the fallback of another",
              service_name(s.cluster)),
          "a Kubernetes service: " + planning::autoscaling_services(catalog_));
  if (bases)
    for (const std::string& text : *bases) {
      const std::size_t space = text.find(' ');
      q_.may.bases.push_back({*parse_fraction(std::string_view(text).substr(0, space)),
                              text.substr(space + 1) == "reserved" ? CapacityType::reserved
                                                                   : CapacityType::on_demand});
    }
  if (!fallbacks) return;
  q_.may.fallbacks = *fallbacks;
  if (s.disruptions.shortage_off)
    q_.assumed.push_back(
        "spot capacity is always available (`disruptions: {shortage: none}`): on-demand nodes "
        "replace only spot nodes that start slowly");
}

}  // namespace reckon::planner
