#include <algorithm>

#include <fmt/format.h>

#include "sim/catalog/operations_keys.h"
#include "sim/scenario/assumption_table.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// What takes nodes away: spot reclaims, host maintenance, failures. What the scenario does not say
// comes from the catalog and is listed among the assumptions; `none` switches a cause off.
namespace reckon::planning {
namespace {

constexpr const char* kPreemption = "disruptions.preemption";

int spot_slots(const Plan& plan) {
  int slots = 0;
  for (const PlannedPool& pool : plan.pools)
    if (pool.pricing == CapacityType::spot) slots += pool.nodes_max;
  return slots;
}

void resolve_trace(Draft& draft, const TraceReclaim& trace, int slots) {
  const Parsed<ReclaimTimes> times =
      reclaim_times(trace, directory_of(draft.file, std::string(kPreemption) + ".file"), slots);
  if (!times) {
    draft.error(kPreemption, times.error());
    return;
  }
  draft.plan.reclaim.trace = times->by_slot;
  draft.plan.reclaim.trace_length = times->length;
}

/// Does the provider take all of a gang's nodes at once? Some do with what is reserved in one
/// block.
bool is_maintained_together(const Draft& draft) {
  const Plan& plan = draft.plan;
  const Fact<double>* reserved =
      draft.catalog.operations.find(keys::maintenance_together(plan.provider));
  return reserved != nullptr && reserved->value > 0 &&
         std::ranges::all_of(plan.pools, [](const PlannedPool& p) {
           return !p.accelerator || p.pricing == CapacityType::reserved;
         });
}

/// CPU machines migrate live; those with accelerators are stopped. On premises the user's own
/// schedule rules, so there is none unless it is given.
void resolve_maintenance(Draft& draft) {
  Plan& plan = draft.plan;
  const DisruptionsSpec& spec = draft.scenario().disruptions;
  const OperationalDefaults& operations = draft.catalog.operations;
  MaintenanceRules& rules = plan.maintenance;
  if (spec.maintenance_off) return;
  const bool accelerated =
      std::any_of(plan.pools.begin(), plan.pools.end(),
                  [](const PlannedPool& p) { return p.accelerator.has_value(); });
  rules.duration = seconds_fact(operations.at(keys::kMaintenanceDuration));
  if (spec.maintenance) {
    rules.on = true;
    rules.every = Fact<Seconds>{spec.maintenance->every};
    rules.notice = spec.maintenance->notice;
    rules.grouped = spec.maintenance->grouped.value_or(is_maintained_together(draft));
    if (!accelerated)
      draft.warn(
          "disruptions.maintenance has no effect: machines without accelerators migrate live");
    return;
  }
  rules.on = accelerated && !draft.provider->owned;
  rules.grouped = is_maintained_together(draft);
  rules.every = seconds_fact(operations.at(keys::maintenance_every(plan.provider)));
  rules.notice = Seconds{operations.at(keys::maintenance_notice(plan.provider)).value};
}

/// Whoever waits for all others waits for the slow ones.
void resolve_stragglers(Draft& draft) {
  const auto& spec = draft.scenario().disruptions.stragglers;
  if (!spec) return;
  if (draft.plan.jobs.empty() || !waits_for_all(draft.plan.only_job().strategy)) {
    draft.warn("disruptions.stragglers has no effect: no step waits for several workers");
    return;
  }
  draft.plan.failures.straggler_share =
      spec->share ? Fact<double>{*spec->share} : draft.catalog.operations.at(keys::kStragglerShare);
}

void resolve_failures(Draft& draft) {
  const DisruptionsSpec& spec = draft.scenario().disruptions;
  const OperationalDefaults& operations = draft.catalog.operations;
  FailureRules& rules = draft.plan.failures;
  if (spec.failures_off) return;
  rules.on = true;
  rules.repair = seconds_fact(operations.at(keys::kRepair));
  const bool own = draft.provider->owned;
  rules.mtbf_per_accelerator =
      spec.failures
          ? Fact<Seconds>{spec.failures->mtbf_per_accelerator}
          : seconds_fact(operations.at(own ? keys::kMtbfPerAccelerator : keys::kMtbfRented));
  rules.hang_share = operations.at(keys::kHangShare);
  rules.hang_detection = seconds_fact(operations.at(keys::kHangDetection));
  // Who waits for nobody is ended by its own failure.
  if (draft.plan.jobs.empty() || !waits_for_all(draft.plan.only_job().strategy))
    rules.hang_share = Fact<double>{0.0};
  if (!spec.failures) return;
  if (spec.failures->hang_share) rules.hang_share = Fact<double>{*spec.failures->hang_share};
  if (spec.failures->hang_detection)
    rules.hang_detection = Fact<Seconds>{*spec.failures->hang_detection};
  if (spec.failures->process_share)
    rules.process_share = Fact<double>{*spec.failures->process_share};
}

}  // namespace

void resolve_reclaim(Draft& draft) {
  Plan& plan = draft.plan;
  ReclaimRules& rules = plan.reclaim;
  const auto& given = draft.scenario().disruptions.preemption;
  const int slots = spot_slots(plan);
  const OperationalDefaults& operations = draft.catalog.operations;
  rules.notice = Seconds{operations.at(keys::spot_notice(plan.provider)).value};
  if (const Fact<double>* of_pods = operations.find(keys::pod_notice(plan.service.id)))
    rules.notice = std::min(rules.notice, Seconds{of_pods->value});
  if (given) {
    rules.law = *given;
    if (slots == 0 && !std::holds_alternative<NoReclaim>(*given))
      draft.warn("disruptions.preemption has no effect: no pool has pricing: spot");
    if (const auto* trace = std::get_if<TraceReclaim>(&*given); trace != nullptr && slots > 0)
      resolve_trace(draft, *trace, slots);
    return;
  }
  rules.law = NoReclaim{};
  if (slots == 0) return;
  rules.assumed_mean = seconds_fact(draft.catalog.operations.at(keys::kReclaimMean));
  rules.law = ExponentialReclaim{rules.assumed_mean->value};
  draft.warn(fmt::format(
      "no spot reclaim rate given: assuming a mean node life of {} "
      "({} .. {})",
      format_duration(rules.assumed_mean->value), format_duration(rules.assumed_mean->low),
      format_duration(rules.assumed_mean->high)));
}

/// Spot capacity comes and goes, unless the user says that it does not.
void resolve_shortage(Draft& draft) {
  const DisruptionsSpec& spec = draft.scenario().disruptions;
  const bool spot = spot_slots(draft.plan) > 0;
  if (spec.shortage_off) return;
  if (spec.shortage) {
    if (!spot) draft.warn("disruptions.shortage has no effect: no pool has pricing: spot");
    draft.plan.shortage = {spot, Fact<Seconds>{spec.shortage->every},
                           Fact<Seconds>{spec.shortage->lasts}};
    return;
  }
  if (!spot) return;
  const OperationalDefaults& operations = draft.catalog.operations;
  const ShortageRules assumed{true, seconds_fact(operations.at(keys::kShortageEvery)),
                              seconds_fact(operations.at(keys::kShortageLasts))};
  draft.plan.shortage = assumed;
  draft.warn(fmt::format(
      "the scenario does not say how often spot capacity is gone: assumed is that it is there for "
      "{} ({} .. {}) and gone for {} ({} .. {}), in turn (disruptions.shortage; none: always "
      "there)",
      format_duration(assumed.every.value), format_duration(assumed.every.low),
      format_duration(assumed.every.high), format_duration(assumed.lasts.value),
      format_duration(assumed.lasts.low), format_duration(assumed.lasts.high)));
}

void resolve_disruptions(Draft& draft) {
  resolve_reclaim(draft);
  resolve_shortage(draft);
  resolve_maintenance(draft);
  resolve_failures(draft);
  resolve_stragglers(draft);
  if (!draft.scenario().disruptions.drift.empty())
    draft.error("disruptions.drift",
                "drift is simulated of nodes that Karpenter makes for jobs that "
                "share a cluster",
                "leave it out, or give cluster.scheduler and autoscaler: karpenter");
}

}  // namespace reckon::planning
