#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <thread>

#include "cli/background_job.h"
#include "cli/run/hand_started.h"
#include "executor/train/records/measurement_log.h"

// Evaluation passes of real runs: recorded, forecast, and made again behind a restart alone.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Epochs of 320 samples are 20 steps; two of them have an evaluation, and the end.
std::string evaluated_job(const std::string& strategy, int nodes, const std::string& more = "") {
  return "name: evaluated\nworkload:\n  model: mlp_boston_housing\n"
         "  dataset: {samples: 320, bytes_per_sample: 112B, validation_samples: 100}\n"
         "  train: {epochs: 5}\n  global_batch: 16\n  evaluation: {every_epochs: 2}\n"
         "  strategy: " +
         strategy + "\n  optimizer: {kind: sgd, learning_rate: 0.01}\n" + more +
         "  checkpoint: {interval: none}\ncluster:\n  provider: on_premises\n  pools:\n"
         "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, "
         "nodes: " +
         std::to_string(nodes) + "}\n";
}

Measurements log_of(const Workspace& w, const std::string& run) {
  const auto read = read_measurement_log(w.path(run) / "measurements.jsonl");
  REQUIRE(read);
  REQUIRE(read->damaged.empty());
  return *read;
}

std::vector<std::int64_t> steps_of(const std::vector<EvaluationRecord>& evaluations, int rank = 0) {
  std::vector<std::int64_t> steps;
  for (const EvaluationRecord& e : evaluations)
    if (e.rank == rank) steps.push_back(e.step);
  return steps;
}

constexpr const char* kShort = "--retries 10 --retry-delay 0s --replications 20 ";

}  // namespace

TEST_CASE("a run evaluates after its epochs and at its end, and records what that took") {
  const Workspace w;
  w.write("job.yaml", evaluated_job("{kind: multi_worker_mirrored, workers: 2}", 2));
  BackgroundJob job(w, "job.yaml", "run", kShort);
  REQUIRE(job.code() == 0);
  CHECK(!contains(job.errors(), "workload.evaluation"));  // nothing is left out
  CHECK(contains(job.errors(), "evaluation after 40 steps: loss "));
  const Measurements m = log_of(w, "run");
  CHECK(steps_of(m.evaluations) == std::vector<std::int64_t>{40, 80, 100});
  REQUIRE(m.evaluations.size() == 3);  // of all ranks together
  for (const EvaluationRecord& e : m.evaluations) {
    CHECK(e.samples == 112);  // 100 in whole batches of 8 of two ranks
    CHECK(e.seconds.count() > 0);
    REQUIRE(e.loss);
    CHECK(std::isfinite(*e.loss));
  }
  // No step has the evaluation in its time.
  const auto behind = std::ranges::find_if(
      m.steps, [](const StepRecord& s) { return s.rank == 0 && s.step == 40; });
  REQUIRE(behind != m.steps.end());
  CHECK(behind->at - behind->seconds >= m.evaluations[0].at - Seconds{1e-4});
}

TEST_CASE("a run that goes on from the step of an evaluation makes it again, with the same loss") {
  const Workspace w;
  w.write("job.yaml", evaluated_job("{kind: single}", 1));
  const std::string worker = kWorker + "job.yaml --checkpoint-steps 40 --out ";
  REQUIRE(w.run_shell(worker + "whole").code == 0);
  REQUIRE(w.run_shell(worker + "run --steps 40").code == 0);
  REQUIRE(w.run_shell(worker + "run").code == 0);
  const Measurements m = log_of(w, "run"), whole = log_of(w, "whole");
  CHECK(steps_of(whole.evaluations) == std::vector<std::int64_t>{40, 80, 100});
  CHECK(steps_of(m.evaluations) == std::vector<std::int64_t>{40, 40, 80, 100});
  CHECK(m.evaluations[0].loss == m.evaluations[1].loss);
  for (const EvaluationRecord& e : m.evaluations)
    CHECK(e.loss == std::ranges::find(whole.evaluations, e.step, &EvaluationRecord::step)->loss);
  CHECK(read_all(w.path("run/model.safetensors")) == read_all(w.path("whole/model.safetensors")));
}

TEST_CASE("asynchronous workers evaluate their own parameters, each a part of the samples") {
  const Workspace w;
  w.write("job.yaml",
          evaluated_job("{kind: parameter_server, mode: asynchronous, workers: 2}", 2)
              .append("    - {name: ps, role: parameter_server, nodes: 1, machine: {vcpu: 1, "
                      "memory: 2GiB, network: 10Gbps}}\n"));
  BackgroundJob job(w, "job.yaml", "run", kShort);
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements m = log_of(w, "run");
  for (const int rank : {0, 1}) {
    const auto steps = steps_of(m.evaluations, rank);
    REQUIRE(!steps.empty());
    CHECK(steps.back() == 100);
  }
  for (const EvaluationRecord& e : m.evaluations) CHECK(e.samples < 112);
}

TEST_CASE("validation data of one's own is read whole, and where it is missing the run says so") {
  const Workspace w;
  w.write("tokens.bin", std::string(64 * 40, '\1'));
  w.write("held-out.bin", std::string(64 * 10, '\2'));
  const auto job = [&](const std::string& data) {
    return "name: tokens\nworkload:\n"
           "  model: {transformer: {layers: 1, hidden: 16, heads: 2, vocabulary: 1024, "
           "sequence_length: 16, positions: 16}}\n"
           "  dataset: {samples: 79, bytes_per_sample: 32B, validation_samples: 19}\n"
           "  train: {epochs: 1}\n  global_batch: 4\n  evaluation: {every_epochs: 1}\n"
           "  optimizer: {kind: adamw, learning_rate: 0.05, warmup_steps: 0}\n  data: " +
           data +
           "\n  strategy: {kind: single}\n  checkpoint: {interval: none}\ncluster:\n"
           "  provider: on_premises\n  pools:\n"
           "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}}\n";
  };
  w.write("named.yaml", job("{format: tokens, path: tokens.bin, validation: held-out.bin}"));
  Output out = w.run_shell(kWorker + "named.yaml --out named");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  CHECK(contains(out.out, "evaluation after 20 steps: loss "));
  CHECK(contains(out.out, " of 20 samples, "));
  const Measurements m = log_of(w, "named");
  REQUIRE(m.evaluations.size() == 1);
  // Nothing but one token was learned, and the validation set has another.
  CHECK(*m.evaluations[0].loss > 2 * *m.steps.back().loss);
  out = w.run_shell(kWorker + "named.yaml --validation tokens.bin --out same");
  REQUIRE(out.code == 0);
  CHECK(*log_of(w, "same").evaluations.at(0).loss < *m.evaluations[0].loss);
  out = w.run_shell(kWorker + "named.yaml --validation nowhere.bin");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "nowhere.bin"));

  w.write("missing.yaml", job("{format: tokens, path: tokens.bin}"));
  BackgroundJob missing(w, "missing.yaml", "missing", kShort);
  REQUIRE(missing.code() == 0);
  CHECK(contains(missing.errors(), "workload.data names no validation set"));
  CHECK(log_of(w, "missing").evaluations.empty());

  w.write("letters.yaml", job("{format: characters, path: tokens.bin, validation: held-out.bin}"));
  out = w.run_shell("'" RECKON_BINARY_DIR "/bin/reckon' simulate letters.yaml");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "characters of another file have other ids"));
}

TEST_CASE("what an evaluation behind the last step meets costs no step") {
  const Workspace w;
  w.write("tokens.bin", std::string(64 * 40, '\1'));
  w.write("held-out.bin", std::string(64 * 9, '\1') + std::string(64, '\xff'));
  w.write("job.yaml",
          "name: tokens\nworkload:\n"
          "  model: {transformer: {layers: 1, hidden: 16, heads: 2, vocabulary: 1024, "
          "sequence_length: 16, positions: 16}}\n"
          "  dataset: {samples: 79, bytes_per_sample: 32B, validation_samples: 19}\n"
          "  train: {epochs: 1}\n  global_batch: 4\n  evaluation: {every_epochs: 1}\n"
          "  data: {format: tokens, path: tokens.bin, validation: held-out.bin}\n"
          "  strategy: {kind: single}\n  checkpoint: {interval: none}\ncluster:\n"
          "  provider: on_premises\n  pools:\n"
          "    - {name: here, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}}\n");
  Output out = w.run_shell(kWorker + "job.yaml --out run");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "held-out.bin"));
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000020/manifest.json")));
  w.write("held-out.bin", std::string(64 * 10, '\1'));  // mended
  out = w.run_shell(kWorker + "job.yaml --out run");
  CHECK(out.code == 0);
  CHECK(contains(out.out, "evaluation after 20 steps: loss "));
  CHECK(!contains(out.out, "step 19 "));
  CHECK(std::filesystem::exists(w.path("run/model.safetensors")));
}

TEST_CASE("who is told to stop leaves an evaluation, and makes it when it goes on") {
  const Workspace w;
  const std::string strategy =
      GENERATE(as<std::string>(), "{kind: multi_worker_mirrored, workers: 2}",
               "{kind: hybrid, pipeline: 2, micro_batch: 4}");
  INFO(strategy);
  std::string text = evaluated_job(strategy, 2);
  const std::string few = "validation_samples: 100}";
  text.replace(text.find(few), few.size(), "validation_samples: 1000000000}");
  w.write("job.yaml", text);
  BackgroundJob job(w, "job.yaml", "run", kShort);
  REQUIRE(job.wait_for([&] {
    const std::string records = read_all(w.path("run") / "measurements.jsonl");
    return contains(records, "\"rank\":0,\"step\":39,");
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  job.signal(SIGTERM);
  CHECK(job.code() == 75);
  const Measurements m = log_of(w, "run");
  CHECK(m.evaluations.empty());
  CHECK(m.useful_steps().size() == 40);
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000040/manifest.json")));
}

TEST_CASE("a long evaluation is no hang, of a pipeline's stages without data neither") {
  const Workspace w;
  std::string text = evaluated_job("{kind: hybrid, pipeline: 3, micro_batch: 1}", 3);
  const auto put = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  put("mlp_boston_housing",
      "{transformer: {layers: 3, hidden: 32, heads: 4, vocabulary: 64, sequence_length: 16, "
      "positions: 16}}");
  put("validation_samples: 100}", "validation_samples: 30000}");
  put("{epochs: 5}", "{steps: 6}");
  put("every_epochs: 2", "every_epochs: 0.25");
  w.write("job.yaml", text);
  BackgroundJob job(w, "job.yaml", "run", kShort + std::string("--hang 1s"));
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements m = log_of(w, "run");
  CHECK(m.interruptions.empty());
  REQUIRE(steps_of(m.evaluations) == std::vector<std::int64_t>{5, 6});
  CHECK(m.evaluations[0].seconds > Seconds{2});  // else it shows nothing
}
