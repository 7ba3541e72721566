#include "sim/scenario/layout_rules.h"

#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"
#include "support/scenario_text.h"

using namespace reckon;
using Catch::Matchers::Contains;
using test::errors_of;

namespace {

const std::string kBase = R"(
name: base
workload:
  model: llama3_8b
  dataset: openwebtext
  train: {tokens: 1B}
  precision: bf16
  global_batch: 128
  strategy: {kind: model_parallel, data: 4, tensor: 4, pipeline: 2, micro_batch: 2}
cluster:
  provider: gcp
  region: us-central1
  pools:
    - {name: h100, machine: a3-highgpu-8g, nodes: 4}
)";

std::string with(const std::string& strategy, std::vector<std::string> others = {}) {
  others.push_back("workload.strategy={kind: model_parallel, " + strategy + "}");
  return errors_of(kBase, others);
}

std::vector<std::string> keys(const LayoutLimits& limits, const Layout& l, int accelerators,
                              std::int64_t batch) {
  std::vector<std::string> out;
  for (const BrokenRule& rule : broken_rules(limits, l, accelerators, batch))
    out.push_back(rule.key);
  return out;
}

}  // namespace

TEST_CASE("a layout that fills the accelerators and divides the model has a plan") {
  CHECK(errors_of(kBase) == "");
  CHECK(with("data: 8, tensor: 4, zero_stage: 1, micro_batch: 4") == "");
  CHECK(with("tensor: 4, micro_batch: 4") == "");  // data follows
  CHECK(with("data: 2, tensor: 2, context: 2, pipeline: 4, schedule: interleaved, interleave: 4") ==
        "");
  CHECK(with("data: 1, tensor: 8, pipeline: 1") == "");  // one of the four nodes
}

TEST_CASE("a layout that cannot exist says which rule it breaks") {
  CHECK_THAT(with("data: 4, tensor: 3, pipeline: 2"),
             Contains("are 24 accelerators") || Contains("tensor 3 does not divide"));
  CHECK_THAT(with("data: 2, tensor: 16"),
             Contains("tensor 16 does not divide the 8 key-value heads of model llama3_8b"));
  CHECK_THAT(with("workers: 4, data: 3, tensor: 4"), Contains("data 3 x tensor 4 x pipeline 1"));
  CHECK_THAT(with("data: 1, pipeline: 64, workers: 4"),
             Contains("64 pipeline stages for the 32 blocks of model llama3_8b"));
  CHECK_THAT(with("data: 4, tensor: 8", {"workload.global_batch=130"}),
             Contains("global_batch 130 is not divisible by data 4 x micro_batch 1"));
  CHECK_THAT(with("data: 4, tensor: 8, expert: 2"), Contains("has no experts to share out"));
  CHECK_THAT(with("data: 4, context: 8", {"workload.sequence_length=1000"}),
             Contains("context 8 needs a sequence_length that 16 divides, not 1000"));
  CHECK_THAT(with("data: 4, tensor: 2, pipeline: 4, schedule: interleaved, interleave: 3"),
             Contains("pipeline 4 x interleave 3 = 12 parts do not divide the 32 blocks"));
  CHECK_THAT(with("data: 32, micro_batch: 2, schedule: interleaved"),
             Contains("an interleaved schedule needs a pipeline"));
  CHECK_THAT(with("data: 1, tensor: 8, zero_stage: 3"), Contains("shards state over one rank"));
}

TEST_CASE("all broken rules come at once") {
  const LayoutLimits limits(zoo_model("mixtral_8x7b").value());
  Layout l;
  l.data = 3;
  l.tensor = 3;
  l.pipeline = 33;
  l.context = 5;
  l.expert = 5;
  const auto broken = keys(limits, l, 64, 7);
  for (const char* key : {"data", "tensor", "pipeline", "context", "expert", "global_batch"})
    CHECK(std::find(broken.begin(), broken.end(), key) != broken.end());
}

TEST_CASE("what a network can be divided into is read off its layers") {
  const LayoutLimits gpt(zoo_model("gpt3_175b").value());
  CHECK(gpt.blocks == 96);
  CHECK(gpt.attention);
  CHECK(gpt.experts.empty());
  const LayoutLimits moe(zoo_model("mixtral_8x7b").value());
  CHECK(moe.experts == std::vector<std::int64_t>{8});
  const LayoutLimits images(zoo_model("resnet50").value());
  CHECK_FALSE(images.attention);
  Layout two;
  two.tensor = 2;
  CHECK(keys(images, two, 2, 1) == std::vector<std::string>{"tensor"});
}

TEST_CASE("tensor parallelism across nodes is doubtful, not wrong") {
  Layout l;
  l.tensor = 8;
  CHECK(doubtful_choices(l, 8).empty());
  CHECK(doubtful_choices(l, 4).size() == 1);
  l.tensor = 3;
  CHECK(doubtful_choices(l, 8).size() == 1);
}

TEST_CASE("accumulation is micro_batch in every strategy") {
  const std::string sharded = "workload.strategy={kind: sharded, zero_stage: 3, micro_batch: 2}";
  CHECK(errors_of(kBase, {sharded}) == "");
  CHECK_THAT(errors_of(kBase, {"workload.strategy={kind: sharded, micro_batch: 3}"}),
             Contains("micro_batch 3 does not divide the 4 samples of an accelerator"));
  CHECK(errors_of(kBase, {"workload.strategy={kind: multi_worker_mirrored, micro_batch: 2}"}) ==
        "");
  CHECK_THAT(errors_of(kBase, {"workload.strategy={kind: sharded, zero_stage: 0}"}),
             Contains("strategy sharded with zero_stage 0 shards nothing"));
}

TEST_CASE("a batch an accelerator says nothing where accelerators share samples") {
  std::string text = kBase;
  text.replace(text.find("global_batch"), 12, "batch_per_accelerator");
  CHECK_THAT(errors_of(text),
             Contains("with model_parallel several accelerators share one sample"));
}

TEST_CASE("a scenario says latent attention and dense layers by itself, as the zoo does") {
  const auto parameters = [](const std::string& model) {
    const auto plan = test::plan_of(kBase, {"workload.model=" + model});
    if (!plan) FAIL(format(plan.error()));
    return plan->jobs.front().model.parameters();
  };
  CHECK(parameters("{transformer: {layers: 27, hidden: 2048, heads: 16, feed_forward: 10944, "
                   "vocabulary: 102400, sequence_length: 4096, gated_feed_forward: true, rms_norm: "
                   "true, bias: false, tied_output: false, activation: silu, experts: 64, "
                   "experts_per_token: 6, expert_feed_forward: 1408, shared_feed_forward: 2816, "
                   "dense_layers: 1, kv_lora_rank: 512, nope_head_width: 128, rope_head_width: 64, "
                   "value_head_width: 128}}") == parameters("deepseek_v2_lite"));
}

TEST_CASE("a plan keeps fp32 gradients and transfers that are not hidden where it is told so") {
  const auto plain = test::plan_of(kBase);
  REQUIRE(plain.has_value());
  CHECK_FALSE(plain->jobs.front().fp32_gradients);
  CHECK(layout_of(plain->jobs.front()).overlap);
  const auto told =
      test::plan_of(kBase, {"workload.fp32_gradients=true", "workload.strategy.overlap=false"});
  REQUIRE(told.has_value());
  CHECK(told->jobs.front().fp32_gradients);
  CHECK_FALSE(layout_of(told->jobs.front()).overlap);
}

TEST_CASE("data_parallel, zero and hybrid are read as the layouts that TensorFlow's words name") {
  const auto kind = [](const std::string& strategy) {
    const auto plan = test::plan_of(kBase, {"workload.strategy=" + strategy});
    REQUIRE(plan);
    return plan->jobs.front().strategy.kind;
  };
  CHECK(kind("{kind: data_parallel}") == StrategyKind::multi_worker_mirrored);
  CHECK(kind("{kind: zero, zero_stage: 2}") == StrategyKind::sharded);
  CHECK(kind("{kind: hybrid, data: 8, tensor: 4}") == StrategyKind::model_parallel);
  CHECK_THAT(errors_of(kBase, {"workload.strategy={kind: zero, tensor: 2}"}),
             Contains("'tensor' does not belong to strategy sharded"));
  CHECK_THAT(errors_of(kBase, {"workload.strategy={kind: hybird}"}),
             Contains("did you mean 'hybrid'?"));
}
