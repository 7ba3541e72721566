#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Training to an accuracy: as many samples as reference runs of the same batch needed.
using namespace reckon;
using Catch::Matchers::Contains;
using namespace reckon::test;

namespace {

std::string text_with(const std::string& model, int batch, const std::string& accuracy) {
  return "name: target\nworkload:\n  model: " + model +
         "\n  dataset: imagenet\n  train: {to_accuracy: " + accuracy +
         "}\n  precision: fp16\n  batch_per_accelerator: " + std::to_string(batch) +
         "\n  strategy: {kind: mirrored}\ncluster:\n  provider: gcp\n  service: gke\n"
         "  region: us-central1\n  pools:\n"
         "    - {name: a100, machine: a2-highgpu-8g, nodes: 1}\n";
}

Plan plan_with(int batch) {
  Expected<Plan> plan = plan_of(text_with("resnet50_v1_5", batch, "75.9%"));
  if (!plan) FAIL(format(plan.error()));
  return std::move(*plan);
}

}  // namespace

TEST_CASE("training to an accuracy takes the samples of the law at its global batch") {
  const Plan plan = plan_with(256);
  const PlannedWorkload& job = plan.jobs.at(0);
  REQUIRE(job.convergence);
  CHECK(job.global_batch == 2048);
  CHECK(job.total_samples == samples_to_target(*job.convergence, 2048).v);
  CHECK(job.steps == static_cast<std::int64_t>(std::ceil(job.total_samples / 2048)));
  // MLPerf's submissions needed 35 epochs of 1,281,167 images at this batch.
  CHECK(job.total_samples / 1281167 == Approx(35).epsilon(0.05));
}

TEST_CASE("a larger batch pays with more samples, and one that nobody ran is warned of") {
  const PlannedWorkload small = plan_with(32).jobs.at(0), large = plan_with(1024).jobs.at(0);
  CHECK(large.total_samples > 1.1 * small.total_samples);
  CHECK(large.steps < small.steps);
  const auto tells = [](const Plan& plan) {
    return std::any_of(plan.warnings.begin(), plan.warnings.end(), [](const std::string& w) {
      return w.find("larger than any that is known to reach 75.9 %") != std::string::npos;
    });
  };
  CHECK_FALSE(tells(plan_with(1024)));
  CHECK(tells(plan_with(16384)));
}

TEST_CASE("a target that no reference run is known for is refused with those that are") {
  CHECK_THAT(errors_of(text_with("resnet50_v1_5", 256, "80%")),
             Contains("how long resnet50_v1_5 on imagenet takes to 80.0 % is not known") &&
                 Contains("to_accuracy: 75.9%"));
  CHECK_THAT(errors_of(text_with("vgg16", 64, "70%")), Contains("train: {epochs: 90}"));
}
