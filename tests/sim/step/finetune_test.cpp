#include <catch2/catch.hpp>

#include "sim/model/finetune.h"
#include "sim/step/step.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

Plan plan_training(const ModelGraph& model) {
  Plan plan = make_round_plan(model, StrategyKind::single, 1, 1, 0, Precision::fp16);
  plan.jobs[0].optimizer = Optimizer::adamw;
  plan.jobs[0].strategy.layout.micro_batch =
      1;  // so that the state, not the activations, is the most
  return plan;
}

}  // namespace

TEST_CASE("LoRA keeps gradients, optimizer state and checkpoints of the adapters alone") {
  // GPT-2 small, rank 8 beside c_attn: 294,912 adapters on 124,439,808 frozen weights.
  const double frozen = 124'439'808, adapters = 294'912;
  const ModelGraph model = zoo_model("gpt2_small", 256).value();
  const Plan plan = plan_training(with_lora(model, {.rank = 8}).value());
  const MemoryEstimate m = estimate_memory(plan, plan.jobs[0]);
  CHECK(m.parameters.v == 2 * (frozen + adapters));
  CHECK(m.gradients.v == 2 * adapters);
  CHECK(m.optimizer.v == 12 * adapters);
  CHECK(checkpoint_bytes(plan.jobs[0]).v == 12 * adapters);

  // Starting again reads the frozen weights too, 2 bytes each.
  Plan slow = plan;
  slow.jobs[0].checkpoint.storage.read_per_node = Fact<BytesPerSecond>{BytesPerSecond{1e6}};
  slow.jobs[0].checkpoint.storage.latency = Fact<Seconds>{};
  CHECK(checkpoint_restore_time(slow, slow.jobs[0]).count() ==
        Approx((12 * adapters + 2 * frozen) / 1e6));
}

TEST_CASE("a step of LoRA is faster than one of full training, and needs less memory") {
  const ModelGraph model = zoo_model("llama3_8b", 1024).value();
  const Plan full = plan_training(model),
             adapted = plan_training(with_lora(model, {.rank = 8}).value());
  const auto network = make_fluid_network();
  const StepEstimate a = estimate_step(full, full.jobs[0], *network);
  const StepEstimate b = estimate_step(adapted, adapted.jobs[0], *network);
  // About 4 N in place of 6 N, and almost nothing to update: between a half and all of it.
  CHECK(b.step < a.step);
  CHECK(b.compute > 0.5 * a.compute);
  // 2 bytes a weight in place of 16, and activations that are fewer.
  CHECK(estimate_memory(adapted, adapted.jobs[0]).required().v <
        0.3 * estimate_memory(full, full.jobs[0]).required().v);
}

TEST_CASE("QLoRA's weights take half a byte and their constants, and are made wide for each pass") {
  const ModelGraph model = zoo_model("llama3_8b", 1024).value();
  const ModelGraph net = with_adapters(model, AdapterKind::qlora, 16).value();
  const Plan lora = plan_training(with_adapters(model, AdapterKind::lora, 16).value());
  const Plan qlora = plan_training(net);
  const double products = 6'979'321'856, all = double(net.parameters());
  // [Dettmers 2023, section 3]: 4 bits and 0.127 bits of constants.
  CHECK(estimate_memory(qlora, qlora.jobs[0]).parameters.v ==
        Approx((all - products) * 2 + products * 4.127 / 8).epsilon(1e-4));
  // What has to be read, written and read again makes each pass longer.
  const auto network = make_fluid_network();
  CHECK(estimate_step(qlora, qlora.jobs[0], *network).compute >
        estimate_step(lora, lora.jobs[0], *network).compute);
}
