#include <catch2/catch.hpp>

#include "sim/accuracy/predict.h"
#include "sim/accuracy/run/plan.h"
#include "sim/model/zoo/zoo.h"
#include "support/shipped_catalog.h"

// Published runs of networks that have more than the columns of a plain transformer: DeepSeek's,
// as MooreThreads/SimuMax docs/b200 @4dcaae513ba7 runs them with Megatron-LM on eight B200.
using namespace reckon;

namespace {

constexpr double kGib = 1073741824;

RunConfiguration on_b200(int data, int tensor, int pipeline, int expert) {
  RunConfiguration r;
  r.accelerator = "B200-SXM";
  r.accelerators = r.accelerators_per_node = 8;
  r.nodes = 1;
  r.intra_node_link = "nvlink5";
  r.gated_feed_forward = true;
  r.precision = "bf16";
  r.strategy = "model_parallel";
  r.data = data;
  r.tensor = tensor;
  r.pipeline = pipeline;
  r.context = 1;
  r.expert = expert;
  r.micro_batch = 1;
  r.global_batch = 4 * data;
  r.sequence_length = 4096;
  r.recompute = "none";
  r.stack = "megatron";
  return r;
}

RunConfiguration deepseek_v2_of_four_layers(int data, int pipeline) {
  RunConfiguration r = on_b200(data, 1, pipeline, data);
  r.model = "moe";
  r.variant = "deepseek-v2-l4";
  r.layers = 4;
  r.hidden = 5120;
  r.heads = r.kv_heads = r.head_width = 128;
  r.feed_forward = 1536;
  r.vocabulary = 102400;
  r.experts = 160;
  r.experts_per_token = 6;
  r.shared_experts = 2;
  r.active_parameters = 2402959360;
  return r;
}

RunConfiguration deepseek_v3_of_four_layers(int data, int pipeline) {
  RunConfiguration r = deepseek_v2_of_four_layers(data, pipeline);
  r.variant = "deepseek-v3-l4";
  r.hidden = 7168;
  r.feed_forward = 2048;
  r.vocabulary = 129280;
  r.experts = 256;
  r.experts_per_token = 8;
  r.shared_experts = 1;
  r.active_parameters = 4192796672;
  return r;
}

RunConfiguration llama3_70b_of_twelve_layers(int data, int tensor, int pipeline) {
  RunConfiguration r = on_b200(data, tensor, pipeline, 1);
  r.model = "gpt";
  r.variant = "llama3-70b-l12";
  r.layers = 12;
  r.hidden = 8192;
  r.heads = 64;
  r.kv_heads = 8;
  r.head_width = 128;
  r.feed_forward = 28672;
  r.vocabulary = 128256;
  r.parameters = 12369207296;
  return r;
}

TransformerDimensions dimensions_of_run(const RunConfiguration& run) {
  const auto model = model_of_run(run);
  if (!model) FAIL(model.error());
  return std::get<ModelFromTransformer>(model->spec).dimensions;
}

double parameters_of_run(const RunConfiguration& run) {
  return double(make_transformer("run", dimensions_of_run(run))->parameters());
}

}  // namespace

TEST_CASE("what a row of a DeepSeek model leaves out is what its variant's network has") {
  // One dense layer is kept, of V2's one and of V3's three: the printed active parameters say so.
  const TransformerDimensions v3 = dimensions_of_run(deepseek_v3_of_four_layers(8, 1));
  CHECK(v3.kv_lora_rank == 512);
  CHECK(v3.q_lora_rank == 1536);
  CHECK(v3.head_width == 0);
  CHECK(v3.feed_forward == 18432);
  CHECK(v3.expert_feed_forward == 2048);
  CHECK(v3.dense_layers == 1);
  // SimuMax prints about 13,302,906,880 and 36,958,699,520 parameters.
  CHECK(parameters_of_run(deepseek_v2_of_four_layers(8, 1)) == Approx(13302906880).epsilon(1e-4));
  CHECK(parameters_of_run(deepseek_v3_of_four_layers(8, 1)) == Approx(36958699520).epsilon(1e-4));
}

TEST_CASE("columns of latent attention and dense layers go before the variant's") {
  RunConfiguration run = deepseek_v3_of_four_layers(8, 1);
  run.active_parameters = 0;
  run.dense_layers = 2;
  run.dense_feed_forward = 9000;
  run.kv_lora_rank = 256;
  const TransformerDimensions d = dimensions_of_run(run);
  CHECK(d.dense_layers == 2);
  CHECK(d.feed_forward == 9000);
  CHECK(d.kv_lora_rank == 256);
  CHECK(d.q_lora_rank == 0);  // beside a printed kv_lora_rank a blank one says none
  CHECK(d.value_head_width == 128);

  run.variant = "a-model-of-ours";
  CHECK(dimensions_of_run(run).nope_head_width == 0);
}

TEST_CASE("other networks' names say nothing of their attention") {
  RunConfiguration run = llama3_70b_of_twelve_layers(4, 2, 1);
  CHECK(dimensions_of_run(run).kv_lora_rank == 0);
  CHECK(dimensions_of_run(run).head_width == 128);
}

TEST_CASE("peaks of memory of Megatron-LM on eight B200 are met within 7 %") {
  // Most that PyTorch allocated on any rank, in GiB.
  struct Row {
    RunConfiguration run;
    double peak;
  };
  const std::vector<Row> rows{
      {llama3_70b_of_twelve_layers(4, 1, 2), 66.55}, {llama3_70b_of_twelve_layers(4, 2, 1), 60.68},
      {llama3_70b_of_twelve_layers(2, 4, 1), 39.07}, {llama3_70b_of_twelve_layers(1, 8, 1), 28.29},
      {deepseek_v2_of_four_layers(8, 1), 45.63},     {deepseek_v2_of_four_layers(4, 2), 44.70},
      {deepseek_v3_of_four_layers(8, 1), 104.3},     {deepseek_v3_of_four_layers(4, 2), 114.0}};
  Predictor predict(test::shipped_catalog());
  for (const Row& row : rows) {
    CAPTURE(row.run.variant, row.run.tensor, row.run.pipeline);
    const auto& p = predict(row.run);
    if (!p) FAIL(p.error());
    CHECK(p->memory.fits_at(kRiskOfAPlan));
    CHECK(p->memory.allocated().v / kGib == Approx(row.peak).epsilon(0.07));
  }
}

TEST_CASE("Megatron-LM's bf16 keeps gradients in fp32 and shares its optimizer's state") {
  const auto plan = plan_of_run(llama3_70b_of_twelve_layers(4, 2, 1), test::shipped_catalog());
  REQUIRE(plan.has_value());
  CHECK(plan->jobs.front().fp32_gradients);
  CHECK(plan->jobs.front().strategy.layout.zero_stage == 1);
  RunConfiguration other = llama3_70b_of_twelve_layers(4, 2, 1);
  other.stack = "";
  const auto plain = plan_of_run(other, test::shipped_catalog());
  REQUIRE(plain.has_value());
  CHECK_FALSE(plain->jobs.front().fp32_gradients);
  CHECK(plain->jobs.front().strategy.layout.zero_stage == 0);
  other.zero_stage = 1;
  CHECK(plan_of_run(other, test::shipped_catalog())->jobs.front().strategy.layout.zero_stage == 1);
}

TEST_CASE(
    "Megatron's fork with DeepSpeed shares no tokens among tensor ranks unless a row says so") {
  const Catalog& catalog = test::shipped_catalog();
  RunConfiguration run = llama3_70b_of_twelve_layers(4, 2, 1);
  CHECK(plan_of_run(run, catalog)->jobs.front().strategy.layout.sequence_parallel);
  run.stack = "megatron-deepspeed";
  const auto plan = plan_of_run(run, catalog);
  REQUIRE(plan.has_value());
  CHECK_FALSE(plan->jobs.front().strategy.layout.sequence_parallel);
  CHECK_FALSE(plan->jobs.front().fp32_gradients);
  CHECK(plan->jobs.front().strategy.layout.zero_stage == 1);
  run.sequence_parallel = true;
  CHECK(plan_of_run(run, catalog)->jobs.front().strategy.layout.sequence_parallel);
}

TEST_CASE("gradients that are reduced after the backward pass take the step longer") {
  RunConfiguration run = llama3_70b_of_twelve_layers(4, 2, 1);
  Predictor predict(test::shipped_catalog());
  const double hidden = predict(run)->rate.v;
  run.overlap = false;
  CHECK(predict(run)->rate.v < hidden);
}

TEST_CASE("a stack's own memory stands in the plan of its runs") {
  RunConfiguration run = llama3_70b_of_twelve_layers(4, 2, 1);
  const Catalog& catalog = test::shipped_catalog();
  const FrameworkRules usual = plan_of_run(run, catalog)->framework;
  CHECK_FALSE(usual.keeps_scores);
  CHECK(usual.buffers_per_parameter.v == 0);
  run.stack = "megatron-deepspeed";
  const FrameworkRules own = plan_of_run(run, catalog)->framework;
  CHECK(own.keeps_scores);
  CHECK(own.buffers_per_parameter.v == 8);
  CHECK(own.reserve.value.v == 3e9);
  CHECK(own.communicator.value.v == 0);
}

TEST_CASE("a run that prints no recomputation and fits with none says nothing of memory") {
  RunConfiguration run = llama3_70b_of_twelve_layers(8, 1, 1);
  run.micro_batch = 64;
  run.global_batch = 64 * 8;
  Predictor predict(test::shipped_catalog());
  CHECK(predict(run)->memory_known);
  CHECK_FALSE(predict(run)->memory.fits());
  run.recompute = "unknown";
  CHECK_FALSE(predict(run)->memory_known);
}
