#include "sim/accuracy/plan_evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

constexpr std::string_view kEvidenceSource = "evidence";

/// Calibrations are the sources of what they measured
/// (sim/measurement/calibration/calibration.cpp).
bool is_calibrated(const Plan& plan, const PlannedPool& pool) {
  const auto measured = [&](const Fact<double>& fact) {
    const auto index = static_cast<std::size_t>(fact.source);
    return index < plan.sources.size() && plan.sources[index].reference.starts_with("calibration ");
  };
  const Efficiency& e = pool.efficiency;
  return measured(e.memory) || measured(e.matmul) || measured(e.convolution) ||
         measured(e.attention);
}

/// What the factor rests on, beside it among the assumptions.
void name_source(Plan& plan, std::string text) {
  const auto source = static_cast<SourceId>(plan.sources.size());
  plan.sources.push_back({.id = std::string(kEvidenceSource), .reference = std::move(text)});
  for (PlannedPool& pool : plan.pools)
    if (computes(plan, pool) && pool.accelerator) pool.efficiency.step_spread.source = source;
}

std::string source_text(const StepEvidence& evidence) {
  if (evidence.runs.empty()) return "no comparable run is known";
  const auto own =
      std::size_t(std::ranges::count(evidence.runs, kOwnSource, &ComparableRun::source));
  const std::size_t published = evidence.runs.size() - own;
  if (own > 0)
    return fmt::format("{} run{} of one's own and {} published (reckon explain --evidence)", own,
                       own == 1 ? "" : "s", published);
  return fmt::format("{} comparable published run{} (reckon explain --evidence)", published,
                     published == 1 ? "" : "s");
}

ComparableRun comparable(const EvidenceRun& known, const TakenRun& taken,
                         const EvidenceFeatures& question) {
  const RunConfiguration& run = known.run.run;
  ComparableRun c;
  c.id = known.run.id;
  c.source = known.run.source;
  c.accelerator = run.accelerator;
  c.network = run.variant.empty() ? run.model : run.variant;
  c.stack = run.stack;
  c.accelerators = run.accelerators;
  c.each = known.run.measured / double(run.accelerators);
  c.same_job = known.features.accelerator == question.accelerator &&
               known.features.network == question.network;
  c.correlation = taken.correlation;
  c.residual = taken.residual.value;
  return c;
}

StepEvidence described(const Evidence& evidence, const EvidenceFeatures& question,
                       const Residual& residual) {
  StepEvidence said;
  // Of the time, where the residual is of the rate.
  said.median = std::exp(-residual.mean);
  said.half_width = residual.half_width;
  said.low = said.median * std::exp(-said.half_width);
  said.high = said.median * std::exp(said.half_width);
  for (const TakenRun& taken : evidence.near(question)) {
    const EvidenceRun& known = evidence.runs()[taken.run];
    said.runs.push_back(comparable(known, taken, question));
    said.of_this_job += said.runs.back().same_job ? 1 : 0;
  }
  std::ranges::stable_sort(said.runs, std::ranges::greater{}, &ComparableRun::correlation);
  return said;
}

/// Nodes, start and steps: as a pool's nodes are billed from their request.
void price(TrialOffer& trial, int nodes, const Plan& plan, Seconds step) {
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  trial.time = pool.provisioning.value + plan.job_start.image_pull.value +
               plan.job_start.framework_start.value + plan.job_start.compile.value +
               trial.steps * step;
  if (!pool.price.known) return;
  const double usd_per_hour = 1e-9 * double(pool.price.machine.nano_usd_per_hour +
                                            pool.price.accelerators.nano_usd_per_hour);
  const Seconds billed = std::max(trial.time, plan.billing.minimum);
  trial.cost = Usd{nodes * usd_per_hour * billed.count() / 3600};
}

/// The job's own features on so many of its accelerators, each with its share of the batch.
EvidenceFeatures on_accelerators(EvidenceFeatures of, int accelerators, int per_node) {
  of.accelerators = accelerators;
  of.log_count = std::log(accelerators);
  of.many_nodes = accelerators > per_node;
  return of;
}

}  // namespace

bool takes_evidence(const Plan& plan) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  return workers != nullptr && workers->accelerator && !is_calibrated(plan, *workers);
}

void set_step_factor(Plan& plan, double median, double low, double high) {
  for (PlannedPool& pool : plan.pools)
    if (computes(plan, pool) && pool.accelerator)
      pool.efficiency.step_spread = Fact<double>(median, low, high, pool.efficiency.memory.source);
}

void set_memory_residual(Plan& plan, const Evidence& evidence) {
  const PlannedPool* workers = plan.pool_with(Role::worker);
  if (workers == nullptr || !workers->accelerator) return;
  const MemoryResidual r =
      evidence.memory(features_of(plan, plan.only_job()), plan.framework.memory_spread.value);
  plan.framework.memory_mean = r.mean;
  plan.framework.memory_deviation = r.deviation;
}

namespace {

std::optional<Residual> set_residual_of_only_job(Plan& plan, const Evidence& evidence) {
  set_memory_residual(plan, evidence);
  if (!takes_evidence(plan)) return std::nullopt;
  const PlannedWorkload& job = plan.only_job();
  set_step_factor(plan, 1, 1, 1);
  const double share = device_share(estimate_step(plan, job, *make_default_network()));
  const EvidenceFeatures question = features_of(plan, job);
  const Residual residual = evidence.residual(question, share);
  plan.evidence = described(evidence, question, residual);
  set_step_factor(plan, plan.evidence->median, plan.evidence->low, plan.evidence->high);
  name_source(plan, source_text(*plan.evidence));
  return residual;
}

/// What was set in a job's own plan.
JobResidual residual_of_job(const Plan& alone) {
  JobResidual r;
  r.memory_mean = alone.framework.memory_mean;
  r.memory_deviation = alone.framework.memory_deviation;
  if (alone.evidence) r.step_spread = computing_pools(alone).front()->efficiency.step_spread;
  return r;
}

}  // namespace

std::optional<Residual> set_residual(Plan& plan, const Evidence& evidence) {
  if (plan.jobs.size() == 1) return set_residual_of_only_job(plan, evidence);
  const std::vector<PlannedWorkload> jobs = std::move(plan.jobs);
  std::vector<PlannedWorkload> done;
  std::optional<Residual> of_first;
  plan.evidence.reset();
  for (const PlannedWorkload& job : jobs) {
    done.push_back(job);
    if (job.same_as) {
      done.back().residual = done[*job.same_as].residual;
      continue;
    }
    Plan alone = plan;  // with the sources that those before it have named
    alone.jobs = {job};
    alone.evidence.reset();
    const auto residual = set_residual_of_only_job(alone, evidence);
    done.back().residual = residual_of_job(alone);
    if (done.size() == 1) {
      plan = std::move(alone);
      of_first = residual;
    } else {
      plan.sources = std::move(alone.sources);
    }
  }
  plan.jobs = std::move(done);
  return of_first;
}

void add_trial(Plan& plan, const Evidence& evidence) {
  constexpr int kSteps = 50;
  // The half width then over that without a trial, as StepEvidence::trial has it.
  constexpr double kWorthwhile = 0.8;
  if (!plan.evidence) return;
  const PlannedWorkload& job = plan.jobs.front();
  const StepEstimate step = estimate_step(plan, job, *make_default_network());
  const EvidenceFeatures question = features_of(plan, job);
  const int per_node = std::max(1, plan.pool_with(Role::worker)->accelerators_per_node);
  const double noise = plan.framework.step_jitter.value / std::sqrt(double(kSteps));
  // One node says nothing of the links between two.
  for (int nodes = 1; nodes <= 2 && (nodes - 1) * per_node < question.accelerators; ++nodes) {
    TrialOffer trial;
    trial.steps = kSteps;
    trial.accelerators = std::min(question.accelerators, nodes * per_node);
    const auto features = on_accelerators(question, trial.accelerators, per_node);
    trial.half_width =
        evidence.after_trial(question, features, device_share(step), noise).half_width;
    if (trial.half_width > kWorthwhile * plan.evidence->half_width) continue;
    price(trial, nodes, plan, step.step);
    plan.evidence->trial = trial;
    return;
  }
}

}  // namespace reckon
