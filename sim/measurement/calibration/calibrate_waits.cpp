#include "sim/measurement/calibration/calibrate_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/catalog/operations_keys.h"
#include "sim/measurement/calibration/waiting_times.h"
#include "sim/measurement/log_spread.h"

namespace reckon {
namespace {

struct Group {
  std::vector<WaitingSample> samples;
  std::vector<std::string> runs;
};

std::string provisioning_key(const Plan& plan, const PlannedPool& pool) {
  const keys::NodeKind kind = pool.slice         ? keys::NodeKind::tpu
                              : pool.accelerator ? keys::NodeKind::gpu
                                                 : keys::NodeKind::cpu;
  return keys::provisioning(plan.provider, kind);
}

/// The catalog's number that a wait is about; "" : none.
std::string key_of(const WaitRecord& wait, const Plan& plan) {
  switch (wait.kind) {
    case WaitRecord::Kind::provisioning:
      for (const PlannedPool& pool : plan.pools)
        if (wait.pool == pool.name || wait.pool.empty()) return provisioning_key(plan, pool);
      return "";
    case WaitRecord::Kind::reclaim:
      return std::string(keys::kReclaimMean);
    case WaitRecord::Kind::restart:
      return std::string(keys::kFrameworkStart);
  }
  return "";
}

WaitingTimes described(const std::string& what, const Group& group,
                       std::vector<FamilyFit> families) {
  WaitingTimes w{.what = what};
  for (const WaitingSample& s : group.samples) ++(s.censored ? w.censored : w.observed);
  if (!families.empty()) {
    const FamilyFit& best = families.front();
    w.mean = mean_of(best);
    w.p5 = quantile_of(best, 0.05);
    w.p50 = quantile_of(best, 0.5);
    w.p95 = quantile_of(best, 0.95);
  }
  w.families = std::move(families);
  return w;
}

/// Forecasts draw the time until a node is taken back from an exponential law.
void warn_of_law(const WaitingTimes& waits, Calibration& result) {
  const auto exponential =
      std::find_if(waits.families.begin(), waits.families.end(),
                   [](const FamilyFit& f) { return f.family == "exponential"; });
  if (exponential == waits.families.end()) return;
  const FamilyFit& best = waits.families.front();
  constexpr double kClearly = 2;  // of AIC: e times as likely
  if (best.aic > exponential->aic - kClearly) return;
  result.warnings.push_back(fmt::format(
      "nodes were reclaimed by a {} law (scale {:.4g} s, shape {:.3g}) rather than an exponential "
      "one: say so in the scenario's disruptions.preemption",
      best.family, best.scale, best.shape));
}

void correct(const std::string& key, const Group& group, const Catalog& catalog,
             Calibration& result) {
  Catalog scratch = catalog;
  const auto parameter = find_parameter(scratch, "operations/" + key);
  if (!parameter) return;
  WaitingTimes waits = described(key, group, fit_families(group.samples));
  const ParameterValue prior = parameter->get();
  Correction c{.parameter = parameter->name(), .unit = parameter->unit(), .catalog = prior};
  c.rows = group.runs;
  const bool reclaim = key == keys::kReclaimMean;
  if (!prior.uncertain() || prior.value <= 0) return;
  if (reclaim) {
    double exposure = 0;
    for (const WaitingSample& s : group.samples) exposure += s.seconds.count();
    const MeanEstimate mean = exponential_mean(prior, waits.observed, Seconds{exposure});
    const double half = kScoreOfP95 * mean.log_error;
    c.calibrated = {mean.mean, mean.mean * std::exp(-half), mean.mean * std::exp(half)};
    c.standard_error = mean.log_error;
    warn_of_law(waits, result);
  } else {
    c.calibrated = after_waiting(prior, group.samples, waits.families);
    c.standard_error = log_spread(c.calibrated) / std::sqrt(waits.observed + kPriorSamples);
  }
  if (waits.observed < kFewestSeen)
    result.warnings.push_back(fmt::format("{}: measured only {} {}, its range stays wide", key,
                                          waits.observed, waits.observed == 1 ? "time" : "times"));
  // Where starts of jobs were fitted to the same number, that stands.
  const auto same = std::find_if(result.corrections.begin(), result.corrections.end(),
                                 [&](const Correction& x) { return x.parameter == c.parameter; });
  if (same == result.corrections.end() && waits.observed > 0) add_alone(result, std::move(c));
  result.waiting_times.push_back(std::move(waits));
}

}  // namespace

void calibrate_waits(std::span<const MeasuredRun> runs, const Catalog& catalog,
                     Calibration& result) {
  std::map<std::string, Group> groups;
  for (const MeasuredRun& run : runs) {
    if (run.waits.empty() || run.scenario.scenario.name.empty()) continue;
    const auto plan = make_plan(run.scenario, catalog);
    if (!plan) continue;  // refused before
    for (const WaitRecord& wait : run.waits) {
      const std::string key = key_of(wait, *plan);
      if (key.empty()) {
        result.warnings.push_back(
            fmt::format("{}: no pool of the scenario is called '{}'", run.name, wait.pool));
        continue;
      }
      Group& group = groups[key];
      group.samples.push_back(wait.sample);
      if (group.runs.empty() || group.runs.back() != run.name) group.runs.push_back(run.name);
    }
  }
  for (const auto& [key, group] : groups) correct(key, group, catalog, result);
}

}  // namespace reckon
