#include <catch2/catch.hpp>
#include <cmath>

#include "sim/measurement/calibration/calibrate.h"
#include "sim/measurement/calibration/predicted.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/step/network/network.h"
#include "support/shipped_catalog.h"
#include "support/text.h"

namespace reckon {
namespace {

ScenarioFile gpt2_on_one_h100() {
  constexpr const char* kText =
      "name: gpt2\n"
      "workload:\n"
      "  model: gpt2_small\n"
      "  dataset: {samples: 100000, bytes_per_sample: 2kB}\n"
      "  train: {steps: 300}\n"
      "  precision: bf16\n"
      "  batch_per_accelerator: 16\n"
      "  strategy: {kind: single}\n"
      "cluster:\n"
      "  provider: on_premises\n"
      "  pools:\n"
      "    - name: here\n"
      "      machine: {vcpu: 32, memory: 200GiB, network: 10Gbps}\n"
      "      accelerator: {type: H100-SXM5-80, count: 1}\n"
      "      nodes: 1\n";
  return parse_scenario(kText, "test.yaml").value();
}

/// A bf16 product of n cubed that takes `seconds`, on the GPU that a driver calls `device`.
ProbeRecord product(std::int64_t n, double seconds, const std::string& device) {
  ProbeRecord r;
  r.kind = "matrix_product";
  r.device = device;
  r.precision = "bf16";
  r.m = r.n = r.k = n;
  r.flops = Flops{2.0 * double(n) * double(n) * double(n)};
  r.median = Seconds{seconds};
  r.repetitions = 9;
  return r;
}

Expected<Calibration> calibrated_by(const Measurements& probe) {
  const std::vector<MeasuredRun> runs{measured_probe("probe.jsonl", gpt2_on_one_h100(), probe)};
  return calibrate(runs, test::shipped_catalog(), *make_fluid_network());
}

const std::string kDevice = "NVIDIA H100 80GB HBM3";

/// What the shipped catalog says of such a product.
double forecast_of(std::int64_t n) {
  Measurements probe;
  probe.probes.push_back(product(n, 1, kDevice));
  const MeasuredRun run = measured_probe("probe.jsonl", gpt2_on_one_h100(), probe);
  const Plan plan = make_plan(run.scenario, test::shipped_catalog()).value();
  const auto network = make_fluid_network();
  const StepEstimate step = estimate_step(plan, plan.jobs.front(), *network);
  return predicted(run.quantities.at(0), plan, step, *network);
}

}  // namespace

TEST_CASE("a driver's name is matched to the catalog's by the whole word of the model number") {
  CHECK(names_accelerator("NVIDIA H100 80GB HBM3", "H100-SXM5-80"));
  CHECK(names_accelerator("Tesla V100-SXM2-16GB", "V100-SXM2-16"));
  CHECK(names_accelerator("Tesla T4", "T4"));
  CHECK_FALSE(names_accelerator("NVIDIA GH200 480GB", "H200-SXM-141"));
  CHECK_FALSE(names_accelerator("NVIDIA H200", "H100-SXM5-80"));
  CHECK_FALSE(names_accelerator("NVIDIA L40S", "L4"));
  CHECK_FALSE(names_accelerator("", "H100-SXM5-80"));
}

TEST_CASE("products of the plan's GPU that are slower than forecast slow the forecast") {
  // 989.4 TFLOP/s dense: 8192 cubed takes 1.11 ms at best, and no catalog forecasts less.
  CHECK(forecast_of(8192) > 2 * std::pow(8192.0, 3) / 990e12);
  Measurements probe;
  for (const std::int64_t n : {2048, 4096, 8192})
    probe.probes.push_back(product(n, 2 * forecast_of(n), kDevice));
  const auto calibration = calibrated_by(probe);
  REQUIRE(calibration);
  REQUIRE(calibration->corrections.size() == 1);
  // The shipped efficiencies of one architecture and precision are uncertain together.
  const Correction& speed = calibration->corrections.front();
  CHECK(speed.parameter == "efficiencies/Hopper/bf16/any/speed");
  CHECK(speed.calibrated.value < 0.9);
  CHECK(speed.calibrated.value > 0.5);  // half of it would be to believe the probe alone
}

TEST_CASE("products of another GPU, or in another precision, say nothing of the plan's") {
  Measurements probe;
  probe.probes.push_back(product(4096, 1, "NVIDIA A100-SXM4-80GB"));
  probe.probes.push_back(product(4096, 1, kDevice));
  probe.probes.back().precision = "fp32";
  const auto calibration = calibrated_by(probe);
  REQUIRE_FALSE(calibration);
  CHECK(test::contains(format(calibration.error()), "no measurement of anything"));
}

TEST_CASE("without a scenario a probe of a GPU says what it wants") {
  Measurements probe;
  probe.probes.push_back(product(4096, 1, kDevice));
  const MeasuredRun run = measured_probe("probe.jsonl", {}, probe);
  CHECK(run.quantities.empty());
  REQUIRE(run.warnings.size() == 1);
  CHECK(test::contains(run.warnings[0], "--scenario"));
}
}  // namespace reckon
