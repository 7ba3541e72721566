#include <fmt/ranges.h>

#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Training to an accuracy: as many samples as reference runs of the same batch needed.
using namespace reckon;
using Catch::Matchers::Contains;
using namespace reckon::test;

namespace {

std::string text_with(const std::string& model, int batch, const std::string& train,
                      const std::string& dataset = "imagenet", const std::string& more = "") {
  return "name: target\nworkload:\n  model: " + model + "\n  dataset: " + dataset + "\n  train: {" +
         train + "}\n" + more +
         "  precision: fp16\n  batch_per_accelerator: " + std::to_string(batch) +
         "\n  strategy: {kind: mirrored}\ncluster:\n  provider: gcp\n  service: gke\n"
         "  region: us-central1\n  pools:\n"
         "    - {name: a100, machine: a2-highgpu-8g, nodes: 1}\n";
}

std::string resnet_with(int batch, const std::string& more = "") {
  return text_with("resnet50_v1_5", batch, "to_accuracy: 75.9%", "imagenet", more);
}
std::string bert_with(const std::string& train, const std::string& more = "") {
  return text_with("bert_large", 8, train, "wikipedia-en", more);
}

Plan accuracy_planned(const std::string& text) {
  Expected<Plan> plan = plan_of(text);
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

}  // namespace

TEST_CASE("training to an accuracy takes the samples of the law at its global batch") {
  const Plan plan = accuracy_planned(resnet_with(256));
  const PlannedWorkload& job = plan.jobs.at(0);
  REQUIRE(job.convergence);
  CHECK(job.global_batch == 2048);
  CHECK(job.total_samples == samples_to_target(*job.convergence, 2048).v);
  CHECK(job.steps == static_cast<std::int64_t>(std::ceil(job.total_samples / 2048)));
  // MLPerf's submissions needed 35 epochs of 1,281,167 images at this batch.
  CHECK(job.total_samples / 1281167 == Approx(35).epsilon(0.05));
}

TEST_CASE("a larger batch pays with more samples, and one that nobody ran is warned of") {
  const PlannedWorkload small = accuracy_planned(resnet_with(32)).jobs.at(0),
                        large = accuracy_planned(resnet_with(1024)).jobs.at(0);
  CHECK(large.total_samples > 1.1 * small.total_samples);
  CHECK(large.steps < small.steps);
  const auto tells = [](const Plan& plan) {
    return std::any_of(plan.warnings.begin(), plan.warnings.end(), [](const std::string& w) {
      return w.find("larger than any that is known to reach 75.9 %") != std::string::npos;
    });
  };
  CHECK_FALSE(tells(accuracy_planned(resnet_with(1024))));
  CHECK(tells(accuracy_planned(resnet_with(16384))));
}

TEST_CASE("a batch below all that were run is warned of too") {
  const auto warnings = [](int batch) {
    return fmt::format("{}", fmt::join(accuracy_planned(resnet_with(batch)).warnings, "\n"));
  };
  CHECK_THAT(
      warnings(4),
      Contains("a global batch of 32 is smaller than any that is known to reach 75.9 % (408)"));
  CHECK_THAT(warnings(64), !Contains("is known to reach"));
}

TEST_CASE("asynchronous servers are no synchronous runs, and the plan says so") {
  const auto warnings = [](const char* mode) {
    std::string text = resnet_with(64);
    const auto replace = [&](std::string_view from, const std::string& to) {
      text.replace(text.find(from), from.size(), to);
    };
    replace("{kind: mirrored}", fmt::format("{{kind: parameter_server, mode: {}}}", mode));
    text += "    - {name: servers, machine: n1-standard-16, nodes: 2, role: parameter_server}\n";
    return fmt::format("{}", fmt::join(accuracy_planned(text).warnings, "\n"));
  };
  CHECK_THAT(warnings("asynchronous"),
             Contains("the samples to 75.9 % are those of synchronous runs"));
  CHECK_THAT(warnings("synchronous"), !Contains("synchronous runs"));
}

TEST_CASE("another batch has the law's samples, and the evaluations of its epochs") {
  PlannedWorkload job =
      accuracy_planned(resnet_with(256, "  evaluation: {every_epochs: 4}\n")).jobs.at(0);
  CHECK(job.evaluations == std::ceil(job.total_samples / 1281167 / 4));
  const double before = job.evaluations;
  change_batch(job, 65536);
  CHECK(job.total_samples == samples_to_target(*job.convergence, 65536).v);
  CHECK(job.steps == static_cast<std::int64_t>(std::ceil(job.total_samples / 65536)));
  CHECK(job.evaluations == std::ceil(job.total_samples / 1281167 / 4));
  CHECK(job.evaluations > 1.5 * before);
}

TEST_CASE("a target that no reference run is known for is refused with those that are") {
  CHECK_THAT(errors_of(text_with("resnet50_v1_5", 256, "to_accuracy: 80%")),
             Contains("how long resnet50_v1_5 on imagenet takes to 80.0 % is not known") &&
                 Contains("{to_accuracy: 75.9%}"));
  CHECK_THAT(errors_of(text_with("vgg16", 64, "to_accuracy: 70%")),
             Contains("train: {epochs: 90}"));
}

TEST_CASE("runs that start from a checkpoint are no law of training from scratch") {
  CHECK_THAT(errors_of(bert_with("to_accuracy: 72%, sequence_length: 250")),
             Contains("start from mlperf-checkpoint, not from scratch") &&
                 Contains("{to_accuracy: 72.0%, starts_from: mlperf-checkpoint}"));
  const Plan plan = accuracy_planned(
      bert_with("to_accuracy: 72%, starts_from: mlperf-checkpoint, sequence_length: 250"));
  // A hundredth of BERT's pre-training, about 2.5 million sequences.
  CHECK(plan.jobs.at(0).total_samples == Approx(2.5e6).epsilon(0.05));
  CHECK_THAT(errors_of(bert_with("epochs: 3, starts_from: mlperf-checkpoint")),
             Contains("starts_from is for to_accuracy only"));
}

TEST_CASE("a law is of one sequence length and of training the whole model") {
  CHECK_THAT(errors_of(bert_with(
                 "to_accuracy: 72%, starts_from: mlperf-checkpoint, sequence_length: 128")),
             Contains("read sequences of 250 tokens in the mean, this one reads 128"));
  CHECK_THAT(
      errors_of(bert_with("to_accuracy: 72%, starts_from: mlperf-checkpoint, sequence_length: 250",
                          "  finetune: {method: lora, rank: 8}\n")),
      Contains("how long lora takes is not known"));
}

TEST_CASE("the runs' spread around the law is an assumption of the plan") {
  const Plan plan = accuracy_planned(resnet_with(256));
  const auto assumptions = assumptions_of(plan);
  const auto found =
      std::find_if(assumptions.begin(), assumptions.end(), [](const PlanAssumption& a) {
        return a.key == "workload.samples_to_accuracy.resnet50_v1_5.imagenet.0.759.scratch";
      });
  REQUIRE(found != assumptions.end());
  const double spread = plan.jobs.at(0).convergence->spread;
  CHECK(spread > 0.03);
  CHECK(found->high == Approx(std::exp(1.645 * spread)).epsilon(1e-3));
  CHECK(found->low == Approx(1 / found->high));
}
