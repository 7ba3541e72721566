#include "sim/measurement/calibration/calibration.h"

#include <catch2/catch.hpp>

#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/shipped_catalog.h"

namespace reckon {
namespace {

Correction correction(const std::string& parameter, double value) {
  Catalog c = test::shipped_catalog();
  Correction x{.parameter = parameter};
  const auto found = find_parameter(c, parameter);
  if (found) {
    x.unit = found->unit();
    x.catalog = found->get();
  }
  x.calibrated = {value, 0.9 * value, 1.1 * value};
  x.standard_error = 0.06;
  x.rows = {"mlp: step"};
  return x;
}

Calibration example() {
  Calibration c;
  c.name = "calibration.yaml";
  c.created = "2026-11-21";
  c.catalog_digest = "0123";
  c.measurements = {"runs/mlp", "runs/\"odd\": name"};
  c.corrections = {correction("operations/host.cpu_step_s", 4e-4),
                   correction("links/ethernet/latency", 1e-3)};
  c.covariance = {0.01, 0.002, 0.002, 0.04};
  c.waiting_times = {{.what = "provisioning of gcp_gpu",
                      .observed = 12,
                      .censored = 1,
                      .mean = 300,
                      .p5 = 200,
                      .p50 = 290,
                      .p95 = 420,
                      .families = {{"lognormal", 290, 0.22, 140.5, 141}}}};
  c.rows = {{"mlp: step", "s", 0.004, 0.0002, 0.0039, 300}};
  c.held_out = {.how = "each of 2", .rows = 2, .error_before = 1.5, .error_after = 0.1};
  c.warnings = {"few: 5"};
  return c;
}

}  // namespace

TEST_CASE("an overlay is read back as it was written") {
  const std::string text = to_yaml(example());
  const auto read = parse_calibration("calibration.yaml", text);
  REQUIRE(read);
  CHECK(to_yaml(*read) == text);
  CHECK(read->name == "calibration.yaml");
  CHECK(read->measurements == example().measurements);
  CHECK(read->corrections[1].calibrated.value == 1e-3);
  CHECK(read->covariance == example().covariance);
  CHECK(read->waiting_times[0].families[0].family == "lognormal");
}

TEST_CASE("what was measured of one's own data is read back, and is a line of the scenario") {
  Calibration c = example();
  CHECK(to_yaml(c).find("own_data") == std::string::npos);
  c.own_data = {{.name = "mine", .samples = 36, .bytes = 5786.4, .decode_seconds = 0.0021345}};
  const auto read = parse_calibration("calibration.yaml", to_yaml(c));
  REQUIRE(read);
  CHECK(to_yaml(*read) == to_yaml(c));
  CHECK(to_text(read->own_data.at(0)) ==
        "dataset: {samples: 36, bytes_per_sample: 5786B, decode: 2.135ms}");
  CHECK(to_text(OwnData{.samples = 1281167, .bytes = 110e3, .decode_seconds = 5e-7}) ==
        "dataset: {samples: 1281167, bytes_per_sample: 110000B, decode: 0.5us}");
  CHECK(to_text(OwnData{.samples = 2, .bytes = 8e9}) ==
        "dataset: {samples: 2, bytes_per_sample: 8000000000B}");
}

TEST_CASE("rows of one's own are read back, and a file of before there were any is read too") {
  Calibration c = example();
  CHECK(to_yaml(c).find("own_runs") == std::string::npos);
  OwnRow row;
  row.id = "mine: \"odd\"";
  row.accelerator = "A100-SXM4-80";
  row.precision = "bf16";
  row.network = "dense language model";
  row.domain = "language";
  row.parameters = 7e9;
  row.link = "nvlink3";
  row.accelerators = 8;
  row.samples = 64;
  row.step_seconds = 1.5;
  row.modelled_seconds = 1.25;
  row.device_share = 0.875;
  row.noise = 0.0125;
  row.steps = 40;
  c.own_runs = {row};
  const std::string text = to_yaml(c);
  const auto read = parse_calibration("c.yaml", text);
  REQUIRE(read);
  REQUIRE(read->own_runs.size() == 1);
  CHECK(to_yaml(*read) == text);
  CHECK(read->own_runs[0].id == row.id);
  CHECK(read->own_runs[0].modelled_seconds == 1.25);
  CHECK(read->own_runs[0].accelerators == 8);
  Catalog under = test::shipped_catalog();
  REQUIRE(lay_over(under, *read).empty());
  CHECK_THAT(under.calibrations.back(), Catch::Contains("1 run of one's own"));
  c.own_runs[0].step_seconds = 0;
  const auto wrong = parse_calibration("c.yaml", to_yaml(c));
  REQUIRE(!wrong);
  CHECK_THAT(format(wrong.error()), Catch::Contains("needs seconds, samples and accelerators"));
}

TEST_CASE("an overlay without anything is one too") {
  const auto read = parse_calibration("c.yaml", to_yaml(Calibration{}));
  REQUIRE(read);
  CHECK(read->corrections.empty());
}

TEST_CASE("mistakes of an overlay are told all at once, at their place") {
  std::string text = to_yaml(example());
  const auto replace = [&](const std::string& what, const std::string& by) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    text.replace(at, what.size(), by);
  };
  replace("held_out:", "held_aut:");
  replace("0.0004", "fast");
  const auto read = parse_calibration("c.yaml", text);
  REQUIRE(!read);
  REQUIRE(read.error().size() == 3);  // a missing key, an unknown one, a number that is none
  for (const Diagnostic& d : read.error()) CHECK(d.at.line > 0);
  CHECK_THAT(format(read.error()), Catch::Contains("did you mean 'held_out'"));
  CHECK_THAT(format(read.error()), Catch::Contains("corrections[0].calibrated.value"));
}

TEST_CASE("a file too large for a calibration is refused before it is read") {
  const auto large = parse_calibration("large.yaml", std::string(kLargestCalibration + 1, '#'));
  REQUIRE_FALSE(large);
  CHECK(large.error().front().hint == "a calibration has at most 16 MiB");
}

TEST_CASE("other versions, no YAML and ranges without their value are refused") {
  for (const char* text : {"schema_version: 2", "[", "just text", "{}"}) {
    INFO(text);
    CHECK(!parse_calibration("c.yaml", text));
  }
  Calibration upside = example();
  upside.corrections[0].calibrated = {1, 2, 3};
  CHECK(!parse_calibration("c.yaml", to_yaml(upside)));
  Calibration torn = example();
  torn.covariance.pop_back();
  CHECK(!parse_calibration("c.yaml", to_yaml(torn)));
}

TEST_CASE("the catalog below an overlay says what the overlay says, and who said it") {
  Catalog c = test::shipped_catalog();
  REQUIRE(lay_over(c, example()).empty());
  const Fact<double>& step = c.operations.at("host.cpu_step_s");
  CHECK(step.value == 4e-4);
  CHECK(step.low == Approx(3.6e-4));
  CHECK(step.assumed);
  CHECK(c.sources.at(std::size_t(step.source)).reference == "calibration calibration.yaml");
  CHECK(c.find_link("ethernet")->latency.value == Seconds{1e-3});
  REQUIRE(c.calibrations.size() == 1);
  CHECK(c.calibrations[0] ==
        "calibration.yaml: 2 corrections from runs/mlp, runs/\"odd\": name, 2026-11-21");
}

TEST_CASE("an overlay for numbers that are others by now says so") {
  Catalog c = test::shipped_catalog();
  Calibration old = example();
  old.corrections[0].catalog.value *= 2;
  REQUIRE(lay_over(c, old).empty());
  CHECK_THAT(c.calibrations.front(), Catch::EndsWith("made for another catalog"));
}

TEST_CASE("an overlay of numbers that the catalog does not have changes nothing") {
  Catalog c = test::shipped_catalog();
  Calibration wrong = example();
  wrong.corrections.push_back(correction("links/ethernett/latency", 1));
  wrong.corrections.push_back(correction("links/ethernet/tempo", 1));
  const Diagnostics problems = lay_over(c, wrong);
  REQUIRE(problems.size() == 2);
  CHECK_THAT(problems[0].what, Catch::Contains("did you mean 'ethernet'"));
  CHECK(c.find_link("ethernet")->latency.value ==
        test::shipped_catalog().find_link("ethernet")->latency.value);
  CHECK(c.calibrations.empty());
}

TEST_CASE("the speed of a row moves all of its numbers, and leaves the rest of its spread") {
  Catalog c = test::shipped_catalog();
  const auto volta = [](const Catalog& of) {
    for (const Efficiency& e : of.efficiencies)
      if (e.accelerator == "Volta" && e.precision == Precision::fp32 && e.stack.empty()) return e;
    FAIL("no row");
    return Efficiency{};
  };
  auto speed = find_parameter(c, "efficiencies/Volta/fp32/any/speed").value();
  const ParameterValue before = speed.get();
  CHECK(before.value == 1);
  // step_spread 0.832 .. 1.2 of the time: 1/1.2 .. 1/0.832 of the speed
  CHECK(before.low == Approx(1 / volta(c).step_spread.high));
  CHECK(before.high == Approx(1 / volta(c).step_spread.low));
  speed.set({0.8, 0.76, 0.84}, SourceId::user);
  const Efficiency was = volta(test::shipped_catalog()), is = volta(c);
  CHECK(is.matmul.value == Approx(0.8 * was.matmul.value));
  CHECK(is.memory.value == Approx(0.8 * was.memory.value));
  CHECK(is.launch.value / was.launch.value == Approx(1 / 0.8));
  CHECK(is.half_size.value == was.half_size.value);
  CHECK(is.step_spread.low == Approx(0.8 / 0.84));
  CHECK(is.step_spread.high == Approx(0.8 / 0.76));
}

TEST_CASE("a plan's parameters are in the catalog, also of a stack without rows of its own") {
  Catalog c = test::shipped_catalog();
  const auto file = read_scenario(RECKON_SOURCE_DIR "/scenarios/aws-p4d-spot.yaml");  // mlperf
  REQUIRE(file);
  const auto plan = make_plan(*file, c);
  REQUIRE(plan);
  REQUIRE_FALSE(plan->pools.front().efficiency.stack.empty());
  const std::vector<std::string> names = parameters_of(*plan, c);
  CHECK(names.size() > 10);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(find_parameter(c, name));
  }
}

TEST_CASE("a record of reclaims stands for the law that a scenario of one's own machines lacks") {
  const std::string text =
      "name: own\nworkload:\n  model: mlp_mnist\n  dataset: {samples: 1000, bytes_per_sample: "
      "1kB}\n"
      "  train: {steps: 10}\n  batch_per_accelerator: 8\n  strategy: {kind: single}\n"
      "cluster:\n  provider: on_premises\n  pools:\n"
      "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 1Gbps}, nodes: 1, "
      "pricing: spot}\n";
  const ScenarioFile file = parse_scenario(text, "own.yaml").value();
  Catalog c = test::shipped_catalog();
  CHECK_FALSE(make_plan(file, c));
  Calibration overlay = example();
  overlay.corrections = {correction("operations/spot.reclaim_mean_s", 3600)};
  REQUIRE(lay_over(c, overlay).empty());
  const auto plan = make_plan(file, c);
  REQUIRE(plan);
  REQUIRE(plan->reclaim.assumed_mean);
  CHECK(plan->reclaim.assumed_mean->value == Seconds{3600});
  CHECK(plan->reclaim.assumed_mean->low == Seconds{3240});  // each replication draws it
}

}  // namespace reckon
