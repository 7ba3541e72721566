#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "sim/step/step.h"
#include "support/scenario_text.h"

// Pipelines whose stages run on different accelerators.
using namespace reckon;
using namespace reckon::test;

namespace {

/// GPT-3 13B (40 blocks) in two stages, one node of eight each.
std::string mixed_text(const std::string& first, const std::string& second,
                       const std::string& stages, const std::string& strategy = "tensor: 8") {
  return fmt::format(
      "name: mixed\n"
      "workload:\n"
      "  model: gpt3_13b\n"
      "  dataset: {{samples: 1M, bytes_per_sample: 4kB}}\n"
      "  train: {{samples: 1M}}\n"
      "  precision: bf16\n"
      "  global_batch: 64\n"
      "  strategy: {{kind: model_parallel, {}, pipeline: 2, micro_batch: 1, {}}}\n"
      "cluster:\n"
      "  provider: on_premises\n"
      "  pools:\n"
      "    - {{name: a, machine: {{vcpu: 64, memory: 512GiB, network: 400Gbps, price: 20 USD/h}}, "
      "accelerator: {{type: {}, count: 8}}, nodes: 1}}\n"
      "    - {{name: b, machine: {{vcpu: 64, memory: 512GiB, network: 400Gbps, price: 20 USD/h}}, "
      "accelerator: {{type: {}, count: 8}}, nodes: 1}}\n",
      strategy, stages, first, second);
}

StepEstimate mixed_step_of(const std::string& text) {
  const Plan plan = checked_plan_of(text);
  return estimate_step(plan, plan.only_job(), *make_default_network());
}

std::string blocks_on(int a, int b) {
  return fmt::format("stages: [{{pool: a, blocks: {}}}, {{pool: b, blocks: {}}}]", a, b);
}

}  // namespace

TEST_CASE("stages on two pools of one accelerator are the pipeline that it is without them") {
  const StepEstimate with =
      mixed_step_of(mixed_text("A100-SXM4-80", "A100-SXM4-80", blocks_on(20, 20)));
  const StepEstimate without = mixed_step_of(mixed_text("A100-SXM4-80", "A100-SXM4-80", "data: 1"));
  CHECK(with.step.count() == Approx(without.step.count()).epsilon(1e-12));
  CHECK(with.compute.count() == Approx(without.compute.count()).epsilon(1e-12));
  CHECK(with.bubble.count() == Approx(without.bubble.count()).epsilon(1e-9));
  CHECK(with.mfu == Approx(without.mfu).epsilon(1e-12));
}

TEST_CASE("the slowest stage sets the pace, and blocks that move to the faster one speed it up") {
  const auto step = [](int on_h100, int on_a100) {
    return mixed_step_of(mixed_text("H100-SXM5-80", "A100-SXM4-80", blocks_on(on_h100, on_a100)))
        .step.count();
  };
  const double even = step(20, 20), best = step(26, 14), too_far = step(38, 2);
  CHECK(best < even);
  CHECK(best < too_far);
  const auto alike = [](const char* accelerator) {
    return mixed_step_of(mixed_text(accelerator, accelerator, blocks_on(20, 20))).step.count();
  };
  CHECK(even > alike("H100-SXM5-80"));
  // With half of the blocks on a faster one only the bubble is shorter.
  CHECK(even < alike("A100-SXM4-80"));
  CHECK(best > alike("H100-SXM5-80"));
  // MFU is of the peak of both.
  const StepEstimate e =
      mixed_step_of(mixed_text("H100-SXM5-80", "A100-SXM4-80", blocks_on(20, 20)));
  const Plan plan = checked_plan_of(mixed_text("H100-SXM5-80", "A100-SXM4-80", blocks_on(20, 20)));
  const double flops = plan.only_job().model.model_flops().v * e.samples_per_second.v;
  double peak = 0;
  for (const PlannedPool& pool : plan.pools)
    peak += 8 * pool.accelerator->peak_for(Precision::bf16)->value.v;
  CHECK(e.mfu == Approx(flops / peak).epsilon(1e-9));
}

TEST_CASE("replicas of one stage on two kinds wait for the slower") {
  const std::string both = "stages: [{pool: [a, b], blocks: 20}, {pool: [a, b], blocks: 20}]";
  const StepEstimate mixed =
      mixed_step_of(mixed_text("H100-SXM5-80", "A100-SXM4-80", both, "tensor: 4, data: 2"));
  const StepEstimate slow = mixed_step_of(
      mixed_text("A100-SXM4-80", "A100-SXM4-80", "schedule: 1f1b", "tensor: 4, data: 2"));
  CHECK(mixed.compute.count() == Approx(slow.compute.count()).epsilon(1e-9));
}

TEST_CASE("each stage has to fit into the memory of its own accelerators") {
  // A card of 24 GB holds two blocks where it does not hold most of them.
  const auto fits = [](int on_a100, int on_4090) {
    const Plan plan =
        checked_plan_of(mixed_text("A100-SXM4-80", "RTX-4090", blocks_on(on_a100, on_4090)));
    return estimate_memory(plan, plan.only_job());
  };
  const MemoryEstimate few = fits(38, 2), many = fits(2, 38);
  CHECK(few.fits());
  CHECK(many.available < Bytes{26e9});
  CHECK(many.out_of_memory() > 0.5);
}

TEST_CASE("stages that do not fit the job are refused at their place, each with what to do") {
  const auto refused = [](const std::string& stages, const std::string& what) {
    const auto plan = plan_of(mixed_text("H100-SXM5-80", "A100-SXM4-80", stages));
    INFO(stages);
    REQUIRE_FALSE(plan);
    const std::string text = format(plan.error());
    INFO(text);
    CHECK(text.find(what) != std::string::npos);
  };
  refused("data: 1", "strategy.stages says which stage of a pipeline runs on which pool");
  refused("stages: [{pool: a}]", "there are 1 stages, pipeline is 2");
  refused("stages: [{pool: a}, {pool: c}]", "no pool 'c' has workers");
  refused("stages: [{pool: a}, {pool: a}]", "no stage runs on pool 'b' (A100-SXM4-80)");
  refused(blocks_on(20, 19), "the stages have 39 blocks, model gpt3_13b has 40");
  refused("stages: [{pool: a, blocks: 20}, {pool: b}]", "some stages have blocks and some");
  refused("stages: [{blocks: 20}, {pool: b, blocks: 20}]", "pool");
}

TEST_CASE("stages on pools without accelerators take a worker of each node") {
  const auto text = [](int nodes, const std::string& stages) {
    return fmt::format(
        "name: mixed\n"
        "workload:\n"
        "  model: {{transformer: {{layers: 4, hidden: 32, heads: 4, vocabulary: 256, "
        "sequence_length: 16, positions: 16}}}}\n"
        "  dataset: {{samples: 4096, bytes_per_sample: 64B}}\n"
        "  train: {{steps: 8}}\n"
        "  precision: fp32\n"
        "  global_batch: 16\n"
        "  strategy: {{kind: hybrid, data: 2, pipeline: 2, micro_batch: 2{}}}\n"
        "cluster:\n"
        "  provider: on_premises\n"
        "  pools:\n"
        "    - {{name: a, role: worker, machine: {{vcpu: 1, memory: 2GiB, network: 10Gbps}}, "
        "nodes: 2}}\n"
        "    - {{name: b, role: worker, machine: {{vcpu: 1, memory: 2GiB, network: 10Gbps}}, "
        "nodes: {}}}\n",
        stages, nodes);
  };
  const std::string even = ", stages: [{pool: a, blocks: 2}, {pool: b, blocks: 2}]";
  const StepEstimate with = mixed_step_of(text(2, even)), without = mixed_step_of(text(2, ""));
  CHECK(with.step.count() == Approx(without.step.count()).epsilon(1e-9));
  CHECK(with.compute.count() == Approx(without.compute.count()).epsilon(1e-9));
  CHECK(with.mfu == 0);
  const StepEstimate uneven =
      mixed_step_of(text(2, ", stages: [{pool: a, blocks: 3}, {pool: b, blocks: 1}]"));
  CHECK(uneven.compute > with.compute);
  const auto few = plan_of(text(3, even));
  REQUIRE_FALSE(few);
  CHECK(format(few.error())
            .find("the stages on pool 'b' (no accelerators) take 2 workers, its "
                  "first nodes have 3") != std::string::npos);
}
