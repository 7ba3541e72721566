#pragma once
#include "sim/forecast/forecast.h"

namespace reckon::test {

/// Two runs, the nearer one of the same job.
inline StepEvidence example_evidence() {
  StepEvidence e;
  e.median = 1.08;
  e.low = 0.9;
  e.high = 1.3;
  e.half_width = 0.1823;  // ln 1.2
  e.of_this_job = 1;
  e.runs.push_back({"dle-0042", "dle", "A100-SXM4-80", "bert_large", "pytorch-ngc", 16,
                    SamplesPerSecond{61.23}, true, 0.91, -0.1});
  e.runs.push_back({"x<&>", "other", "V100-SXM2-16", "bert_large", "", 8, SamplesPerSecond{20},
                    false, 0.4, 0.25});
  e.trial = TrialOffer{50, 8, 0.0953, Seconds{400}, Usd{3.5}};
  return e;
}

/// A forecast written down by hand: round numbers, every part of it present.
inline Forecast example_forecast() {
  using namespace std::chrono_literals;
  Forecast f;
  f.scenario = "example";
  f.engine = "fluid";
  f.seed = 7;
  f.replications = 1000;
  f.step.step = 200ms;
  f.step.compute = 150ms;
  f.step.communication = 80ms;
  f.step.exposed_communication = 40ms;
  f.step.input = 60ms;
  f.step.update = 10ms;
  f.step.bottleneck = Bottleneck::compute;
  f.step.mfu = 0.312;
  f.step.samples_per_second = SamplesPerSecond{1920};
  f.step.all_reduce = "ring";
  f.steps = 300'274;
  f.accelerators = 6;
  f.memory.parameters = 102.0_MB;
  f.memory.gradients = 102.0_MB;
  f.memory.optimizer = 102.0_MB;
  f.memory.activations = 6.0_GB;
  f.memory.workspace = 1.0_GB;
  f.memory.reserve = 1.0_GB;
  f.memory.available = 16.0_GiB;
  f.time_seconds = {72'000, 64'800, 71'280, 86'400};
  f.cost_usd = Quantiles{250, 230, 248, 301};
  f.node_hours = {{"p100", 60}, {"servers", 20.5}};
  f.cost_breakdown_usd = {150, 80, 5, 0, 10, 5};
  PoolRates p100{"p100", 3, {}, std::nullopt}, servers{"servers", 2, {}, std::nullopt};
  p100.price.machine = {760'000'000};
  p100.price.accelerators = {2'920'000'000};
  p100.reservation = PlannedReservation{1, {2'000'000'000}, 720h};
  servers.price.machine = {473'000'000};
  f.rates = RunRates{{p100, servers}, {1s, 60s, 60s, {100'000'000}}, {250'000}};
  f.goodput = {0.9, 0.85, 0.91, 0.95};
  f.lost_work_seconds = {1200, 0, 1000, 3600};
  f.badput = {0.01, 0.02, 0.01, 0.0, 0.03, 0.01, 0.02};
  f.interruptions = {2.5, 0, 0.25};
  f.interruptions_total = {2.75, 0, 3, 6};
  f.checkpoint_interval = 14min;
  f.prices_as_of = "2026-08-20";
  f.catalog_digest = "0123456789abcdef";
  f.assumptions = {
      {"efficiency of convolutions on P100-PCIE-16", "45.0 % (38.0 % .. 52.0 %)",
       "a fit, 14 measurements (2026-08-20)", -18'000, -61.25},
      {"mean time to reclaim of a spot node", "8 h (4 h .. 16 h)", "general knowledge", -4'200,
       -12.5},
      {"provisioning of a node of pool p100", "3 min 30 s (2 min .. 6 min)", "general knowledge",
       900, 2.25},
      {"image pull", "1 min (30 s .. 2 min)", "general knowledge", 90, 0.3},
      {"framework start", "20 s (10 s .. 40 s)", "general knowledge", 30, 0.1},
      {"price of storage", "0.02 USD (0.02 USD .. 0.03 USD)", "general knowledge", 0, 0.05},
  };
  f.evidence = example_evidence();
  AssumptionEffect& efficiency = f.assumptions.front();
  efficiency.key = "pools.p100.efficiency.convolution";
  efficiency.unit = "fraction";
  efficiency.median = 0.45;
  efficiency.low = 0.38;
  efficiency.high = 0.52;
  efficiency.effects_seconds = {{"training", -18'000}, {"step.compute", -0.05}};
  efficiency.effects_usd = {{"accelerators", -50}, {"machines", -11.25}};
  f.warnings = {
      "the first warning, which is long enough to be broken into two lines when the table is a "
      "hundred characters wide",
      "a short one"};
  return f;
}

}  // namespace reckon::test
