#include <limits>

#include <fmt/format.h>

#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/autoscaling/karpenter_offers.h"
#include "sim/scenario/resolve/draft.h"

// Rules of the service: how nodes come and go, how a job is tried again, what is billed.
namespace reckon::planning {
namespace {

Seconds seconds(const Draft& draft, std::string_view key) {
  return Seconds{draft.catalog.operations.at(key).value};
}

keys::NodeKind node_kind_of(const PlannedPool& pool) {
  if (pool.slice) return keys::NodeKind::tpu;
  return pool.accelerator ? keys::NodeKind::gpu : keys::NodeKind::cpu;
}

AutoscalerRules autoscaler_rules(const Draft& draft) {
  const OperationalDefaults& operations = draft.catalog.operations;
  AutoscalerRules rules;
  rules.scan_interval = seconds(draft, keys::kScanInterval);
  rules.scale_down_unneeded_time = seconds(draft, keys::kScaleDownUnneededTime);
  rules.scale_down_delay_after_add = seconds(draft, keys::kScaleDownDelayAfterAdd);
  rules.max_node_provision_time = seconds(draft, keys::kNodeProvisionTimeMax);
  rules.node_group_backoff_initial = seconds(draft, keys::kBackoffInitial);
  rules.node_group_backoff_max = seconds(draft, keys::kBackoffMax);
  rules.node_group_backoff_reset = seconds(draft, keys::kBackoffReset);
  rules.scale_down_utilization_threshold = operations.at(keys::kUtilizationThreshold).value;
  rules.max_nodes_per_scale_up = static_cast<int>(operations.at(keys::kNodesPerScaleUpMax).value);
  return rules;
}

/// A Kubernetes Job has a limit and a growing delay. Elsewhere nothing counts tries: the service
/// (AI Platform, Vertex) or whoever runs the VMs starts the program again at once.
RetryRules retry_rules(const Draft& draft) {
  const OperationalDefaults& operations = draft.catalog.operations;
  RetryRules rules;
  if (!draft.plan.service.kubernetes) {
    rules.backoff_limit = std::numeric_limits<int>::max();
    return rules;
  }
  rules.backoff_limit = static_cast<int>(operations.at(keys::kJobBackoffLimit).value);
  rules.base = seconds(draft, keys::kJobRetryBase);
  rules.cap = seconds(draft, keys::kJobRetryCap);
  return rules;
}

BillingRules billing_rules(const Draft& draft) {
  const Provider& provider = draft.plan.provider;
  BillingRules rules;
  rules.granularity = seconds(draft, keys::billing_granularity(provider));
  rules.minimum = seconds(draft, keys::billing_minimum(provider));
  rules.free_if_reclaimed_within = seconds(draft, keys::free_if_reclaimed_within(provider));
  const double fee = draft.catalog.operations.at(keys::management_fee(draft.plan.service.id)).value;
  rules.management = to_hourly_rate(UsdPerSecond{fee / 3600});
  return rules;
}

}  // namespace

/// A time that is given as a date is so many seconds from the start.
void resolve_expectations(Draft& draft) {
  const Scenario& scenario = draft.scenario();
  draft.plan.expect = scenario.expect;
  for (std::size_t i = 0; i < scenario.expect.size(); ++i) {
    Expectation& e = draft.plan.expect[i];
    if (!e.date) continue;
    const std::string path = fmt::format("expect.{}", i);
    if (!scenario.start)
      draft.error(path, fmt::format("'{}' needs the time at which the run starts", e.text),
                  "start: 2026-12-04T18:00:00Z");
    else if (*e.date < *scenario.start)
      draft.error(path, fmt::format("'{}' asks for a time before the start", e.text));
    else
      e.value = Seconds{*e.date - *scenario.start}.count();
  }
}

namespace {

PowerRules power_rules(const Draft& draft) {
  const OperationalDefaults& operations = draft.catalog.operations;
  PowerRules power;
  power.busy_share = operations.at(keys::kBusyShare);
  power.idle_share = operations.at(keys::kIdleShare);
  power.watts_per_vcpu = operations.at(keys::kWattsPerVcpu);
  power.watts_per_gb = operations.at(keys::kWattsPerGb);
  const Fact<double>* own = operations.find(keys::pue(draft.plan.provider));
  power.pue = own != nullptr ? *own : operations.at(keys::kPue);
  const Region* region = find_region(draft.catalog.regions, draft.plan.provider, draft.plan.region);
  if (region != nullptr && region->grid_gco2_per_kwh)
    power.grams_per_kwh = Fact<double>{*region->grid_gco2_per_kwh, region->source};
  return power;
}

/// Karpenter's NodePools, by the nodes of each that come first.
void check_lives(Draft& draft) {
  if (!draft.plan.karpenter) return;
  const std::vector<NodePoolSpec>& node_pools = draft.plan.karpenter->node_pools;
  for (std::size_t k = 0; k < node_pools.size(); ++k) {
    const Fact<Seconds>* soonest = nullptr;
    for (const PlannedPool& pool : draft.plan.pools)
      if (pool.node_pool == k && (soonest == nullptr || pool.provisioning.value < soonest->value))
        soonest = &pool.provisioning;
    if (soonest != nullptr) check_expiry(draft, node_pools[k], *soonest);
  }
}

}  // namespace

void resolve_rules(Draft& draft) {
  const OperationalDefaults& operations = draft.catalog.operations;
  Plan& plan = draft.plan;
  plan.autoscaler = autoscaler_rules(draft);
  plan.retry = retry_rules(draft);
  plan.billing = billing_rules(draft);
  plan.power = power_rules(draft);
  bool tpu = false;
  for (PlannedPool& pool : plan.pools) {
    tpu = tpu || pool.slice.has_value();
    pool.provisioning =
        seconds_fact(operations.at(keys::provisioning(plan.provider, node_kind_of(pool))));
    if (pool.patience && *pool.patience <= pool.provisioning.value)
      draft.warn(fmt::format(
          "nodes of pool '{}' usually take {} to start, and the fallback pool replaces them after "
          "{}: nearly all nodes will be fallback nodes",
          pool.name, format_duration(pool.provisioning.value), format_duration(*pool.patience)));
  }
  check_lives(draft);
  plan.job_start.image_pull = seconds_fact(operations.at(keys::kImagePull));
  plan.job_start.framework_start = seconds_fact(operations.at(keys::kFrameworkStart));
  plan.job_start.compile = seconds_fact(operations.at(tpu ? keys::kCompileTpu : keys::kCompileGpu));
  plan.framework.reserve = fact_of<Bytes>(operations.at(keys::kFrameworkReserve));
  // XLA lays memory out ahead and has no communicators of NCCL.
  if (!tpu) {
    plan.framework.communicator = fact_of<Bytes>(operations.at(keys::kCommunicator));
    plan.framework.fragmentation = operations.at(keys::kFragmentation);
  }
  plan.framework.memory_spread = operations.at(keys::kMemorySpread);
  plan.framework.memory_deviation = plan.framework.memory_spread.value;
  if (const StackMemory* own =
          draft.catalog.find_stack_memory(draft.use ? draft.use->stack : std::string())) {
    plan.framework.reserve = own->reserve;  // with its communicators
    plan.framework.communicator = Fact<Bytes>{};
    plan.framework.buffers_per_parameter = own->buffers_per_parameter;
    plan.framework.keeps_scores = own->keeps_scores;
  }
  plan.framework.step_jitter = operations.at(keys::kStepJitter);
  // A TPU's links have DMA engines of their own.
  plan.framework.overlap_slowdown = tpu ? Fact<double>{} : operations.at(keys::kOverlapSlowdown);
  plan.framework.expert_imbalance = operations.at(keys::kExpertImbalance);
  for (PlannedWorkload& job : plan.jobs) {
    job.checkpoint.save_overhead = seconds_fact(operations.at(keys::kSaveOverhead));
    job.checkpoint.notice.reaction = seconds_fact(operations.at(keys::kNoticeReaction));
    job.checkpoint.notice.writer_spread = operations.at(keys::kWriterSpread);
  }
}

}  // namespace reckon::planning
