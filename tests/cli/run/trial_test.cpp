#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "executor/train/records/measurement_log.h"

using namespace reckon;
using namespace reckon::test;

namespace {

const std::string kTwoNodes =
    "cluster:\n"
    "  provider: on_premises\n"
    "  pools:\n"
    "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 2}\n"
    "forecast: {replications: 20}\n";

/// 1,600 samples in batches of 16 on CPUs.
const std::string kTrialJob =
    "name: prices\n"
    "workload:\n"
    "  model: mlp_boston_housing\n"
    "  dataset: {samples: 1600, bytes_per_sample: 112B}\n"
    "  train: {epochs: 1}\n"
    "  precision: fp32\n"
    "  batch_per_accelerator: 16\n"
    "  strategy: {kind: multi_worker_mirrored, workers: 2}\n"
    "  checkpoint: {interval: none}\n" +
    kTwoNodes;

const std::string kCommand =
    "--container-command 'i=0; while :; do i=$((i+1)); echo \"step $i loss 0.5 - 250ms/step\"; "
    "sleep 0.01; done' ";

/// A small GPT of two ranks on this machine.
std::string layouts_job(const std::string& strategy) {
  return "name: layouts\n"
         "workload:\n"
         "  model: {transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 64, "
         "sequence_length: 16, positions: 16, tied_output: true}}\n"
         "  dataset: {samples: 4096, bytes_per_sample: 32B}\n"
         "  train: {steps: 1000}\n"
         "  precision: fp32\n"
         "  global_batch: 8\n"
         "  strategy: " +
         strategy +
         "\n"
         "  checkpoint: {interval: none}\n" +
         kTwoNodes;
}

}  // namespace

TEST_CASE("trial runs one worker of the plan by itself and forecasts the plan at its speed") {
  const Workspace w;
  w.write("job.yaml", kTrialJob);
  const Output r = w.run("trial job.yaml --steps 40 --format json --out trial.jsonl");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto json = nlohmann::json::parse(r.out);
  CHECK(json["command"] == "trial");
  CHECK(json["program"] == "reckon-worker");
  CHECK(json["measured"]["steps"] == 40);
  CHECK(json["measured"]["warmup"].get<int>() >= 1);
  const double step = json["measured"]["step_seconds"]["mean"];
  CHECK(step > 0);
  REQUIRE(json["rows"].size() == 3);
  // 1,600 samples are 100 steps of 16.
  CHECK(json["rows"][0]["time_seconds"]["p50"].get<double>() == Approx(100 * step));
  CHECK(json["rows"][1]["name"] == "the plan, as forecast");
  CHECK(json["rows"][2]["name"] == "the plan, at the measured step");
  CHECK(json["rows"][2]["step_seconds"].get<double>() >= 0.99 * step);  // and communication
  const auto records = read_measurement_log(w.path("trial.jsonl"));
  REQUIRE(records);
  CHECK(records->runs.at(0).global_batch == 16);
  CHECK(records->steps.size() == 40);
}

TEST_CASE("trial measures a program of the user's own, and says whether something else pays") {
  const Workspace w;
  w.write("job.yaml", kTrialJob);
  const Output r = w.run(
      "trial job.yaml --steps 20 --price '0.40 USD/h' --sweep "
      "cluster.pools.here.machine.vcpu=1,8 --format json " +
      kCommand);
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto json = nlohmann::json::parse(r.out);
  // The program says 250 ms a step, its lines come every 10 ms: that is worth a warning.
  CHECK(json["measured"]["step_seconds"]["mean"].get<double>() == Approx(0.25));
  REQUIRE(json["warnings"].size() == 1);
  CHECK(contains(json["warnings"][0], "the program says 250 ms a step"));
  // 100 steps of 250 ms at 0.40 USD an hour.
  CHECK(json["rows"][0]["cost_usd"]["p50"].get<double>() == Approx(100 * 0.25 / 3600 * 0.40));
  REQUIRE(json["rows"].size() == 5);
  CHECK(json["rows"][4]["name"] == "8");
  const Output table = w.run("trial job.yaml --steps 20 " + kCommand);
  CHECK(contains(table.out, "this machine, training alone"));
  CHECK(contains(table.out, "none of these is faster than this machine"));
  CHECK(contains(table.out, "by the program's own clock"));
  CHECK(contains(table.out, "this machine's time excludes start-up"));
}

TEST_CASE("another batch than the plan's leaves the plan as it was forecast") {
  const Workspace w;
  w.write("job.yaml", kTrialJob);
  const Output r = w.run("trial job.yaml --steps 10 --batch 32 --format json " + kCommand);
  REQUIRE(r.code == 0);
  const auto json = nlohmann::json::parse(r.out);
  CHECK(json["rows"].size() == 2);
  CHECK(json["rows"][0]["time_seconds"]["p50"].get<double>() == Approx(50 * 0.25));
}

TEST_CASE("a trial that cannot say anything says why") {
  const Workspace w;
  w.write("job.yaml", kTrialJob);
  const auto trial = [&](const std::string& words) { return w.run("trial job.yaml " + words); };
  const Output fails = trial("--container-command 'echo out of memory; exit 137'");
  CHECK(fails.code == 1);
  CHECK(contains(fails.err, "the command ended with code 137"));
  CHECK(contains(fails.err, "| out of memory"));
  const Output silent = trial("--container-command 'echo nothing to say'");
  CHECK(silent.code == 1);
  CHECK(contains(silent.err, "without printing a line of progress"));
  const Output few = trial("--container-command 'for i in 1 2 3; do echo step $i; done'");
  CHECK(few.code == 1);
  CHECK(contains(few.err, "5 or more are needed"));
  const Output late = trial("--timeout 300ms --container-command 'sleep 30'");
  CHECK(late.code == 1);
  CHECK(contains(late.err, "after 300 ms only 0 of 50 steps"));
  const Output pattern = trial("--container-command true --progress '(?<setp>[0-9])'");
  CHECK(pattern.code == 2);
  CHECK(contains(pattern.err, "did you mean 'step'?"));
  CHECK(trial("--steps 0").code == 2);
  CHECK(trial("--price '3 EUR/h'").code == 2);
  CHECK(trial("--batch 8").code == 2);  // of ours the plan says it
  const Output worker = w.run(
      "trial job.yaml --set workload.data.format=mnist --set "
      "workload.data.path=nowhere");
  CHECK(worker.code == 1);
  CHECK(contains(worker.err, "nowhere"));
}

TEST_CASE("trial --layouts runs the best layouts for some steps and names the fastest") {
  const Workspace w;
  w.write("job.yaml", layouts_job("{kind: zero, workers: 2, zero_stage: 3}"));
  const Output r = w.run("trial job.yaml --layouts 3 --steps 12 --format json --out runs");
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.err, " layouts, 12 steps each: about "));  // before anything starts
  const auto json = nlohmann::json::parse(r.out);
  const auto& layouts = json["layouts"];
  REQUIRE(layouts.size() >= 3);
  REQUIRE(layouts.size() <= 4);
  double before = 0;
  int own = 0;
  for (const auto& layout : layouts) {
    INFO(layout.dump());
    REQUIRE(layout["reason"].is_null());
    const double mean = layout["step_seconds"]["mean"];
    CHECK(mean >= before);  // fastest first
    before = mean;
    CHECK(layout["forecast_step_seconds"].get<double>() > 0);
    own += layout["changes"].empty() ? 1 : 0;
    for (const auto& change : layout["changes"])
      CHECK_THAT(change.get<std::string>(), Catch::StartsWith("workload.strategy."));
  }
  CHECK(own == 1);
  // The runs are there, each with its records, and the command is one that starts.
  for (std::size_t k = 1; k <= layouts.size(); ++k) {
    const auto log = read_measurement_log(w.path("runs") / ("layout-" + std::to_string(k)) /
                                          "measurements.jsonl");
    REQUIRE(log);
    CHECK(log->ends.size() == 1);
  }
  const std::string command = json["command_of_the_fastest"];
  CHECK_THAT(command, Catch::StartsWith("reckon run job.yaml"));
  CHECK(w.run("simulate" + command.substr(std::string("reckon run").size())).code == 0);
}

TEST_CASE("the scenario's layout without its recomputation is another layout of trial --layouts") {
  const Workspace w;
  w.write("job.yaml", layouts_job("{kind: sharded, workers: 2, zero_stage: 1, micro_batch: 4, "
                                  "recompute: full}"));
  // Two steps are too few for a measurement, and enough for the list.
  const Output r = w.run("trial job.yaml --layouts 6 --steps 2 --format json");
  INFO(r.err);
  REQUIRE(r.code == 1);
  const auto json = nlohmann::json::parse(r.out);
  std::vector<std::string> names;
  for (const auto& layout : json.at("layouts")) names.push_back(layout.at("name"));
  CHECK_THAT(names, Catch::VectorContains(std::string(
                        "the scenario's own: sharded, ZeRO-1, batch 4, full recomputation")));
  CHECK_THAT(names, Catch::VectorContains(std::string("sharded, ZeRO-1, batch 4")));
}

TEST_CASE("trial --layouts refuses what is of one process, and machines that are left open") {
  const Workspace w;
  w.write("job.yaml", kTrialJob);
  const Output mixed = w.run("trial job.yaml --layouts 2 --batch 4");
  CHECK(mixed.code == 2);
  CHECK(contains(mixed.err, "--layouts runs reckon-worker as the scenario says"));
  w.write("open.yaml", std::string(kTrialJob) + "plan: {vary: {provider: gcp}}\n");
  const Output open = w.run("trial open.yaml --layouts 2");
  CHECK(open.code == 2);
  CHECK(contains(open.err, "leaves the machines open"));
}
