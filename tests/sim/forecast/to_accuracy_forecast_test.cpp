#include <catch2/catch.hpp>

#include "sim/forecast/replicate.h"
#include "sim/step/step.h"
#include "support/scenario_text.h"

// Training to an accuracy: how far runs lie from the law is in the forecast's interval.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("a replication is as much longer as its samples are") {
  const auto plan = plan_of(
      "name: target\nworkload:\n  model: resnet50_v1_5\n  dataset: imagenet\n"
      "  train: {to_accuracy: 75.9%}\n  evaluation: {every_epochs: 4}\n  precision: fp16\n"
      "  batch_per_accelerator: 256\n  strategy: {kind: mirrored}\n"
      "cluster:\n  provider: gcp\n  region: us-central1\n"
      "  pools: [{name: a100, machine: a2-highgpu-8g, nodes: 1}]\n");
  if (!plan) FAIL(format(plan.error()));
  const auto network = make_fluid_network();
  const ForecastSetup setup = make_setup(*plan, *network);
  const auto found =
      std::find_if(setup.assumptions.begin(), setup.assumptions.end(),
                   [](const PlanAssumption& a) { return a.key.starts_with(kSamplesFactor); });
  REQUIRE(found != setup.assumptions.end());
  const auto which = std::size_t(found - setup.assumptions.begin());
  const auto seconds_at = [&](double score) {
    const LifeResult life = Replicator(setup).run(1, 0, Held{which, score});
    return std::chrono::duration<double>(life.finish.time_since_epoch()).count();
  };
  // Starting does not grow with the samples; steps and evaluations do.
  const double middle = seconds_at(0);
  const double more = seconds_at(1) - middle, less = middle - seconds_at(-1);
  CHECK(more > 0.9 * (found->high - 1) * middle);
  CHECK(more < (found->high - 1) * middle);
  CHECK(more / less == Approx((found->high - 1) / (1 - found->low)).epsilon(0.01));
}

TEST_CASE("BERT to MLPerf's target takes about as long as a submission logged") {
  // MLPerf training v2.1, closed, dgxa100_ngc22.09_pytorch: one DGX A100 80GB, 448 sequences a
  // step.
  constexpr double kLoggedMinutes = 16.88;
  const auto plan = plan_of(
      "name: target\nworkload:\n  model: bert_large\n  dataset: wikipedia-en\n"
      "  train: {to_accuracy: 72%, starts_from: mlperf-checkpoint, sequence_length: 250}\n"
      "  precision: fp16\n  stack: pytorch-mlperf\n  batch_per_accelerator: 56\n"
      "  strategy: {kind: mirrored}\n"
      "cluster:\n  provider: gcp\n  region: us-central1\n"
      "  pools: [{name: a100, machine: a2-ultragpu-8g, nodes: 1}]\n");
  if (!plan) FAIL(format(plan.error()));
  const PlannedWorkload& job = plan->jobs.front();
  REQUIRE(job.global_batch == 448);
  const StepEstimate step = estimate_step(*plan, job, *make_fluid_network());
  const double minutes = double(job.steps) * step.step.count() / 60;
  CHECK(minutes == Approx(kLoggedMinutes).epsilon(0.25));
}
