#include <algorithm>
#include <catch2/catch.hpp>

#include "exchange/frameworks/frameworks.h"
#include "written.h"

// What a framework takes alone and not together: it would end at its start, or train otherwise than
// the plan says.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

using Changes = std::vector<std::string>;

/// `degrees` of kind: model_parallel with micro-batches of one sample.
Changes cut(const std::string& degrees, const Changes& more = {}) {
  Changes all{kModelParallel + "{kind: model_parallel, micro_batch: 1, " + degrees + "}"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void check_refused(Framework framework, const Changes& changes, const std::string& what,
                   const std::string& hint) {
  const Written w = written(framework, changes);
  INFO(to_text(framework) << " " << changes.front());
  CHECK_FALSE(w.file);
  CHECK_THAT(w.errors, Contains("no counterpart of " + what) && Contains(hint));
}

const Changes kMixtral{"workload.model=mixtral_8x7b", "workload.sequence_length=4096"};
const Changes kQwen{"workload.model=qwen3_30b_a3b", "workload.sequence_length=4096"};
const std::string kSgd = "workload.optimizer={kind: sgd, momentum: 0, weight_decay: 0}";

Changes joined(Changes one, const Changes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

const std::string kRing = "data: 8, context: 4, zero_stage: 3, recompute: full";
const Changes kContext = cut(kRing);

/// Four blocks as Llama has them.
std::string decoder(const std::string& rest) {
  return "workload.model={transformer: {layers: 4, hidden: 1024, feed_forward: 512, vocabulary: "
         "1024, sequence_length: 512, gated_feed_forward: true, rms_norm: true, bias: false, "
         "activation: silu, " +
         rest + "}}";
}

Changes warm_up(const char* steps) {
  return {"workload.strategy.recompute=full",
          std::string("workload.optimizer={kind: adamw, warmup_steps: ") + steps + "}"};
}

bool notes(const Written& w, const std::string& part) {
  REQUIRE(w.file);
  return std::ranges::any_of(w.file->left_to_program, [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("two interleaved stages of Megatron-LM overlap their transfers or are refused") {
  const std::string interleaved =
      "tensor: 4, sequence_parallel: true, zero_stage: 1, schedule: interleaved, interleave: 4, ";
  check_refused(Framework::megatron, cut(interleaved + "data: 4, pipeline: 2, overlap: false"),
                "transfers that wait for arithmetic between 2 interleaved stages", "overlap: true");
  const Values four =
      values(Framework::megatron, cut(interleaved + "data: 2, pipeline: 4, overlap: false"));
  CHECK(four.contains("--no-overlap-p2p-communication"));
  const Values two = values(Framework::megatron, cut(interleaved + "data: 4, pipeline: 2"));
  CHECK_FALSE(two.contains("--no-overlap-p2p-communication"));
}

TEST_CASE("the distributed optimizer of Megatron-LM is Adam alone") {
  for (const char* stage : {"1", "2", "3"})
    check_refused(Framework::megatron, {kSgd, std::string("workload.strategy.zero_stage=") + stage},
                  std::string("optimizer: sgd with zero_stage ") + stage, "optimizer: adamw");
  check_refused(
      Framework::megatron,
      {kSgd, "workload.strategy.zero_stage=1", "workload.strategy.offload_optimizer=true"},
      "optimizer: sgd on the host", "optimizer: adamw");
  CHECK(values(Framework::megatron, {kSgd, "workload.strategy={kind: multi_worker_mirrored}"})
            .at("--optimizer") == "sgd");
}

TEST_CASE("Megatron FSDP reduces gradients beside the arithmetic whatever overlap says") {
  const auto waits = [](const char* stage) {
    return values(Framework::megatron,
                  cut(std::string("data: 32, overlap: false, zero_stage: ") + stage));
  };
  for (const char* stage : {"2", "3"}) {
    CHECK(waits(stage).contains("--overlap-grad-reduce"));
    CHECK(waits(stage).contains("--overlap-param-gather"));
  }
  CHECK_FALSE(waits("1").contains("--overlap-grad-reduce"));
}

TEST_CASE("a warm-up leaves Megatron-LM a step to decay in") {
  check_refused(Framework::megatron, warm_up("1000"),
                "a warm-up of 1000 steps in a training of 1000", "warmup_steps: 999 or less");
  CHECK(values(Framework::megatron, warm_up("999")).at("--lr-warmup-iters") == 999);
}

TEST_CASE("Megatron-LM takes the softmax before it chooses a single expert") {
  const auto routed = [](const char* each) {
    return values(Framework::megatron,
                  {decoder(std::string("heads: 8, experts: 4, experts_per_token: ") + each),
                   "workload.sequence_length=512"});
  };
  CHECK(routed("1").contains("--moe-router-pre-softmax"));
  CHECK_FALSE(routed("2").contains("--moe-router-pre-softmax"));
}

TEST_CASE("a pipeline of torchtitan has a micro-batch for each stage") {
  // 16 samples of 4 copies: 4 micro-batches.
  for (const char* schedule : {"gpipe", "1f1b"})
    check_refused(Framework::torchtitan,
                  cut(std::string("data: 4, pipeline: 8, zero_stage: 3, schedule: ") + schedule,
                      {"workload.global_batch=16"}),
                  "4 micro-batches in 8 stages, fewer than stages", "a larger global_batch");
}

TEST_CASE("sequences of torchtitan are a multiple of 2 x tensor x context") {
  check_refused(Framework::torchtitan,
                cut("data: 4, tensor: 8, sequence_parallel: true, zero_stage: 3",
                    {"workload.sequence_length=1000"}),
                "sequences of 1000 tokens, no multiple of 2 x tensor x context = 16",
                "sequence_length: 1008");
  check_refused(Framework::torchtitan, {"workload.sequence_length=1001"},
                "sequences of 1001 tokens", "sequence_length: 1002");
  CHECK(values(Framework::torchtitan,
               cut("data: 4, tensor: 8, sequence_parallel: true, zero_stage: 3",
                   {"workload.sequence_length=1008"}))
            .at("training.seq_len") == 1008);
}

TEST_CASE("torchtitan cuts a network where the plan does") {
  const std::string p = "parallelism.";
  for (const char* schedule : {"gpipe", "1f1b"}) {  // 32 blocks: 4 a stage
    const Values v =
        values(Framework::torchtitan,
               cut(std::string("data: 4, pipeline: 8, zero_stage: 3, schedule: ") + schedule));
    CHECK(v.at(p + "pipeline_parallel_first_stage_less_layers") == 0);
    CHECK(v.at(p + "pipeline_parallel_last_stage_less_layers") == 0);
    CHECK_FALSE(v.contains(p + "module_fqns_per_model_part"));
  }
  // 32 blocks in 3 stages: the output is the work of two blocks, so the last has one less.
  const Values uneven = values(Framework::torchtitan, cut("data: 8, pipeline: 3, zero_stage: 3",
                                                          {"cluster.pools.0.nodes=3"}));
  CHECK_FALSE(uneven.contains(p + "pipeline_parallel_first_stage_less_layers"));
  std::vector<std::vector<std::string>> expected{{"tok_embeddings"}, {}, {}};
  for (int block = 0; block < 32; ++block)
    expected[block < 11 ? 0 : block < 22 ? 1 : 2].push_back("layers." + std::to_string(block));
  expected.back().insert(expected.back().end(), {"norm", "output"});
  CHECK(uneven.at(p + "module_fqns_per_model_part") == nlohmann::json(expected));
}

TEST_CASE("experts of torchtitan are cut as the rest is, and want ZeRO") {
  const Changes experts =
      cut("data: 16, tensor: 2, expert: 8, zero_stage: 3, sequence_parallel: true", kQwen);
  CHECK(values(Framework::torchtitan, experts).at("parallelism.expert_tensor_parallel_degree") ==
        2);
  check_refused(
      Framework::torchtitan,
      cut("data: 32, expert: 8, zero_stage: 0", joined(kQwen, {"workload.precision=fp32"})),
      "expert parallelism without ZeRO", "zero_stage: 2 or 3");
}

TEST_CASE("torchtitan is asked for the forecast's ring, and a note says that it gathers") {
  CHECK(values(Framework::torchtitan, kContext).at("parallelism.context_parallel_rotate_method") ==
        "alltoall");
  CHECK(notes(written(Framework::torchtitan, kContext), "gathers all keys and values"));
}

TEST_CASE("context parallelism of accelerate is the ring that the forecast has") {
  const std::string name = "parallelism_config.parallelism_config_cp_comm_strategy";
  CHECK(values(Framework::accelerate, kContext).at(name) == "alltoall");
  CHECK_FALSE(values(Framework::accelerate,
                     cut("data: 8, tensor: 4, sequence_parallel: false, zero_stage: 3"))
                  .contains(name));
}

TEST_CASE("DeepSpeed keeps gradients of another precision with ZeRO alone") {
  const std::string copies = "workload.strategy={kind: multi_worker_mirrored}";
  for (const char* precision : {"bf16", "fp16"}) {
    const std::string given = std::string("workload.precision=") + precision;
    check_refused(Framework::deepspeed, {copies, given},
                  std::string("gradients in fp32 beside ") + precision + " without ZeRO",
                  "zero_stage: 1, or fp32_gradients: false");
    CHECK(values(Framework::deepspeed, {copies, given, "workload.fp32_gradients=false"})
              .at("data_types.grad_accum_dtype") == precision);
    CHECK(values(Framework::deepspeed, {given, "workload.strategy.zero_stage=1"})
              .at("data_types.grad_accum_dtype") == "fp32");
  }
  CHECK(written(Framework::deepspeed, {copies, "workload.precision=fp32"}).file);
}
TEST_CASE("context parallelism of MaxText on GPUs is the ring whose mask follows the tokens") {
  const Values v = values(Framework::maxtext, kContext);
  CHECK(v.at("attention") == "cudnn_flash_te");
  CHECK(v.at("context_parallel_strategy") == "ring");
  CHECK(v.at("context_parallel_load_balance") == true);
  CHECK(v.at("packing") == false);
  CHECK(notes(written(Framework::maxtext, kContext), "samples of 8192 tokens each"));
  CHECK_FALSE(values(Framework::maxtext, {"workload.strategy.recompute=full"}).contains("packing"));
}

TEST_CASE("MaxText's ring on GPUs is refused where no fused attention takes its tokens") {
  check_refused(Framework::maxtext, cut(kRing, {"workload.precision=fp32"}),
                "context parallelism in fp32 on GPUs", "precision: bf16");
  check_refused(Framework::maxtext,
                cut(kRing, {decoder("heads: 4"), "workload.sequence_length=512"}),
                "context parallelism of heads of width 256 on GPUs", "context: 1");
  check_refused(Framework::maxtext,
                cut(kRing, {"cluster.pools.0.accelerator={type: MI300X, count: 8}"}),
                "context parallelism on MI300X", "context: 1");
  check_refused(Framework::maxtext,
                cut("data: 8, context: 3, zero_stage: 3, recompute: full",
                    {"workload.sequence_length=6144", "cluster.pools.0.nodes=3"}),
                "context parallelism of 3, odd", "an even context");
  const Written w = written(Framework::maxtext, cut(kRing));
  auto layout = launch_layout_of(*w.plan, {}, kTimes);
  REQUIRE(layout);
  layout->model->dropout = 0.1;
  const auto dropped = launcher_file(Framework::maxtext, *layout, {});
  REQUIRE_FALSE(dropped);
  CHECK_THAT(format(dropped.error()), Contains("context parallelism with dropout on GPUs"));
}

TEST_CASE("context parallelism on TPUs gathers, and a note says so") {
  const Changes slice = cut(
      kRing,
      {"cluster={provider: gcp, service: gke, region: us-east5, pools: [{name: tpu, tpu: {type: "
       "TPU-v5p, slice: v5p-64}, nodes: 1}]}"});
  CHECK_FALSE(values(Framework::maxtext, slice).contains("attention"));
  CHECK(notes(written(Framework::maxtext, slice), "gathers all keys and values"));
}

TEST_CASE("MaxText multiplies experts on GPUs without a kernel for TPUs") {
  const Changes experts = cut("data: 32, expert: 8, zero_stage: 3, recompute: full", kMixtral);
  CHECK(values(Framework::maxtext, experts).at("megablox") == false);
  CHECK_FALSE(
      values(Framework::maxtext, {"workload.strategy.recompute=full"}).contains("megablox"));
  check_refused(Framework::maxtext, joined(experts, {"workload.precision=fp8"}),
                "precision fp8 of experts", "precision: bf16");
}

TEST_CASE("MaxText accumulates nothing in fp8, and shards Adam's state alone") {
  const Changes fp8{"workload.strategy.recompute=full", "workload.precision=fp8"};
  check_refused(Framework::maxtext, fp8, "precision fp8 with 4 micro-batches accumulated",
                "precision: bf16");
  CHECK(values(Framework::maxtext, joined(fp8, {"workload.global_batch=32"})).at("quantization") ==
        "fp8");
  check_refused(Framework::maxtext,
                {kSgd, "workload.strategy.recompute=full", "workload.strategy.zero_stage=1"},
                "optimizer: sgd with zero_stage 1", "zero_stage: 0 or 3");
}

TEST_CASE("a warm-up of MaxText ends with the training") {
  check_refused(Framework::maxtext, warm_up("1001"),
                "a warm-up of 1001 steps in a training of 1000", "warmup_steps: 1000 or less");
  CHECK(values(Framework::maxtext, warm_up("1000")).at("warmup_steps_fraction") == 1);
}
