#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/kubernetes/pods.h"

// Where a job's pods may run, and what each asks of its node.
namespace reckon {

Allocatable allocatable_of(const Machine& machine) {
  struct Tier {
    double limit, reserved;  // share of what lies between the last tier and this one
  };
  const auto reserved = [](double amount, std::initializer_list<Tier> tiers) {
    double sum = 0, from = 0;
    for (const Tier& tier : tiers) {
      sum += tier.reserved * std::clamp(amount - from, 0.0, tier.limit - from);
      from = tier.limit;
    }
    return sum;
  };
  constexpr double kAll = 1e18, kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;
  const double cores = machine.vcpus;
  const double cpu = reserved(cores, {{1, 0.06}, {2, 0.01}, {4, 0.005}, {kAll, 0.0025}});
  const double bytes = machine.memory.value.v;
  const double memory = bytes < kGiB ? 255 * kMiB
                                     : reserved(bytes, {{4 * kGiB, 0.25},
                                                        {8 * kGiB, 0.2},
                                                        {16 * kGiB, 0.1},
                                                        {128 * kGiB, 0.06},
                                                        {kAll, 0.02}});
  constexpr double kEviction = 100 * kMiB;
  return {std::int64_t(std::floor(1000 * (cores - cpu))),
          Bytes{std::max(0.0, bytes - memory - kEviction)}};
}

namespace kubernetes {
namespace {

// What a service's own pods (logs, metrics, device plugins) ask of a node; assumed: a node of GKE
// with GPUs asks for 0.3 to 0.5 of a core and 300 to 500 MiB.
constexpr std::int64_t kSystemCpuMilli = 500;
constexpr double kSystemMemory = 512.0 * 1024 * 1024;
/// The fallback pool of the group's; nullptr: none.
const PlannedPool* fallback_of(const Job& job, const PodGroup& group) {
  const auto preferred = std::size_t(group.pool - job.cluster->pools.data());
  for (const PlannedPool& pool : job.cluster->pools)
    if (pool.fallback_for == preferred && !pool.node_pool) return &pool;
  return nullptr;
}

/// Where nodes of two pools will do, the preferred one before its fallback.
Json affinity_to(const Job& job, const PodGroup& group, const PlannedPool& fallback) {
  const std::string key = job.term("labels.pool");
  if (key.empty()) return Json::object();
  const auto in = [&](const Json& pools) {
    return Json{
        {"matchExpressions", Json::array({{{"key", key}, {"operator", "In"}, {"values", pools}}})}};
  };
  const std::string& preferred = group.pool->name;
  Json node;
  node["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms", Json::array({in(Json::array({preferred, fallback.name}))})}};
  node["preferredDuringSchedulingIgnoredDuringExecution"] =
      Json::array({{{"weight", 100}, {"preference", in(Json::array({preferred}))}}});
  return {{"nodeAffinity", node}};
}

Json selector_of(const Job& job, const PodGroup& group) {
  const PlannedPool& pool = *group.pool;
  Json selector = Json::object();
  const auto add = [&](std::string_view label, const std::string& value) {
    const std::string key = job.term(fmt::format("labels.{}", label));
    if (!key.empty() && !value.empty()) selector[key] = value;
  };
  if (job.owned || group.tpu_by_cores) return selector;
  // Who chooses machine and capacity type: the pod asks for its accelerator only.
  const bool chosen =
      pool.node_pool.has_value() || (job.cluster->chooses_pools() && pool.autoscaling);
  const bool alone = fallback_of(job, group) == nullptr && !chosen;
  if (alone) add("pool", pool.name);
  if (!pool.slice && !chosen) add("machine", pool.machine.name);
  if (!job.cluster->zone.empty()) add("zone", job.cluster->zone);
  if (pool.accelerator) {
    const std::string value = job.term("accelerators." + pool.accelerator->name);
    add(pool.accelerator->kind == AcceleratorKind::tpu ? "tpu" : "accelerator",
        value.empty() ? job.term("label_values.accelerator") : value);
  }
  if (pool.slice) add("tpu_topology", fmt::format("{}", fmt::join(pool.slice->torus, "x")));
  if (pool.pricing == CapacityType::spot && alone)
    for (const char* label : {"labels.spot", "labels.capacity", "labels.priority"})
      if (const std::string key = job.own_term(label); !key.empty())
        selector[key] = job.own_term("label_values.spot");
  return selector;
}

/// "key=value:Effect" or "key:Effect".
Json toleration(const std::string& taint) {
  const std::size_t colon = taint.rfind(':'), equals = taint.find('=');
  Json t;
  t["key"] = taint.substr(0, std::min(equals, colon));
  t["operator"] = "Exists";
  t["effect"] = taint.substr(colon + 1);
  return t;
}

bool is_spot(const PlannedPool& pool) { return pool.pricing == CapacityType::spot; }

Json tolerations_of(const Job& job, const PodGroup& group) {
  Json list = Json::array();
  const auto add = [&](const char* key) {
    if (const std::string taint = job.term(key); !taint.empty()) list.push_back(toleration(taint));
  };
  if (group.devices > 0 && !group.tpu_by_cores)
    add(group.pool->accelerator->kind == AcceleratorKind::tpu ? "taints.tpu" : "taints.gpu");
  const PlannedPool* fallback = fallback_of(job, group);
  if (is_spot(*group.pool) || (fallback != nullptr && is_spot(*fallback))) add("taints.spot");
  // Whole gangs wait for the pods of a node that is lost: not for the default of 300 s.
  constexpr int kGivenUpAfter = 30;
  for (const char* key : {"taints.not_ready", "taints.unreachable"}) {
    Json t = toleration(job.term(key));
    t["tolerationSeconds"] = kGivenUpAfter;
    list.push_back(std::move(t));
  }
  return list;
}

}  // namespace

Json resources_of(const PodGroup& group) {
  const Allocatable node = allocatable_of(group.pool->machine);
  const std::int64_t cpu = std::max<std::int64_t>(100, node.cpu_milli - kSystemCpuMilli);
  const double memory = std::max(64.0 * 1024 * 1024, node.memory.v - kSystemMemory);
  Json requests = {
      {"cpu", fmt::format("{}m", cpu / group.per_node)},
      {"memory", fmt::format("{}Mi", std::int64_t(memory / group.per_node / 1024 / 1024))}};
  if (group.tpu_by_cores) return {{"limits", {{group.resource, group.devices}}}};
  Json limits = {{"memory", requests["memory"]}};
  if (group.devices > 0) limits[group.resource] = group.devices;
  return {{"requests", requests}, {"limits", limits}};
}

std::int64_t grace_seconds(const Job& job, const PodGroup& group) {
  constexpr double kDefault = 30;
  const PlannedPool* fallback = fallback_of(job, group);
  double notice = kDefault;
  if (is_spot(*group.pool) || (fallback != nullptr && is_spot(*fallback)))
    notice = std::max(1.0, job.cluster->reclaim.notice.count());
  else if (job.cluster->maintenance.on)
    notice = std::max(kDefault, job.cluster->maintenance.notice.count());
  return std::int64_t(std::llround(notice));
}

PodPlace place_of(const Job& job, const PodGroup& group) {
  const PlannedPool* fallback = fallback_of(job, group);
  return {selector_of(job, group), tolerations_of(job, group), resources_of(group),
          fallback != nullptr ? affinity_to(job, group, *fallback) : Json::object()};
}

}  // namespace kubernetes
}  // namespace reckon
