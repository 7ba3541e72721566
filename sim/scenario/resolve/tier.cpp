#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/resolve/draft.h"

// A scale tier is a name for pools: the catalog says for which.
namespace reckon::planning {
namespace {

constexpr std::string_view kTierPath = "cluster.scale_tier";

PoolSpec spec_of_part(const ScaleTier::Part& part, const Catalog& catalog) {
  PoolSpec pool;
  pool.name = part.role;
  pool.role = from_text<Role>(part.role);
  if (!part.machine.empty()) pool.machine = MachineByName{part.machine};
  if (!part.accelerator.empty())
    pool.accelerator = AcceleratorSpec{part.accelerator, part.accelerator_count};
  if (!part.slice.empty())
    pool.tpu = TpuSpec{catalog.find_slice(part.slice)->accelerator, part.slice};
  pool.nodes = {part.count, part.count, part.count};
  return pool;
}

/// "STANDARD_1 (chief: 1 x n1-highcpu-8, worker: 4 x n1-highcpu-8)".
std::string in_words(const ScaleTier& tier) {
  std::vector<std::string> parts;
  for (const ScaleTier::Part& part : tier.parts)
    parts.push_back(fmt::format(
        "{}: {} x {}{}", part.role, part.count, part.machine.empty() ? part.slice : part.machine,
        part.accelerator.empty()
            ? ""
            : fmt::format(" with {} x {}", part.accelerator_count, part.accelerator)));
  return fmt::format("{} ({})", tier.name, parts.empty() ? "your own pools" : join(parts, ", "));
}

std::string tiers_of(const Catalog& catalog, const Service& service) {
  std::vector<std::string> words;
  for (const ScaleTier& tier : catalog.tiers)
    if (tier.service == service) words.push_back(in_words(tier));
  return join(words, ", ");
}

std::string services_with_tiers(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const ServiceRules& s : catalog.services)
    if (std::ranges::find(catalog.tiers, s.id, &ScaleTier::service) != catalog.tiers.end())
      names.push_back(s.id.name);
  return join(names, ", ");
}

}  // namespace

ScenarioFile with_pools_of_tier(const ScenarioFile& given, const Catalog& catalog,
                                Diagnostics& errors) {
  const ClusterSpec& cluster = given.scenario.cluster;
  if (cluster.scale_tier.empty()) return given;
  const auto error = [&](std::string_view path, std::string what, std::string hint) {
    errors.push_back({Severity::error, given.places.find(path), std::move(what), std::move(hint)});
  };
  ScenarioFile file = given;
  const ServiceRules* rules = planning::service_of(cluster, catalog);
  if (rules == nullptr) return given;
  const Service& service = rules->id;
  const ScaleTier* tier = catalog.find_tier(service, cluster.scale_tier);
  std::vector<std::string> names;
  for (const ScaleTier& t : catalog.tiers)
    if (t.service == service) names.push_back(t.name);
  if (names.empty()) {
    error(
        kTierPath, fmt::format("service {} has no scale tiers", to_text(service)),
        fmt::format("services that have: {}; or give pools instead", services_with_tiers(catalog)));
  } else if (tier == nullptr) {
    error(kTierPath,
          fmt::format("unknown scale tier '{}'{}", cluster.scale_tier,
                      did_you_mean(cluster.scale_tier, names)),
          fmt::format("scale tiers: {}", tiers_of(catalog, service)));
  } else if (tier->parts.empty() && cluster.pools.empty()) {
    error(kTierPath, fmt::format("scale tier {} leaves the machines to you", tier->name),
          "add pools: [{name: master, role: chief, machine: standard_gpu}, ...]");
  } else if (!tier->parts.empty() && !cluster.pools.empty()) {
    error("cluster.pools", fmt::format("scale tier {} brings its own pools", tier->name),
          fmt::format("leave pools out, or take scale_tier: CUSTOM\n{}", in_words(*tier)));
  } else {
    if (!tier->parts.empty()) file.places.set("cluster.pools", given.places.find(kTierPath));
    for (const ScaleTier::Part& part : tier->parts)
      file.scenario.cluster.pools.push_back(spec_of_part(part, catalog));
  }
  return file;
}

}  // namespace reckon::planning
