#include "sim/accuracy/predict.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

void slow(Efficiency& e, double factor) {
  for (Fact<double>* speed : {&e.convolution, &e.matmul, &e.attention, &e.memory})
    speed->value /= factor;
  e.launch.value *= factor;
  e.host.value *= factor;
}

Slowing slowing_of(const Plan& plan, const PlannedWorkload& job, const NetworkModel& network,
                   SamplesPerSecond rate) {
  std::array<double, Slowing::kFactors.size()> log_rates{};
  for (std::size_t i = 0; i < log_rates.size(); ++i) {
    if (Slowing::kFactors[i] == 1) continue;
    Plan slowed = plan;
    for (PlannedPool& pool : slowed.pools) slow(pool.efficiency, Slowing::kFactors[i]);
    const auto then = estimate_step(slowed, job, network).samples_per_second;
    log_rates[i] = std::log(then / rate);
  }
  return Slowing(log_rates);
}

/// Sections of BigScience's GPT-2 experiments (experiments/gpt2.md) whose rows leave out that they
/// shard by DeepSpeed's stage 3 (ds_pretrain_gpt2-zero3.sh), and what of the state and of the kept
/// inputs is partitioned among tensor ranks or moved to the host.
constexpr std::array<std::string_view, 2> kUnsaidMemory{"Megatron + Deepspeed ZeRO",
                                                        "Full Offload"};

/// Do the columns say what a run keeps? Not where recomputation is not printed, of the sections
/// above, and of NVIDIA's DLRM on one GPU, which is its small model [DeepLearningExamples,
/// PyTorch/Recommendation/DLRM/README.md: "model size" small], a tenth of the one of MLPerf.
bool says_what_it_keeps(const RunConfiguration& run, const PlannedWorkload& job) {
  if (run.recompute == "unknown" && cuts_the_model(job.strategy)) return false;
  if (run.model == "dlrm" && run.accelerators == 1 && run.framework == "PyTorch") return false;
  return std::ranges::none_of(kUnsaidMemory, [&](std::string_view section) {
    return run.framework.find(section) != std::string_view::npos;
  });
}

Predicted predict(const RunConfiguration& run, const Catalog& catalog,
                  const NetworkModel& network) {
  const auto plan = plan_of_run(run, catalog);
  if (!plan) return tl::unexpected(plan.error());
  const PlannedWorkload& job = plan->only_job();
  const Efficiency& efficiency = plan->pool_with(Role::worker)->efficiency;
  Prediction p;
  const StepEstimate step = estimate_step(*plan, job, network);
  p.rate = step.samples_per_second;
  p.device_share = device_share(step);
  // step_spread is a factor on the step's time.
  p.low = p.rate / efficiency.step_spread.high;
  p.high = p.rate / efficiency.step_spread.low;
  const std::string_view stack = efficiency.stack;
  p.stack_known =
      !stack.empty() && !stack.starts_with('*') && catalog.class_of_stack(stack) != stack;
  p.memory = estimate_memory(*plan, job);
  p.memory_known = p.memory.fits_at(kMoreLikelyThanNot) || says_what_it_keeps(run, job);
  if (job.strategy.accelerators() > 1) p.slowing = slowing_of(*plan, job, network, p.rate);
  return p;
}

}  // namespace

namespace {

const std::array<double, Slowing::kFactors.size()>& log_factors() {
  static const auto logs = [] {
    std::array<double, Slowing::kFactors.size()> result{};
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::log(Slowing::kFactors[i]);
    return result;
  }();
  return logs;
}

}  // namespace

Slowing::Slowing() {
  for (std::size_t i = 0; i < log_rates_.size(); ++i) log_rates_[i] = -log_factors()[i];
}

double Slowing::of_devices(double log_factor) const {
  const auto& x = log_factors();
  std::size_t i = 1;
  while (i + 1 < x.size() && log_factor > x[i]) ++i;
  const double along = (log_factor - x[i - 1]) / (x[i] - x[i - 1]);
  return log_rates_[i - 1] + along * (log_rates_[i] - log_rates_[i - 1]);
}

double Slowing::log_rate(Slowness s) const { return of_devices(s.devices - s.links) - s.links; }

Slowness Slowing::explained(double log_ratio) const {
  // Along the curve of what explains it, by how much more the devices are slowed than the links.
  const auto at = [&](double more) {
    const double links = of_devices(more) - log_ratio;
    return Slowness{links + more, links};
  };
  const auto size = [&](double more) {
    const Slowness s = at(more);
    return s.links * s.links + s.devices * s.devices;
  };
  constexpr int kSteps = 100, kHalvings = 80;
  constexpr double kMost = 4, kStep = kMost / kSteps;  // a factor of 55
  double best = 0;
  for (int i = -kSteps; i <= kSteps; ++i)
    if (size(i * kStep) < size(best)) best = i * kStep;
  double low = best - kStep, high = best + kStep;
  for (int i = 0; i < kHalvings; ++i) {
    const double a = (2 * low + high) / 3, b = (low + 2 * high) / 3;
    (size(a) < size(b) ? high : low) = size(a) < size(b) ? b : a;
  }
  return at((low + high) / 2);
}

Predictor::Predictor(const Catalog& catalog)
    : catalog_(catalog), network_(make_default_network()) {}
Predictor::~Predictor() = default;

const Predicted& Predictor::operator()(const RunConfiguration& run) {
  const auto at = known_.find(run);
  if (at != known_.end()) return at->second;
  return known_.emplace(run, predict(run, catalog_, *network_)).first->second;
}

}  // namespace reckon
