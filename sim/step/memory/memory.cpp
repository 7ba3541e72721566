#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/unit_text.h"
#include "sim/step/element_sizes.h"
#include "sim/step/memory/layout_memory.h"
#include "sim/step/memory/server_memory.h"
#include "sim/step/servers/placement.h"
#include "sim/step/step.h"

// Memory of one accelerator (docs/MODELS.md, "Memory").
namespace reckon {
namespace {

/// Gradients of activations that live at once: those of the input and the output of the layer in
/// work.
double largest_working_set(const ModelGraph& model) {
  double largest = 0;
  for (const auto& c : model.counts()) largest = std::max(largest, c.elements_in + c.elements_out);
  return largest;
}

Bytes memory_of(const PlannedPool& pool) {
  return pool.accelerator ? pool.accelerator->memory_for_programs() : pool.machine.memory.value;
}

const PlannedPool& smallest_pool(const Plan& plan) {
  const auto pools = computing_pools(plan);
  return **std::min_element(pools.begin(), pools.end(),
                            [](auto* a, auto* b) { return memory_of(*a) < memory_of(*b); });
}

/// The stage of a mixed pipeline that most probably runs out of memory, on the smallest of its
/// pools.
struct TightestStage {
  MemoryEstimate memory;
  const PlannedPool* pool = nullptr;
};
TightestStage tightest_stage(const Plan& plan, const PlannedWorkload& job,
                             const FoldedModel& folded) {
  const Layout layout = layout_of(job);
  const auto stages =
      memory_of_stages(folded, layout, with_stack(element_sizes(job), plan.framework),
                       plan.framework.expert_imbalance.value);
  TightestStage tightest;
  for (std::size_t k = 0; k < stages.size(); ++k)
    for (const std::size_t at : job.stage_pools[k]) {
      MemoryEstimate m = stages[k];
      const PlannedPool& pool = plan.pools[at];
      set_limits(m, plan.framework, communicators(layout), memory_of(pool));
      const auto tightness = [](const MemoryEstimate& of) {
        return std::pair(of.out_of_memory(), of.required() / of.available);
      };
      if (tightest.pool == nullptr || tightness(m) > tightness(tightest.memory))
        tightest = {m, &pool};
    }
  return tightest;
}

const PlannedPool& tightest_pool(const Plan& plan, const PlannedWorkload& job,
                                 const FoldedModel& folded) {
  return job.stage_pools.empty() ? smallest_pool(plan) : *tightest_stage(plan, job, folded).pool;
}

/// Largest batch that fits as a plan's has to, by bisection (memory grows with the batch); 0: not
/// even one sample.
int largest_batch(const Plan& plan, PlannedWorkload job, const FoldedModel& folded) {
  int fits = 0, too_large = job.strategy.layout.micro_batch;
  while (too_large - fits > 1) {
    job.strategy.layout.micro_batch = fits + (too_large - fits) / 2;
    (estimate_memory(plan, job, folded).fits_at(kRiskOfAPlan) ? fits : too_large) =
        job.strategy.layout.micro_batch;
  }
  return fits;
}

std::string parts_text(const MemoryEstimate& m) {
  return fmt::format(
      "parameters {}, gradients {}, optimizer state {}, activations {}, workspace {}{}{}{}, "
      "framework "
      "{}",
      format_bytes(m.parameters), format_bytes(m.gradients), format_bytes(m.optimizer),
      format_bytes(m.activations), format_bytes(m.workspace),
      m.gathered.v > 0 ? ", gathered parameters and gradients " + format_bytes(m.gathered) : "",
      m.evidence.v != 0 ? ", comparable runs " + format_bytes(m.evidence) : "",
      m.fragmentation.v > 0 ? ", fragmentation " + format_bytes(m.fragmentation) : "",
      format_bytes(m.reserve));
}

/// The reserve is assumed: at the low end of its range the step may fit.
std::string reserve_hint(const Plan& plan, MemoryEstimate m) {
  const Fact<Bytes>& reserve = plan.framework.reserve;
  m.reserve = reserve.low;
  if (!reserve.assumed || !m.fits()) return "";
  return fmt::format(
      "\nit would fit where the framework takes {} rather than {} (assumed: {} .. {})",
      format_bytes(reserve.low), format_bytes(reserve.value), format_bytes(reserve.low),
      format_bytes(reserve.high));
}

std::string recompute_hint(const Plan& plan, PlannedWorkload job, const FoldedModel& folded) {
  for (const auto mode : {Recompute::selective, Recompute::full}) {
    if (mode <= job.strategy.layout.recompute) continue;
    job.strategy.layout.recompute = mode;
    const auto m = estimate_memory(plan, job, folded);
    if (m.fits_at(kRiskOfAPlan))
      return fmt::format("\nwith recompute: {} it needs {} and fits",
                         mode == Recompute::full ? "full" : "selective",
                         format_bytes(m.required()));
  }
  return "";
}

/// Sharding more of the state, or leaving the optimizer's to the host.
std::string state_hint(const Plan& plan, PlannedWorkload job, const FoldedModel& folded) {
  if (!cuts_the_model(job.strategy)) return "";
  std::string hint;
  const auto try_it = [&](std::string_view how) {
    const auto m = estimate_memory(plan, job, folded);
    if (m.fits_at(kRiskOfAPlan))
      hint += fmt::format("\nwith {} it needs {} and fits", how, format_bytes(m.required()));
    return m.fits_at(kRiskOfAPlan);
  };
  const int stage = job.strategy.layout.zero_stage;
  if (layout_of(job).replicas_of_state() > 1) {
    for (job.strategy.layout.zero_stage = stage + 1; job.strategy.layout.zero_stage <= 3;
         ++job.strategy.layout.zero_stage)
      if (try_it(fmt::format("zero_stage: {}", job.strategy.layout.zero_stage))) break;
  }
  job.strategy.layout.zero_stage = stage;
  if (!job.strategy.layout.offload_optimizer) {
    job.strategy.layout.offload_optimizer = true;
    try_it("offload_optimizer: true");
  }
  return hint;
}

std::string accelerator_hint(const Catalog& catalog, const PlannedPool& pool,
                             const PlannedWorkload& job, Bytes required) {
  std::string names;
  int shown = 0;
  for (const auto& a : catalog.accelerators) {
    if (!pool.accelerator || a.kind != pool.accelerator->kind) continue;
    if (a.memory_for_programs() < required || !a.peak_for(job.precision) || shown == 6) continue;
    names += fmt::format("{}{} ({})", shown++ ? ", " : "", a.name, format_bytes(a.memory.value));
  }
  return names.empty() ? "\nno accelerator of the catalog has that much memory"
                       : "\naccelerators with enough memory: " + names;
}

}  // namespace

double MemoryEstimate::out_of_memory() const {
  const Bytes most = available - reserve, median = tensors() + fragmentation;
  if (!(median.v > 0)) return most.v < 0 ? 1 : 0;
  if (!(most.v > 0)) return 1;
  const double s = std::hypot(deviation, reserve_deviation / most);
  if (s == 0) return median > most ? 1 : 0;
  return 0.5 * std::erfc(-std::log(median / most) / (s * std::numbers::sqrt2));
}

bool MemoryEstimate::fits_at(double risk) const { return out_of_memory() <= risk; }

void set_limits(MemoryEstimate& m, const FrameworkRules& framework, int communicators,
                Bytes available) {
  constexpr double kRange = 2 * 1.645;  // standard deviations in nine of ten
  m.available = available;
  m.reserve =
      framework.reserve.value + std::max(0, communicators - 1) * framework.communicator.value;
  m.deviation = framework.memory_deviation;
  if (m.deviation > 0)
    m.reserve_deviation = (framework.reserve.high - framework.reserve.low) / kRange;
  if (framework.memory_mean != 0) m.evidence = m.allocated() * std::expm1(framework.memory_mean);
  m.fragmentation = m.tensors() * framework.fragmentation.value;
}

std::string probability_text(double p) {
  constexpr double kLittle = 0.001;  // probability
  if (p < kLittle) return "< 0.1 %";
  if (p > 1 - kLittle) return "> 99.9 %";
  return fmt::format("{:.{}f} %", 100 * p, p < 0.1 ? 1 : 0);
}

std::string memory_text(const MemoryEstimate& m) {
  return fmt::format("{} of {}, P(out of memory) {}", format_bytes(m.required()),
                     format_bytes(m.available), probability_text(m.out_of_memory()));
}

namespace {

/// Each core of a device has its own copy of a model that is whole, and its share of the batch.
void hold_on_each_core(MemoryEstimate& m, const PlannedPool& pool) {
  const double copies = pool.accelerator ? std::max(1, pool.accelerator->cores_per_device) : 1;
  for (Bytes* state : {&m.parameters, &m.gradients, &m.optimizer, &m.gathered})
    *state = copies * *state;
}

/// The optimizer's state stays with the variables, and of embedding tables a worker has the rows
/// of its step.
void leave_on_servers(MemoryEstimate& m, const PlannedWorkload& job, const ElementSizes& size) {
  const PulledTables tables = pulled_tables(job);
  const double elsewhere = tables.parameters - tables.pulled;
  m.parameters = m.parameters - elsewhere * size.weight;
  m.gradients = m.gradients - elsewhere * size.gradient;
  m.gathered = m.gathered - elsewhere * size.buffers;
  m.optimizer = Bytes{};
}

}  // namespace

MemoryEstimate estimate_memory(const Plan& plan, const PlannedWorkload& job) {
  FoldedModel folded(job.model);
  folded.cut_as(job.stage_blocks);
  return estimate_memory(plan, job, folded);
}

MemoryEstimate estimate_memory(const Plan& plan, const PlannedWorkload& job,
                               const FoldedModel& folded) {
  if (!job.stage_pools.empty()) return tightest_stage(plan, job, folded).memory;
  const PlannedPool& pool = smallest_pool(plan);
  const ElementSizes size = with_stack(element_sizes(job), plan.framework);
  const Layout layout = layout_of(job);
  MemoryEstimate m = memory_of(folded, layout, size, plan.framework.expert_imbalance.value);
  if (job.strategy.servers) leave_on_servers(m, job, size);
  if (layout.whole()) hold_on_each_core(m, pool);
  set_limits(m, plan.framework, communicators(layout), memory_of(pool));
  return m;
}

MemoryEstimate estimate_forward_memory(const PlannedPool& pool, const FrameworkRules& framework,
                                       const ModelGraph& model, Precision precision, int batch) {
  const ElementSizes size = forward_sizes(precision);
  const double copies = pool.accelerator ? std::max(1, pool.accelerator->cores_per_device) : 1;
  MemoryEstimate m;
  m.parameters = copies * double(model.parameters()) * size.weight;
  m.activations = largest_working_set(model) * batch * size.activation;
  set_limits(m, framework, 1, memory_of(pool));
  return m;
}

namespace {

/// Checkpoints in the memory of the nodes, beside what a host needs anyway.
std::optional<Diagnostic> check_local_tier(const Plan& plan, const PlannedWorkload& job,
                                           const Places& places) {
  // Of its memory: the rest is the system's, the loaders' and the processes'.
  constexpr double kOfHost = 0.8;
  const Bytes needed = local_tier_memory(plan, job);
  const Bytes there = smallest_pool(plan).machine.memory.value;
  if (needed <= kOfHost * there) return std::nullopt;
  Diagnostic d;
  d.at = places.find("workload.checkpoint.local");
  d.what = fmt::format("checkpoints in the nodes' memory need {} of each, which has {}",
                       format_bytes(needed), format_bytes(there));
  d.hint = fmt::format(
      "twice {} of state for each of {} copies; to: local_disk, fewer replicas, or more nodes",
      format_bytes(needed / (2.0 * job.checkpoint.local->replicas)),
      job.checkpoint.local->replicas);
  return d;
}

}  // namespace

std::optional<Diagnostic> check_memory(const Plan& plan, const PlannedWorkload& job,
                                       const Catalog& catalog, const Places& places) {
  if (auto problem = check_server_memory(plan, job, places)) return problem;
  FoldedModel folded(job.model);
  folded.cut_as(job.stage_blocks);
  const MemoryEstimate m = estimate_memory(plan, job, folded);
  if (m.fits()) return check_local_tier(plan, job, places);
  const PlannedPool& pool = tightest_pool(plan, job, folded);
  const int batch = largest_batch(plan, job, folded);
  Diagnostic d;
  const SourcePlace of_batch = places.find("workload.batch_per_accelerator");
  const SourcePlace of_workload = places.find("workload");
  // A batch given as global_batch has no batch_per_accelerator of its own: find() then answers with
  // the parent.
  d.at = batch == 0                ? places.find("workload.model")
         : of_batch == of_workload ? places.find("workload.global_batch")
                                   : of_batch;
  d.what = fmt::format(
      "{} at batch {} needs {} of memory on each {}, which has {}: P(out of "
      "memory) is {}",
      job.model.name(), job.strategy.layout.micro_batch, format_bytes(m.required()),
      pool.accelerator ? pool.accelerator->name : pool.machine.name, format_bytes(m.available),
      probability_text(m.out_of_memory()));
  d.hint = parts_text(m);
  const char* of =
      traits_of(job.strategy.kind).any_degrees ? "micro_batch" : "batch_per_accelerator";
  d.hint += batch > 0 ? fmt::format("\nthe largest {} that fits is {}", of, batch)
                      : std::string("\nnot even a batch of 1 fits");
  d.hint += reserve_hint(plan, m);
  d.hint += recompute_hint(plan, job, folded);
  d.hint += state_hint(plan, job, folded);
  d.hint += accelerator_hint(catalog, pool, job, m.required());
  return d;
}

}  // namespace reckon
