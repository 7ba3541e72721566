#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>

#include "sim/measurement/calibrations.h"

namespace reckon {
namespace {

using test::correction_of;
using test::step_of;

const Catalog& catalog() { return test::shipped_catalog(); }

void set(Catalog& c, const std::string& name, double value) {
  find_parameter(c, name).value().set({value, value, value}, SourceId::user);
}

/// A machine unlike the catalog's: twice as fast, with three times the launch time and four times
/// the time between steps.
const Catalog& truth() {
  static const Catalog made = [] {
    Catalog c = catalog();
    set(c, "operations/host.cpu_flop_per_s_per_vcpu", 30e9);
    set(c, "operations/host.cpu_launch_s", 15e-6);
    set(c, "operations/host.cpu_step_s", 400e-6);
    return c;
  }();
  return made;
}

ScenarioFile scenario(const std::string& model, int batch) {
  const std::string text = "name: " + model + "-" + std::to_string(batch) +
                           "\n"
                           "workload:\n"
                           "  model: " +
                           model +
                           "\n"
                           "  dataset: {samples: 100000, bytes_per_sample: 112B}\n"
                           "  train: {steps: 300}\n"
                           "  batch_per_accelerator: " +
                           std::to_string(batch) +
                           "\n"
                           "  strategy: {kind: single}\n"
                           "  checkpoint: {interval: none}\n"
                           "cluster:\n"
                           "  provider: on_premises\n"
                           "  pools:\n"
                           "    - {name: here, machine: {vcpu: 4, memory: 8GiB, network: 10Gbps}, "
                           "nodes: 1}\n";
  return parse_scenario(text, "test.yaml").value();
}

/// What a machine of catalog `c` would measure, `factor` times as slow, each number with `error`.
MeasuredRun run_on(const Catalog& c, const std::string& model, int batch, double error = 0.01,
                   double factor = 1) {
  MeasuredRun run;
  run.scenario = scenario(model, batch);
  run.name = run.configuration = run.scenario.scenario.name;
  const StepEstimate step = step_of(run.scenario, c);
  run.quantities = {{Measured::step, factor * step.step.count(), error, 100},
                    {Measured::compute, factor * step.compute.count(), error, 100}};
  return run;
}

double error_of(const ScenarioFile& file, const Catalog& c) {
  return std::abs(std::log(step_of(file, c).step / step_of(file, truth()).step));
}

const std::string kModel = "mlp_boston_housing";

}  // namespace

TEST_CASE("runs of another machine are found to be one, and its other batch sizes are forecast") {
  const std::vector<MeasuredRun> runs{run_on(truth(), kModel, 8), run_on(truth(), kModel, 512),
                                      run_on(truth(), kModel, 16384)};
  const auto calibration = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(calibration);
  Catalog calibrated = catalog();
  REQUIRE(lay_over(calibrated, *calibration).empty());
  // At 2,048 twice the speed and three times the launch time would cancel: the catalog is right
  // there.
  for (const int batch : {64, 65536}) {
    INFO("batch " << batch);
    const ScenarioFile other = scenario(kModel, batch);
    CHECK(error_of(other, catalog()) > 0.25);    // 2 x, 3 x and 4 x are in it
    CHECK(error_of(other, calibrated) < 0.075);  // three runs, each believed to 10 %
  }
  const Correction* flops = correction_of(*calibration, "operations/host.cpu_flop_per_s_per_vcpu");
  const Correction* between = correction_of(*calibration, "operations/host.cpu_step_s");
  REQUIRE(flops != nullptr);
  REQUIRE(between != nullptr);
  CHECK(flops->calibrated.value > 18e9);  // 15 in the catalog, 30 in truth, shared with memory
  CHECK(between->calibrated.value > 200e-6);
  CHECK(between->standard_error < std::log(50.0) / 3.29);
  REQUIRE(!between->rows.empty());
  CHECK(between->rows.front() == "mlp_boston_housing-8: step");
  CHECK(calibration->held_out.rows == 3);
  CHECK(calibration->held_out.error_after < calibration->held_out.error_before);
  CHECK(!calibration->held_out.worse);
  CHECK(calibration->covariance.size() ==
        calibration->corrections.size() * calibration->corrections.size());
}

TEST_CASE("few values move the catalog little, many decide") {
  const auto moved = [&](double error) {
    const std::vector<MeasuredRun> runs{run_on(truth(), kModel, 8, error)};
    const auto c = calibrate(runs, catalog(), *make_fluid_network());
    REQUIRE(c);
    const Correction* between = correction_of(*c, "operations/host.cpu_step_s");
    return between == nullptr ? 0 : std::log(between->calibrated.value / between->catalog.value);
  };
  // ln 4 = 1.39 would be all of it.
  const double little = moved(2), much = moved(0.01);
  CHECK(little > 0);
  CHECK(little < 0.5);
  CHECK(much > 1);
}

TEST_CASE("what a worker takes outside the parts of a step is its own number, and is fitted") {
  // Ten times what the catalog says, in a step of which other parts are as it says.
  constexpr double kOther = 1e-3;
  Catalog slow = catalog();
  set(slow, "operations/host.cpu_step_s", kOther);
  MeasuredRun run = run_on(slow, kModel, 512);
  run.quantities.push_back({Measured::other, step_of(run.scenario, slow).host.count(), 0.01, 100});
  REQUIRE(run.quantities.back().value == Approx(kOther));
  const std::vector<MeasuredRun> runs{run};
  const auto c = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(c);
  const Correction* between = correction_of(*c, "operations/host.cpu_step_s");
  REQUIRE(between != nullptr);
  CHECK(between->calibrated.value == Approx(kOther).epsilon(0.05));
  CHECK(std::count(between->rows.begin(), between->rows.end(), run.name + ": other") == 1);
  Catalog calibrated = catalog();
  REQUIRE(lay_over(calibrated, *c).empty());
  CHECK(step_of(run.scenario, calibrated).step / step_of(run.scenario, slow).step ==
        Approx(1).epsilon(0.03));
}

TEST_CASE("what a stage waits for the others is no worker's own time") {
  ScenarioFile file = read_scenario(std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios" /
                                    "small-gpt-pipeline-cpu.yaml")
                          .value();
  const StepEstimate said = step_of(file, catalog());
  REQUIRE(said.bubble > 10 * said.host);
  // As the worker measures it: the bubble has the way of what is waited for in it.
  StepRecord step;
  step.seconds = said.step;
  step.compute = said.compute;
  step.update = said.update;
  step.waits.gradients = said.exposed_communication - said.exposed.pipeline;
  step.waits.pipeline = Seconds{1e-5};
  step.waits.bubble = said.bubble + said.exposed.pipeline - step.waits.pipeline;
  step.exposed_communication = step.waits.gradients + step.waits.pipeline;
  step.other = said.host + step.waits.bubble;
  Measurements measured;
  for (std::int64_t k = 0; k < 60; ++k) {
    step.step = k;
    step.at += step.seconds;
    measured.steps.push_back(step);
  }
  measured.runs.emplace_back();
  const MeasuredRun run = measured_run("pipeline", std::move(file), measured);
  const auto of = [&](Measured what) {
    const auto found = std::ranges::find(run.quantities, what, &MeasuredQuantity::what);
    return found == run.quantities.end() ? 0 : found->value;
  };
  CHECK(of(Measured::stages) == Approx((said.bubble + said.exposed.pipeline).count()));
  CHECK(of(Measured::other) == Approx(said.host.count()));
  const auto found = calibrate({&run, 1}, catalog(), *make_fluid_network());
  REQUIRE(found);
  // All is as forecast: so stay the numbers.
  const Correction* between = correction_of(*found, "operations/host.cpu_step_s");
  CHECK((between == nullptr ||
         between->calibrated.value == Approx(between->catalog.value).epsilon(0.2)));
}

TEST_CASE("what decoding and reading samples took corrects the data set and the store") {
  const std::string text =
      "name: photos\nworkload:\n  model: resnet50_v1_5\n  dataset: imagenet\n"
      "  train: {steps: 300}\n  batch_per_accelerator: 8\n  strategy: {kind: single}\n"
      "cluster:\n  provider: gcp\n  region: us-central1\n"
      "  pools: [{name: p, machine: n1-standard-16, nodes: 1}]\n";
  Measurements m;
  m.runs.push_back({.steps = 300, .data = "s3://bucket/train-"});
  for (std::int64_t k = 0; k < 30; ++k) {
    StepRecord step{.step = k, .seconds = Seconds{2}, .compute = Seconds{1.9}};
    step.read_samples = 8;
    step.read_bytes = Bytes{8 * 107e3};
    step.read = Seconds{8 * 107e3 / 4e9};  // 4 GB/s
    step.decode_cpu = Seconds{8 * 0.005};
    m.steps.push_back(step);
  }
  const auto parameters = [&](const Measurements& measured) {
    const MeasuredRun run =
        measured_run("photos", parse_scenario(text, "photos.yaml").value(), measured);
    return calibrate({&run, 1}, catalog(), *make_fluid_network());
  };
  const auto found = parameters(m);
  REQUIRE(found);
  const Correction* decode = correction_of(*found, "datasets/imagenet/decode_cpu_seconds");
  REQUIRE(decode != nullptr);
  CHECK(decode->catalog.value == 0.008);
  CHECK(decode->calibrated.value == Approx(0.005).epsilon(0.1));  // known to 18 %, 8 ms to 36 %
  CHECK(decode->calibrated.high < decode->catalog.high);
  CHECK(decode->rows == std::vector<std::string>{"photos: decoding a sample"});
  const Correction* rate = correction_of(*found, "storages/gcs-standard/read_per_node");
  REQUIRE(rate != nullptr);
  CHECK(rate->catalog.value == 2e9);
  CHECK(rate->calibrated.value > 3e9);
  // A slow stream says nothing: a node may have many.
  Measurements slow = m;
  for (StepRecord& step : slow.steps) *step.read *= 40;
  const auto of_one_stream = parameters(slow);
  REQUIRE(of_one_stream);
  CHECK(correction_of(*of_one_stream, "storages/gcs-standard/read_per_node") == nullptr);
  // Files of this machine say nothing of the store.
  m.runs[0].data = "/data/imagenet";
  const auto of_files = parameters(m);
  REQUIRE(of_files);
  CHECK(correction_of(*of_files, "datasets/imagenet/decode_cpu_seconds") != nullptr);
  for (const CalibratedRow& row : of_files->rows) CHECK(row.name != "photos: reading samples");
}

TEST_CASE("runs that pull to both sides make what is held out worse, and are said to") {
  const std::vector<MeasuredRun> runs{run_on(catalog(), kModel, 8192, 0.01, 3),
                                      run_on(catalog(), kModel, 16384, 0.01, 1.0 / 3)};
  const auto calibration = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(calibration);
  CHECK(calibration->held_out.rows == 2);
  CHECK(calibration->held_out.worse);
  REQUIRE(!calibration->warnings.empty());
  CHECK_THAT(calibration->warnings.front(), Catch::Contains("contradicts"));
}

TEST_CASE("what one configuration cannot say is said") {
  MeasuredRun run = run_on(truth(), kModel, 8);
  run.warnings.emplace_back("5 steps are few");
  const std::vector<MeasuredRun> runs{run};
  const auto calibration = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(calibration);
  CHECK(calibration->held_out.rows == 0);
  REQUIRE(calibration->warnings.size() >= 2);
  CHECK(calibration->warnings[0] == "5 steps are few");
  CHECK_THAT(calibration->warnings[1], Catch::Contains("one configuration"));
}

TEST_CASE("a single configuration is held out by its second half") {
  MeasuredRun run = run_on(truth(), kModel, 8);
  run.first_half = run.second_half = run.quantities;
  const std::vector<MeasuredRun> runs{run};
  const auto calibration = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(calibration);
  CHECK(calibration->held_out.rows == 1);
  CHECK(calibration->held_out.error_after < 0.1 * calibration->held_out.error_before);
}

TEST_CASE("nothing measured is an error at the run's file") {
  MeasuredRun run = run_on(truth(), kModel, 8);
  run.file = "runs/empty";
  run.quantities.clear();
  const std::vector<MeasuredRun> runs{run};
  const auto calibration = calibrate(runs, catalog(), *make_fluid_network());
  REQUIRE(!calibration);
  CHECK(calibration.error().front().at.file == "runs/empty");
}

TEST_CASE("steps on an accelerator that evidence tells of correct nothing: they are its rows") {
  MeasuredRun run;
  run.name = run.configuration = "mine";
  run.scenario = parse_scenario(R"(name: mine
workload:
  model: gpt2_small
  dataset: openwebtext
  train: {steps: 100}
  sequence_length: 1024
  precision: bf16
  batch_per_accelerator: 8
  strategy: {kind: multi_worker_mirrored}
cluster:
  provider: gcp
  service: gke
  region: us-east4
  pools: [{name: h100, machine: a3-highgpu-8g, nodes: 2}]
)",
                                "test.yaml")
                     .value();
  run.quantities = {{Measured::step, 0.5, 0.02, 50}, {Measured::compute, 0.4, 0.02, 50}};
  const auto network = make_fluid_network();
  const Calibration made = calibrate(std::vector{run}, catalog(), *network).value();
  CHECK(made.corrections.empty());
  REQUIRE(made.own_runs.size() == 1);
  const OwnRow& row = made.own_runs.front();
  CHECK(row.id == "mine");
  CHECK(row.accelerator == "H100-SXM5-80");
  CHECK(row.accelerators == 16);
  CHECK(row.many_nodes);
  CHECK(row.samples == 128);
  CHECK(row.step_seconds == 0.5);
  CHECK(row.noise == 0.02);
  CHECK(row.modelled_seconds > 0);

  SECTION("a trial of one of its workers is a row of that worker") {
    run.global_batch = 8;
    const OwnRow alone = calibrate(std::vector{run}, catalog(), *network).value().own_runs.at(0);
    CHECK(alone.accelerators == 1);
    CHECK(alone.samples == 8);
  }
  SECTION("kernels that were measured beside them correct the catalog, by the steps too") {
    run.quantities.push_back({Measured::kernel, 1e-4, 0.02, 50});
    run.quantities.back().kernel = MeasuredKernel{"NVIDIA H100 80GB HBM3", Precision::bf16,
                                                  WorkKind::matmul, Flops{5e10}, Bytes{1e8}};
    const Calibration both = calibrate(std::vector{run}, catalog(), *network).value();
    CHECK(both.own_runs.empty());
    CHECK_FALSE(both.corrections.empty());
  }
}

TEST_CASE("the same runs give the same overlay, digit by digit") {
  const std::vector<MeasuredRun> runs{run_on(truth(), kModel, 8), run_on(truth(), kModel, 512)};
  const auto network = make_fluid_network();
  CHECK(to_yaml(calibrate(runs, catalog(), *network).value()) ==
        to_yaml(calibrate(runs, catalog(), *network).value()));
}

}  // namespace reckon
