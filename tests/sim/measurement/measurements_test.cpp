#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/measurement/measurements.h"
#include "sim/measurement/sealed_line.h"
#include "support/text.h"

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

/// All that is wrong with lines that are left out.
std::string damage_in(const std::string& text) {
  const auto parsed = parse_measurements("run.jsonl", text);
  REQUIRE(parsed);
  std::string all;
  for (const DamagedLine& line : parsed->damaged) all += format(line.why);
  return all;
}

/// As an older reckon, or somebody else, writes it.
std::string unsealed(const MeasurementRecord& record) { return to_json(record) + '\n'; }

std::vector<std::string> lines_of(const Measurements& m) {
  std::vector<std::string> lines;
  for_each_record(m, [&](const auto& record) { lines.push_back(to_line(record)); });
  return lines;
}

TEST_CASE("every kind of record is read as it was written, digit for digit") {
  RunRecord run;
  run.scenario = "mlp \"quoted\" \xc3\xa9";
  run.attempt = 2;
  run.started = "2026-12-04T18:00:00.123Z";
  run.steps = 1'000'000'000'000;
  run.seed = 0xffff'ffff'ffff'ffff;
  run.workers = 4;
  run.data = "s3://bucket/train-";
  StepRecord step = step_record(2, 17, 0.1);
  step.at = Seconds{1.0 / 3};
  step.sent = Bytes{123456789};
  step.other = Seconds{0.0023};
  step.waits.tensor = Seconds{0.25};
  step.waits.bubble = Seconds{0.125};
  step.read_samples = 128;
  step.skipped_samples = 1;
  step.read_bytes = Bytes{14'080'000};
  step.read = Seconds{0.04};
  step.decode_cpu = Seconds{1.1};
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
  const ChangeRecord change{2, 17, Seconds{3}, "learning_rate", "0.1", "0.05"};
  DecisionRecord decision;
  decision.step = 17;
  decision.applied = true;
  decision.what = "two more workers";
  decision.changes = {"cluster.pools.here.nodes=4", "workload.batch_per_accelerator=8"};
  decision.kept_miss = 0.97;
  decision.miss = 1.0 / 16;
  decision.p95 = Seconds{1.0 / 3};
  decision.cost = 0.38;
  const EvaluationRecord evaluation{1, 0, 40, Seconds{9}, Seconds{0.5}, 100, 1.0 / 3};
  const MeasurementRecord records[] = {
      run,    step,     span,       Mark{"failed", 0, 1, SimTime{}},
      lost,   save,     node,       end,
      change, decision, evaluation, machine,
      gpu,    probe};

  std::string text;
  for (const MeasurementRecord& r : records) text += to_line(r);
  const auto read = parse_measurements("run.jsonl", text);
  REQUIRE(read);
  std::string again;
  for (const std::string& line : lines_of(*read)) again += line;
  CHECK(again == text);
  CHECK(read->runs.at(0).seed == run.seed);
  CHECK(read->runs.at(0).scenario == run.scenario);
  CHECK(read->steps.at(0).at == step.at);
  CHECK(read->steps.at(0).decode_cpu == step.decode_cpu);
  CHECK(read->runs.at(0).data == run.data);
  CHECK(read->timeline.spans.at(0).end == span.end);
  CHECK(read->interruptions.at(0).cause == Interruption::preemption);
  CHECK(read->interruptions.at(0).rank == 3);
  CHECK(read->checkpoints.at(0).action == CheckpointAction::restore);
  CHECK(read->decisions.at(0).changes == decision.changes);
  CHECK(read->decisions.at(0).cost == 0.38);
  CHECK(!read->decisions.at(0).kept_cost);
  CHECK(!read->ends.at(0).spent);
  CHECK(read->evaluations.at(0).step == 40);
  CHECK(read->evaluations.at(0).loss == 1.0 / 3);
}

TEST_CASE("an end says what was spent, older ends do not") {
  EndRecord end;
  end.spent = 1.25;
  CHECK(parse_measurements("x", to_line(end))->ends.at(0).spent == 1.25);
  end.spent.reset();
  CHECK(to_line(end).find("spent") == std::string::npos);
  CHECK(!parse_measurements("x", to_line(end))->ends.at(0).spent);
}

TEST_CASE("a decision whose changes are no words is no record") {
  const auto read = parse_measurements("x", [] {
    std::string line = to_json(DecisionRecord{});
    const std::string none = "\"changes\":[]";
    line.replace(line.find(none), none.size(), "\"changes\":[1]");
    return line + "\n";
  }());
  REQUIRE(read);
  CHECK(read->decisions.empty());
  REQUIRE(read->damaged.size() == 1);
  CHECK(read->damaged[0].why[0].what == "'changes' cannot be [1]");
}

TEST_CASE("a loss that is no number is null, and read as none") {
  StepRecord step = step_record(0, 0, 1);
  step.loss = std::nan("");
  const std::string line = to_line(step);
  CHECK(line.find("\"loss\":null") != std::string::npos);
  CHECK(!parse_measurements("x", line)->steps.at(0).loss);
}

TEST_CASE("what only later versions say of input is absent, and read as nothing measured") {
  StepRecord step = step_record(0, 0, 1);
  CHECK(to_json(step).find("read_samples") == std::string::npos);
  CHECK(!parse_measurements("x", to_line(step))->steps.at(0).decode_cpu);
  std::string run = to_json(RunRecord{});
  const std::string data = ",\"data\":\"\"";
  REQUIRE(run.find(data) != std::string::npos);
  run.erase(run.find(data), data.size());
  CHECK(parse_measurements("x", run + "\n")->runs.at(0).data.empty());
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

TEST_CASE("what is wrong with a line is told whole, at its number, and the others are read") {
  const std::string good = to_line(step_record(0, 0, 1));
  std::string typo = unsealed(step_record(0, 0, 1));
  typo.replace(typo.find("input_seconds"), 13, "inputs_second");
  std::string kind = unsealed(step_record(0, 0, 1));
  kind.replace(kind.find("\"step\":0"), 8, "\"step\":\"a\"");
  const std::string text =
      good + "nonsense\n" + R"({"record":"stepp"})" + '\n' + typo + kind + good;
  CHECK(damage_in(text) ==
        "run.jsonl:2: warning: the line is no record\n"
        "    a record looks like {\"record\":\"step\",...}\n"
        "run.jsonl:3: warning: unknown record 'stepp'; did you mean 'step'?\n"
        "    records: run, step, span, mark, interruption, checkpoint, provisioning, end, "
        "machine, accelerator, probe, change, decision, evaluation\n"
        "run.jsonl:4: warning: key 'input_seconds' is missing\n"
        "run.jsonl:4: warning: unknown key 'inputs_second'; did you mean 'input_seconds'?\n"
        "run.jsonl:5: warning: 'step' cannot be \"a\"\n");
  const auto read = parse_measurements("run.jsonl", text);
  CHECK(read->steps.size() == 2);
  CHECK(format(damage_of(*read)).ends_with("    and 1 more line of this file\n"));
}

TEST_CASE("measurements of another format version are refused, not misread") {
  for (const std::string version : {"0", "4", "1.5e9"}) {
    std::string json = to_json(RunRecord{});
    json.replace(json.find("\"schema_version\":3"), 18, "\"schema_version\":" + version);
    const auto refused = parse_measurements("run.jsonl", seal_line(json) + '\n');
    REQUIRE(!refused);
    CHECK_THAT(format(refused.error()),
               Catch::StartsWith("run.jsonl:1: error: schema_version is ") &&
                   Catch::EndsWith("    this reckon reads 1 to 3\n"));
    // Without a checksum it is no other version's, but a damaged digit.
    CHECK(test::contains(damage_in(json + '\n'), "run.jsonl:1: warning: schema_version is "));
  }
}

TEST_CASE("a flipped bit anywhere costs at most the record that it hits, and changes none") {
  RunRecord run;
  run.scenario = "{\"record\":\"xxh3\":\"";  // a name that looks like the ends of records
  const MeasurementRecord records[] = {run, step_record(0, 0, 0.5), step_record(0, 1, 0.25),
                                       CheckpointRecord{}, EndRecord{}};
  std::string text;
  std::set<std::string> lines;
  for (const MeasurementRecord& r : records) {
    text += to_line(r);
    lines.insert(to_line(r));
  }
  for (std::size_t byte = 0; byte < text.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[byte] = char(flipped[byte] ^ (1 << bit));
      const auto read = parse_measurements("x", flipped);
      REQUIRE(read);
      const auto kept = lines_of(*read);
      std::size_t known = 0;
      for (const std::string& line : kept) known += lines.count(line);
      if (known != kept.size() || kept.size() + 1 < std::size(records) ||
          read->damaged.size() + std::size_t(read->torn_lines) == 0)
        FAIL("byte " << byte << ", bit " << bit << " of\n" << text);
    }
  }
}

TEST_CASE("two records that run into each other are both read") {
  const std::string first = to_line(step_record(0, 0, 1)), second = to_line(step_record(0, 1, 2));
  for (const std::string between : {" ", "", "{\"record\":\"st", "\xff\xfe"}) {
    const std::string merged = first.substr(0, first.size() - 1) + between + second;
    const auto read = parse_measurements("x", merged + first);
    REQUIRE(read);
    CHECK(read->steps.size() == 3);
    REQUIRE(read->damaged.size() == 1);
    CHECK(read->damaged[0].rescued.size() == 2);
    CHECK(read->damaged[0].bytes == merged.size() - 1);
  }
}

TEST_CASE("garbage, binary and endless lines cost themselves") {
  const std::string good = to_line(step_record(0, 0, 1));
  for (const std::string& bad :
       {std::string("\0\0\0\0", 4), std::string("\xff\x80{\"record\""), std::string("{}"),
        std::string("[") + std::string(2'000'000, '['), std::string(3'000'000, 'x'),
        good.substr(0, 40), R"({"record":{"record":"step"}})" + std::string()}) {
    const auto read = parse_measurements("x", good + bad + '\n' + good);
    REQUIRE(read);
    CHECK(read->steps.size() == 2);
    REQUIRE(read->damaged.size() == 1);
    CHECK(read->damaged[0].line == 2);
    CHECK(read->damaged[0].begin == good.size());
    CHECK(read->damaged[0].bytes == bad.size());
  }
  CHECK(test::contains(damage_in(std::string(3'000'000, 'x') + '\n'), "a line of 3000000 bytes"));
  // A last line that no killed writer of records leaves.
  CHECK(parse_measurements("x", good + "garbage")->damaged.size() == 1);
}

TEST_CASE("a control character of a damaged line does not reach the terminal") {
  const std::string damage = damage_in("{\"record\":\"a\\u001b[2J\"}\n");
  CHECK(damage.find('\x1b') == std::string::npos);
  CHECK(test::contains(damage, "\\u001b"));
}

TEST_CASE("steps of the first version, without their rest, are read") {
  StepRecord step = step_record(0, 0, 1);
  step.other = Seconds{0.25};
  step.update = Seconds{0.5};
  std::string run = unsealed(RunRecord{}), line = unsealed(step);
  run.replace(run.find("\"schema_version\":3"), 18, "\"schema_version\":1");
  const std::string other = "\"other_seconds\":0.25,";
  REQUIRE(line.find(other) != std::string::npos);
  line.erase(line.find(other), other.size());
  const auto read = parse_measurements("x", run + line);
  REQUIRE(read);
  CHECK(read->steps.at(0).other == Seconds{0});
  CHECK(read->steps.at(0).update == Seconds{0.5});
  CHECK(read->damaged.empty());
  CHECK(parse_measurements("x", line)->damaged.empty());  // a line of a pod's log
}

TEST_CASE("what a step did not wait for is not in its line") {
  StepRecord step = step_record(0, 0, 1);
  CHECK(to_json(step).find("bubble_seconds") == std::string::npos);
  step.waits.bubble = Seconds{0.5};
  CHECK(to_json(step).find("\"bubble_seconds\":0.5,") != std::string::npos);
  CHECK(to_json(step).find("tensor_seconds") == std::string::npos);
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
    std::string line = unsealed(step_record(0, 0, 1));
    line.replace(line.find("\"rank\":0"), 8, "\"rank\":" + value);
    return damage_in(line);
  };
  CHECK(with("1").empty());
  CHECK(with("3000000000") == "run.jsonl:1: warning: 'rank' cannot be 3000000000\n");
  CHECK(with("1.5") == "run.jsonl:1: warning: 'rank' cannot be 1.5\n");
  CHECK(with("18446744073709551615") ==
        "run.jsonl:1: warning: 'rank' cannot be 18446744073709551615\n");
}

}  // namespace
}  // namespace reckon
