#include <catch2/catch.hpp>
#include <cmath>

#include "sim/calibration/measurements.h"

namespace reckon {
namespace {

StepRecord step_record(std::int64_t attempt, std::int64_t step, double seconds) {
  StepRecord r;
  r.attempt = attempt;
  r.step = step;
  r.seconds = Seconds{seconds};
  r.loss = 1.5;
  return r;
}

std::string errors_of(const std::string& text) {
  const auto parsed = parse_measurements("run.jsonl", text);
  return parsed ? "" : format(parsed.error());
}

TEST_CASE("every kind of record is read as it was written, digit for digit") {
  RunRecord run;
  run.scenario = "mlp \"quoted\" \xc3\xa9";
  run.attempt = 2;
  run.started = "2026-12-04T18:00:00.123Z";
  run.steps = 1'000'000'000'000;
  run.seed = 0xffff'ffff'ffff'ffff;
  run.workers = 4;
  StepRecord step = step_record(2, 17, 0.1);
  step.at = Seconds{1.0 / 3};
  step.sent = Bytes{123456789};
  step.other = Seconds{0.0023};
  const Span span{"save",
                  "checkpoint_save",
                  0,
                  3,
                  SimTime{} + std::chrono::nanoseconds(1),
                  SimTime{} + std::chrono::nanoseconds(60'000'000'001)};
  InterruptionRecord lost;
  lost.cause = Interruption::preemption;
  lost.rank = 3;
  lost.lost_work = Seconds{12.5};
  CheckpointRecord save;
  save.action = CheckpointAction::restore;
  save.emergency = true;
  save.size = Bytes{4096};
  ProvisioningRecord node;
  node.pool = "p100";
  node.ready = false;
  EndRecord end;
  end.finished = true;
  end.detail = "done";
  MachineRecord machine;
  machine.processor = "EPYC";
  machine.cpu_quota = 1.5;
  machine.drift = -0.01;
  AcceleratorRecord gpu;
  gpu.name = "NVIDIA H100 80GB HBM3";
  gpu.memory = Bytes{85'520'809'984.0};
  gpu.pcie_lanes = 16;
  ProbeRecord probe;
  probe.kind = "matrix_product";
  probe.m = probe.n = probe.k = 1024;
  probe.flops = Flops{2.0 * 1024 * 1024 * 1024};
  probe.median = Seconds{1.0 / 70};
  const MeasurementRecord records[] = {
      run, step, span, Mark{"failed", 0, 1, SimTime{}}, lost, save, node, end, machine, gpu, probe};
  std::string text;
  for (const MeasurementRecord& r : records) text += to_line(r);
  const auto read = parse_measurements("run.jsonl", text);
  REQUIRE(read);
  std::string again;
  for (const auto& r : read->runs) again += to_line(r);
  for (const auto& r : read->steps) again += to_line(r);
  for (const auto& r : read->timeline.spans) again += to_line(r);
  for (const auto& r : read->timeline.marks) again += to_line(r);
  for (const auto& r : read->interruptions) again += to_line(r);
  for (const auto& r : read->checkpoints) again += to_line(r);
  for (const auto& r : read->provisioning) again += to_line(r);
  for (const auto& r : read->ends) again += to_line(r);
  for (const auto& r : read->machines) again += to_line(r);
  for (const auto& r : read->accelerators) again += to_line(r);
  for (const auto& r : read->probes) again += to_line(r);
  CHECK(again == text);
  CHECK(read->runs.at(0).seed == run.seed);
  CHECK(read->runs.at(0).scenario == run.scenario);
  CHECK(read->steps.at(0).at == step.at);
  CHECK(read->timeline.spans.at(0).end == span.end);
  CHECK(read->interruptions.at(0).cause == Interruption::preemption);
  CHECK(read->interruptions.at(0).rank == 3);
  CHECK(read->checkpoints.at(0).action == CheckpointAction::restore);
}

TEST_CASE("a loss that is no number is null, and read as none") {
  StepRecord step = step_record(0, 0, 1);
  step.loss = std::nan("");
  const std::string line = to_line(step);
  CHECK(line.find("\"loss\":null") != std::string::npos);
  CHECK(!parse_measurements("x", line)->steps.at(0).loss);
}

TEST_CASE("a last line without its end was never accepted: it is counted, not an error") {
  const std::string whole = to_line(step_record(0, 0, 1));
  const std::string torn = to_line(step_record(0, 1, 1));
  for (std::size_t length = 1; length < torn.size(); length += 7) {
    const auto read = parse_measurements("x", whole + torn.substr(0, length));
    REQUIRE(read);
    CHECK(read->steps.size() == 1);
    CHECK(read->torn_lines == 1);
  }
}

TEST_CASE("of a step that was done again the last attempt counts") {
  const auto read =
      parse_measurements("x", to_line(step_record(0, 0, 1)) + to_line(step_record(0, 1, 2)) +
                                  to_line(step_record(1, 1, 3)) + to_line(step_record(1, 2, 4)));
  REQUIRE(read);
  const auto useful = read->useful_steps();
  REQUIRE(useful.size() == 3);
  CHECK(useful[1].seconds == Seconds{3});
  CHECK(read->useful_steps(1).empty());
}

TEST_CASE("mistakes are all reported, each at its line") {
  const std::string good = to_line(step_record(0, 0, 1));
  std::string typo = good;
  typo.replace(typo.find("input_seconds"), 13, "inputs_second");
  std::string kind = good;
  kind.replace(kind.find("\"step\":0"), 8, "\"step\":\"a\"");
  const std::string errors =
      errors_of(good + "nonsense\n" + R"({"record":"stepp"})" + '\n' + typo + kind);
  CHECK(errors ==
        "run.jsonl:2: error: the line is no record\n"
        "    a record looks like {\"record\":\"step\",...}\n"
        "run.jsonl:3: error: unknown record 'stepp'; did you mean 'step'?\n"
        "    records: run, step, span, mark, interruption, checkpoint, provisioning, end, "
        "machine, accelerator, probe\n"
        "run.jsonl:4: error: key 'input_seconds' is missing\n"
        "run.jsonl:4: error: unknown key 'inputs_second'; did you mean 'input_seconds'?\n"
        "run.jsonl:5: error: 'step' cannot be \"a\"\n");
}

TEST_CASE("measurements of another format version are refused, not misread") {
  for (const std::string version : {"0", "3", "1.5e9"}) {
    std::string line = to_line(RunRecord{});
    line.replace(line.find("\"schema_version\":2"), 18, "\"schema_version\":" + version);
    CHECK_THAT(errors_of(line), Catch::StartsWith("run.jsonl:1: error: schema_version is ") &&
                                    Catch::EndsWith("    this reckon reads 1 to 2\n"));
  }
}

TEST_CASE("steps of the first version, without their rest, are read") {
  StepRecord step = step_record(0, 0, 1);
  step.other = Seconds{0.25};
  step.update = Seconds{0.5};
  std::string run = to_line(RunRecord{}), line = to_line(step);
  run.replace(run.find("\"schema_version\":2"), 18, "\"schema_version\":1");
  const std::string other = "\"other_seconds\":0.25,";
  REQUIRE(line.find(other) != std::string::npos);
  line.erase(line.find(other), other.size());
  const auto read = parse_measurements("x", run + line);
  REQUIRE(read);
  CHECK(read->steps.at(0).other == Seconds{0});
  CHECK(read->steps.at(0).update == Seconds{0.5});
  CHECK(parse_measurements("x", line).has_value());  // a line of a pod's log
}

TEST_CASE("the rest of a step is what none of its parts has, and never less than nothing") {
  StepRecord step = step_record(0, 0, 1);
  step.compute = Seconds{0.5};
  step.communication = Seconds{0.4};  // most of it behind the backward pass
  step.exposed_communication = Seconds{0.125};
  step.input = Seconds{0.0625};
  step.update = Seconds{0.0625};
  CHECK(rest_of(step) == Seconds{0.25});
  step.compute = Seconds{0.9};
  CHECK(rest_of(step) == Seconds{0});
}

TEST_CASE("numbers that do not fit are refused") {
  const auto with = [](const std::string& value) {
    std::string line = to_line(step_record(0, 0, 1));
    line.replace(line.find("\"rank\":0"), 8, "\"rank\":" + value);
    return errors_of(line);
  };
  CHECK(with("1").empty());
  CHECK(with("3000000000") == "run.jsonl:1: error: 'rank' cannot be 3000000000\n");
  CHECK(with("1.5") == "run.jsonl:1: error: 'rank' cannot be 1.5\n");
  CHECK(with("18446744073709551615") ==
        "run.jsonl:1: error: 'rank' cannot be 18446744073709551615\n");
}

}  // namespace
}  // namespace reckon
