#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "sim/measurement/calibrations.h"

// What runs measure of their samples: it stands for itself, and explains the step.
namespace reckon {
namespace {

using test::correction_of;
using test::shipped_catalog;
using test::step_of;

ScenarioFile own_data_scenario(const std::string& dataset, const std::string& model = "mlp_mnist") {
  const std::string text =
      "name: own\nworkload:\n  model: " + model + "\n  dataset: " + dataset +
      "\n  train: {steps: 300}\n  batch_per_accelerator: 8\n  strategy: {kind: single}\n"
      "cluster:\n  provider: on_premises\n"
      "  pools: [{name: p, machine: {vcpu: 2, memory: 8GiB, network: 10Gbps}, nodes: 1}]\n";
  return parse_scenario(text, "own.yaml").value();
}

/// A run of that scenario on the catalog's machine, whose samples have so many bytes and take so
/// much of a processor.
MeasuredRun run_of(const std::string& dataset, double bytes, double decode) {
  ScenarioFile file = own_data_scenario(dataset);
  const StepEstimate forecast = step_of(file, shipped_catalog());
  Measurements m;
  m.runs.push_back({.steps = 300, .data = "photos"});
  for (std::int64_t k = 0; k < 30; ++k) {
    // On two vCPUs, which decode 8 samples beside the step.
    const Seconds step = forecast.step - forecast.exposed_input + Seconds{8 * decode / 2};
    StepRecord record{
        .step = k, .seconds = step, .compute = forecast.compute, .update = forecast.update};
    record.read_samples = 8;
    record.read_bytes = Bytes{8 * bytes};
    record.read = Seconds{1e-4};
    record.decode_cpu = Seconds{8 * decode};
    m.steps.push_back(record);
  }
  return measured_run("own", std::move(file), m);
}

/// The same from a store, one request after the other, of 4 MB/s and so long each; its step waits
/// for them.
MeasuredRun run_from_store(const std::string& dataset, double bytes, Seconds request) {
  ScenarioFile file = own_data_scenario(dataset);
  file.scenario.workload->data =
      DataSpec{.format = DataFormat::image_folder, .path = "s3://photos/all", .threads = 1};
  const StepEstimate forecast = step_of(file, shipped_catalog());
  Measurements m;
  m.runs.push_back({.steps = 300, .data = "s3://photos/all"});
  for (std::int64_t k = 0; k < 30; ++k) {
    StepRecord record{
        .step = k, .seconds = 8 * request, .compute = forecast.compute, .update = forecast.update};
    record.read_samples = 8;
    record.read_bytes = Bytes{8 * bytes};
    record.read = record.requests = 8 * request;
    record.decode_cpu = Seconds{1e-4};
    m.steps.push_back(record);
  }
  return measured_run("own", std::move(file), m);
}

Calibration calibrated(std::vector<MeasuredRun> runs) {
  return calibrate(runs, shipped_catalog(), *make_fluid_network()).value();
}

const CalibratedRow& row_of(const Calibration& c, const std::string& name) {
  for (const CalibratedRow& r : c.rows)
    if (r.name == name) return r;
  FAIL("no row " << name);
  return c.rows.front();
}

}  // namespace

TEST_CASE("decoding of one's own images explains the step, the storage is not corrected for it") {
  // 8 x 50 ms / 2 vCPUs = 200 ms a step, far more than the 4 ms that its layers take.
  const Calibration c = calibrated({run_of("{samples: 36, bytes_per_sample: 4kB}", 2.5e6, 0.050)});
  CHECK(correction_of(c, "storages/nfs/read_per_node") == nullptr);
  const double step = row_of(c, "own: step").measured;
  CHECK(step == Approx(0.2).epsilon(0.03));
  CHECK(row_of(c, "own: step").after == Approx(step).epsilon(0.002));
  CHECK(row_of(c, "own: step").before < 0.1);
  const CalibratedRow& decode = row_of(c, "own: decoding a sample");
  CHECK(decode.before == 0);
  CHECK(decode.measured == Approx(0.050));
  CHECK(decode.after == decode.measured);
  CHECK(row_of(c, "own: bytes of a sample").before == 4000);
  REQUIRE(c.own_data.size() == 1);
  const std::string line = to_text(c.own_data[0]);
  CHECK(line == "dataset: {samples: 36, bytes_per_sample: 2500000B, decode: 50ms}");
  // With that line the next forecast is the run, and the next calibration has nothing to say.
  const std::string said = line.substr(line.find('{'));
  CHECK(step_of(own_data_scenario(said), shipped_catalog()).step.count() ==
        Approx(step).epsilon(0.002));
  CHECK(calibrated({run_of(said, 2.5e6, 0.050)}).own_data.empty());
}

TEST_CASE("bytes of a sample are counted: they replace the catalog's number whatever its range") {
  const MeasuredRun run = run_of("mnist", 5786, 20e-6);
  const Calibration c = calibrated({run});
  const Correction* bytes = correction_of(c, "datasets/mnist/bytes_per_sample");
  REQUIRE(bytes != nullptr);
  CHECK(bytes->catalog.value == 785);
  CHECK(bytes->calibrated.value == Approx(5786));
  CHECK(bytes->calibrated.low == bytes->calibrated.value);
  CHECK(bytes->calibrated.high == bytes->calibrated.value);
  CHECK(bytes->rows == std::vector<std::string>{"own: bytes of a sample"});
  CHECK(row_of(c, "own: bytes of a sample").before == 785);
  CHECK(row_of(c, "own: bytes of a sample").after == Approx(5786));
  for (const std::string& warning : c.warnings)
    CHECK_THAT(warning, !Catch::Matchers::Contains("contradicts"));
  CHECK(c.covariance.size() == c.corrections.size() * c.corrections.size());
  CHECK(c.own_data.empty());
  Catalog corrected = shipped_catalog();
  REQUIRE(lay_over(corrected, c).empty());
  CHECK(corrected.find_dataset("mnist")->bytes_per_sample.value.v == Approx(5786));
  // Several runs: their mean, from the least to the most.
  const Calibration two = calibrated({run, run_of("mnist", 7786, 20e-6)});
  const Correction* mean = correction_of(two, "datasets/mnist/bytes_per_sample");
  REQUIRE(mean != nullptr);
  CHECK(mean->calibrated.value == Approx(6786));
  CHECK(mean->calibrated.low == Approx(5786));
  CHECK(mean->calibrated.high == Approx(7786));
  // As the catalog has it: nothing to correct.
  CHECK(correction_of(calibrated({run_of("mnist", 785, 20e-6)}),
                      "datasets/mnist/bytes_per_sample") == nullptr);
}

TEST_CASE(
    "files of the run's machine say nothing of a storage, whatever the catalog says of them") {
  // 230 kB and 50 ms where the catalog has a few kB and hardly any decoding.
  const Calibration c = calibrated({run_of("cifar10", 230e3, 0.050)});
  CHECK(correction_of(c, "storages/nfs/read_per_node") == nullptr);
  const Correction* decode = correction_of(c, "datasets/cifar10/decode_cpu_seconds");
  REQUIRE(decode != nullptr);
  CHECK(decode->calibrated.value == Approx(0.050));
  CHECK(row_of(c, "own: step").after == Approx(row_of(c, "own: step").measured).epsilon(0.002));
}

TEST_CASE("what a request to a store takes is corrected, and explains the step") {
  const Seconds request{0.250};
  const MeasuredRun run = run_from_store("{samples: 36, bytes_per_sample: 100kB}", 100e3, request);
  const Calibration c = calibrated({run});
  const Correction* latency = correction_of(c, "storages/nfs/latency");
  REQUIRE(latency != nullptr);
  const Storage nfs = *shipped_catalog().find_storage("nfs");
  CHECK(latency->calibrated.value == Approx(request.count() - 100e3 / nfs.read_per_node.value.v));
  CHECK(correction_of(c, "storages/nfs/read_per_node") == nullptr);  // with one thread it is slow
  CHECK(row_of(c, "own: step").after == Approx(8 * 0.250).epsilon(0.02));
  Catalog corrected = shipped_catalog();
  REQUIRE(lay_over(corrected, c).empty());
  ScenarioFile more = run.scenario;
  CHECK(step_of(more, corrected).step.count() == Approx(2.0).epsilon(0.02));
  more.scenario.workload->data->threads = 4;
  CHECK(step_of(more, corrected).step.count() == Approx(0.5).epsilon(0.02));
}

TEST_CASE("decoding that the catalog counts as nothing is corrected by what was measured") {
  Catalog c = shipped_catalog();
  for (Dataset& d : c.datasets)
    if (d.name == "mnist") d.decode_cpu_seconds = Fact<double>{0.0};
  const std::vector<MeasuredRun> runs{run_of("mnist", 785, 0.050)};
  const auto found = calibrate(runs, c, *make_fluid_network());
  REQUIRE(found);
  const Correction* decode = correction_of(*found, "datasets/mnist/decode_cpu_seconds");
  REQUIRE(decode != nullptr);
  CHECK(decode->catalog.value == 0);
  CHECK(decode->calibrated.value == Approx(0.050));
  CHECK(decode->calibrated.high > 0.060);  // another processor may be a fifth slower
  CHECK(correction_of(*found, "storages/nfs/read_per_node") == nullptr);
  CHECK(row_of(*found, "own: step").after ==
        Approx(row_of(*found, "own: step").measured).epsilon(0.002));
}

}  // namespace reckon
