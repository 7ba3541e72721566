#include <signal.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>

#include "cli/background_job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "support/trained_weights.h"

// `reckon run` of layouts that cut state or layers: real processes over Gloo, killed and gone on
// with.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

struct Family {
  std::string name, model, dataset;
};
const Family kPerceptron{"perceptron", "mlp_boston_housing",
                         "{samples: 4040, bytes_per_sample: 112B}"};
const Family kGpt{"gpt",
                  "{transformer: {layers: 4, hidden: 32, heads: 4, vocabulary: 64, "
                  "sequence_length: 16, positions: 16, tied_output: true}}",
                  "{samples: 4096, bytes_per_sample: 32B}"};
const Family kMixture{"mixture",
                      "{transformer: {layers: 2, hidden: 32, heads: 4, vocabulary: 64, "
                      "sequence_length: 16, gated_feed_forward: true, rms_norm: true, experts: 4, "
                      "experts_per_token: 2}}",
                      kGpt.dataset};

/// In one pool; `pools`: the pools of the plan instead.
std::string job_text(const Family& family, const std::string& strategy, int workers, int steps,
                     const std::string& pools = "") {
  return "name: " + family.name + "\nworkload:\n  model: " + family.model +
         "\n  dataset: " + family.dataset + "\n  train: {steps: " + std::to_string(steps) +
         "}\n  precision: fp32\n  global_batch: 16\n  strategy: " + strategy +
         "\n  optimizer: {kind: sgd, learning_rate: 0.01, momentum: 0.9}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n  provider: on_premises\n  pools:\n" +
         (pools.empty()
              ? "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: " +
                    std::to_string(workers) + "}\n"
              : pools);
}

constexpr std::array kWaits{&StepWaits::gradients, &StepWaits::parameters, &StepWaits::tensor,
                            &StepWaits::context,   &StepWaits::expert,     &StepWaits::pipeline,
                            &StepWaits::bubble};

constexpr const char* kLayoutsRun =
    "--retries 100 --retry-delay 0s --replications 20 --checkpoint-steps 10 ";

std::vector<float> run_to_end(const Workspace& w, const std::string& file, const std::string& out) {
  BackgroundJob job(w, file, out, kLayoutsRun);
  const int code = job.code();
  INFO(out << ": " << job.errors());
  REQUIRE(code == 0);
  return weights_of_run(w.path(out));
}

/// Each layout's weights after 10 steps are one process's, and its records are whole.
void check_against_one(const Family& family,
                       const std::vector<std::pair<std::string, int>>& layouts) {
  const Workspace w;
  constexpr int kSteps = 10;
  w.write("one.yaml", job_text(family, "{kind: single}", 1, kSteps));
  const auto expected = run_to_end(w, "one.yaml", "one");
  // Other orders of sums: 10 steps, rate 0.01, momentum 0.9, 16 summands that are at most 100 in
  // sum [tests/executor/train/zero_test.cpp]: 10 x 0.01 x 10 x 16 x 2^-24 x 100.
  constexpr double kBound = 10 * 0.01 * 10 * 16 * 0x1p-24 * 100;
  int number = 0;
  for (const auto& [strategy, workers] : layouts) {
    INFO(family.name << " " << strategy);
    const std::string name = "layout" + std::to_string(number++);
    w.write(name + ".yaml", job_text(family, strategy, workers, kSteps));
    CHECK(largest_apart(run_to_end(w, name + ".yaml", name), expected) < kBound);
    const auto read = read_measurement_log(w.path(name) / "measurements.jsonl");
    REQUIRE(read);
    StepWaits all;
    for (const StepRecord& s : read->steps) {
      const Seconds parts = s.compute + s.exposed_communication + s.input + s.update + s.other;
      CHECK(parts.count() == Approx(s.seconds.count()).margin(1e-9));
      CHECK(s.sent.v > 0);
      const StepWaits& x = s.waits;
      const Seconds exposed =
          x.gradients + x.parameters + x.tensor + x.context + x.expert + x.pipeline;
      CHECK(exposed.count() == Approx(s.exposed_communication.count()).margin(1e-9));
      CHECK(x.bubble <= s.other + Seconds{1e-9});
      for (Seconds StepWaits::*part : kWaits) all.*part += x.*part;
    }
    // What a layout has nothing of is not waited for.
    const auto has = [&](const char* word) { return strategy.find(word) != std::string::npos; };
    CHECK(all.gradients.count() > 0);
    CHECK((all.parameters.count() > 0) == has("zero_stage"));
    CHECK((all.tensor.count() > 0) == has("tensor"));
    CHECK((all.context.count() > 0) == has("context"));
    CHECK((all.expert.count() > 0) == has("expert"));
    CHECK((all.pipeline.count() > 0) == has("pipeline"));
    CHECK((all.bubble.count() > 0) == has("pipeline"));
  }
}

}  // namespace

TEST_CASE("a run under every kind of layout ends with what one process ends with") {
  check_against_one(
      GENERATE(kPerceptron, kGpt),
      {{"{kind: zero, workers: 2, zero_stage: 1}", 2},
       {"{kind: zero, workers: 2, zero_stage: 2, micro_batch: 4}", 2},
       {"{kind: zero, workers: 2, zero_stage: 3}", 2},
       {"{kind: hybrid, pipeline: 2, micro_batch: 4}", 2},
       {"{kind: hybrid, data: 2, pipeline: 2, zero_stage: 1, micro_batch: 2, schedule: gpipe}", 4},
       {"{kind: hybrid, data: 2, pipeline: 2, zero_stage: 3, micro_batch: 2}", 4}});
}

TEST_CASE(
    "a run whose ranks share layers, tokens or experts ends with what one process ends with") {
  check_against_one(kGpt, {{"{kind: hybrid, tensor: 2, sequence_parallel: false}", 2},
                           {"{kind: hybrid, data: 2, tensor: 2, zero_stage: 1, micro_batch: 4}", 4},
                           {"{kind: hybrid, tensor: 2, pipeline: 2, micro_batch: 4}", 4},
                           {"{kind: hybrid, context: 2, micro_batch: 8}", 2}});
  check_against_one(kMixture,
                    {{"{kind: hybrid, data: 2, expert: 2, micro_batch: 4}", 2},
                     {"{kind: hybrid, data: 4, expert: 2, zero_stage: 3, micro_batch: 2}", 4}});
}

TEST_CASE(
    "kill -9 under ZeRO, in a pipeline and of tensor ranks: the run goes on to the same bits") {
  const std::string strategy = GENERATE(
      as<std::string>(), "{kind: zero, workers: 2, zero_stage: 3}",
      "{kind: zero, workers: 2, zero_stage: 1}", "{kind: hybrid, pipeline: 2, micro_batch: 4}",
      "{kind: hybrid, tensor: 2, micro_batch: 4}");
  INFO(strategy);
  const Workspace w;
  w.write("job.yaml", job_text(kGpt, strategy, 2, 120));
  const auto expected = run_to_end(w, "job.yaml", "undisturbed");
  BackgroundJob job(w, "job.yaml", "killed", kLayoutsRun);
  for (const std::size_t sets : {1u, 2u}) {
    const bool there = job.wait_for([&] {
      const auto all = list_sets(w.path("killed") / "checkpoints");
      return !all.empty() && all.front().step >= std::int64_t(sets) * 20 &&
             job.workers().size() == 2;
    });
    if (!there) break;
    ::kill(job.workers().at(sets % 2), SIGKILL);
  }
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const auto read = read_measurement_log(w.path("killed") / "measurements.jsonl");
  REQUIRE(read);
  CHECK(!read->interruptions.empty());
  CHECK((weights_of_run(w.path("killed")) == expected));
}

TEST_CASE("stages on two pools of CPUs run, and end with what one pool ends with") {
  const Workspace w;
  const std::string degrees = "{kind: hybrid, data: 2, pipeline: 2, micro_batch: 2";
  w.write("one.yaml", job_text(kGpt, degrees + "}", 4, 10));
  std::string pools;
  for (const char* name : {"a", "b"})
    pools += "    - {name: " + std::string(name) +
             ", role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, nodes: 2}\n";
  w.write("two.yaml",
          job_text(kGpt, degrees + ", stages: [{pool: a, blocks: 3}, {pool: b, blocks: 1}]}", 4, 10,
                   pools));
  CHECK((run_to_end(w, "two.yaml", "two") == run_to_end(w, "one.yaml", "one")));
}

TEST_CASE("a run stops under one layout and goes on under another") {
  const Workspace w;
  w.write("from.yaml", job_text(kGpt, "{kind: zero, workers: 4, zero_stage: 3}", 4, 40));
  const auto to = GENERATE(as<std::string>(), "{kind: hybrid, pipeline: 2, micro_batch: 8}",
                           "{kind: hybrid, tensor: 2, micro_batch: 8}");
  w.write("to.yaml", job_text(kGpt, to, 2, 40));
  {
    BackgroundJob job(w, "from.yaml", "run", kLayoutsRun);
    REQUIRE(job.wait_for([&] {
      const auto sets = list_sets(w.path("run") / "checkpoints");
      return !sets.empty() && sets.front().complete;
    }));
    job.signal(SIGTERM);
    CHECK(job.code() == 75);
  }
  BackgroundJob job(w, "to.yaml", "run", std::string(kLayoutsRun) + "--resume");
  const int code = job.code();
  INFO(job.errors());
  CHECK(code == 0);
  const auto straight = run_to_end(w, "from.yaml", "straight");
  // 40 steps, as above.
  CHECK(largest_apart(weights_of_run(w.path("run")), straight) <
        40 * 0.01 * 10 * 16 * 0x1p-24 * 100);
}

TEST_CASE("layouts that the worker does not run are refused with what to do") {
  const Workspace w;
  w.write("context.yaml", job_text(kPerceptron, "{kind: hybrid, context: 2}", 2, 10));
  CHECK(w.run("run context.yaml --replications 20 --out context").code == 2);
  CHECK(!fs::exists(w.path("context")));  // no process was started
  w.write("elastic.yaml",
          job_text(kGpt, "{kind: hybrid, data: 2, pipeline: 2, zero_stage: 2}", 4, 10));
  const Output elastic = w.run(
      "run elastic.yaml --replications 20 --out elastic --set 'workload.restart={kind: elastic, "
      "min: 1}'");
  CHECK(elastic.code == 2);
  CHECK(contains(elastic.err, "need as many passes each"));
  w.write(
      "offload.yaml",
      job_text(kGpt, "{kind: zero, workers: 2, zero_stage: 2, offload_optimizer: true}", 2, 10));
  const Output offload = w.run("check offload.yaml");
  CHECK(offload.code == 2);
  CHECK(contains(offload.err, "the optimizer's state is in the host's memory already"));
}

TEST_CASE("an offloaded optimizer is run: on CPUs, where its state was, with the same bits") {
  const Workspace w;
  for (const char* offloads : {"true", "false"}) {
    std::string job = job_text(
        kGpt, std::string("{kind: sharded, zero_stage: 2, offload_optimizer: ") + offloads + "}", 2,
        20);
    job.replace(job.find("}, nodes"), 1, "}, accelerator: {type: T4, count: 1}");
    w.write(std::string(offloads) + ".yaml", job);
  }
  CHECK(run_to_end(w, "true.yaml", "offloaded") == run_to_end(w, "false.yaml", "own"));
}

TEST_CASE("a plan that this machine's memory cannot hold is not started here") {
  const Workspace w;
  const std::string big = "'" RECKON_SOURCE_DIR "/scenarios/gpt3-175b-1024-a100.yaml'";
  const Output refused = w.run("run " + big + " --replications 20");
  INFO(refused.out << refused.err);
  CHECK(refused.code == 2);
  CHECK(contains(refused.err, "would be processes of this machine"));
}
