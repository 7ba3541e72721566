#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/model/finetune.h"
#include "sim/step/memory/model_sheet.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

const FrameworkRules kNoFramework{};

const MemoryCase& named(const std::vector<MemoryCase>& cases, const std::string& strategy) {
  for (const MemoryCase& c : cases)
    if (c.strategy == strategy) return c;
  FAIL("no case '" << strategy << "'");
  return cases.front();
}

}  // namespace

TEST_CASE("equal blocks in a row are one group, and the groups add up to the network") {
  const ModelGraph model = zoo_model("gpt2_small").value();
  const auto groups = layer_group_counts(model, Bytes{2});
  std::int64_t parameters = 0;
  Flops forward{}, backward{};
  Bytes saved{};
  for (const LayerGroupCount& g : groups) {
    parameters += g.parameters;
    forward += g.forward;
    backward += g.backward;
    saved += g.saved;
  }
  CHECK(parameters == 124'439'808);
  CHECK(forward.v == Approx(model.forward_flops().v).epsilon(1e-12));
  CHECK(backward.v == Approx(model.backward_flops().v).epsilon(1e-12));
  CHECK(saved.v == Approx(model.saved_bytes(Bytes{2}).v).epsilon(1e-12));
  // 12 blocks of 12 D^2 + 13 D = 7,087,872 parameters, D = 768.
  const auto blocks = std::find_if(groups.begin(), groups.end(),
                                   [](const LayerGroupCount& g) { return g.groups == 12; });
  REQUIRE(blocks != groups.end());
  CHECK(blocks->parameters == 12 * 7'087'872);
  CHECK(groups.size() < 12);
}

TEST_CASE("blocks of another width are groups of their own") {
  // ResNet-50's four stages have 3, 4, 6 and 3 blocks; only equal ones are folded.
  const auto groups = layer_group_counts(zoo_model("resnet50").value(), Bytes{4});
  std::int64_t parameters = 0;
  for (const LayerGroupCount& g : groups) parameters += g.parameters;
  CHECK(parameters == 25'557'032);
  CHECK(groups.size() >= 4);
}

TEST_CASE("each way to train holds what the memory model says of it") {
  const ModelGraph model = zoo_model("gpt2_small").value();
  const auto cases =
      memory_by_strategy({&model, Precision::bf16, Optimizer::adamw, 4, 8, kNoFramework, {}});
  const double n = 124'439'808;
  const MemoryCase& data = named(cases, "single or data parallel");
  CHECK((data.memory.parameters + data.memory.gradients + data.memory.optimizer).v == 16 * n);
  // Parameter servers keep the variables in fp32, and the optimizer's state.
  const MemoryCase& worker = named(cases, "worker of parameter servers");
  CHECK(worker.memory.optimizer.v == 0);
  CHECK(worker.memory.parameters.v == 4 * n);
  const MemoryCase& full = named(cases, "single or data parallel, recompute full");
  CHECK(full.memory.activations < data.memory.activations);
}

TEST_CASE("an accelerator says whether it holds the model, a TPU by its own strategy") {
  const ModelGraph model = zoo_model("gpt2_small").value();
  Accelerator small = round_accelerator();
  small.memory = Fact<Bytes>{1.0_GiB};
  const auto cases =
      memory_by_strategy({&model, Precision::fp16, Optimizer::adamw, 1, 8, kNoFramework, small});
  CHECK(cases.front().memory.available.v == Bytes{1.0_GiB}.v);
  CHECK_FALSE(cases.front().memory.fits());
  small.kind = AcceleratorKind::tpu;
  const auto tpu =
      memory_by_strategy({&model, Precision::bf16, Optimizer::adamw, 1, 8, kNoFramework, small});
  CHECK(tpu.front().strategy == "tpu slice");
}

TEST_CASE("adapters keep gradients and optimizer state of themselves only") {
  const ModelGraph model = with_lora(zoo_model("gpt2_small").value(), {.rank = 8}).value();
  const auto cases =
      memory_by_strategy({&model, Precision::bf16, Optimizer::adamw, 1, 8, kNoFramework, {}});
  CHECK(cases.front().memory.gradients.v == 2.0 * 294'912);
}

TEST_CASE("sharding divides what it shards, and only networks that can be cut are cut") {
  // Rajbhandari et al. 2020, figure 1: (2 + 2 + 12) P; stage 1 leaves 4 + 12/N, stage 2 2 + 14/N,
  // stage 3 16/N bytes a parameter.
  const ModelGraph model = zoo_model("gpt2_small").value();
  const double n = 124'439'808;
  const auto cases =
      memory_by_strategy({&model, Precision::bf16, Optimizer::adamw, 1, 8, kNoFramework, {}});
  const auto state = [&](const std::string& name) {
    const MemoryEstimate& m = named(cases, name).memory;
    return (m.parameters + m.gradients + m.optimizer).v / n;
  };
  CHECK(state("ZeRO 1 over 8") == Approx(4 + 12.0 / 8));
  CHECK(state("ZeRO 2 over 8") == Approx(2 + 14.0 / 8));
  CHECK(state("ZeRO 3 over 8") == Approx(16.0 / 8));
  // 12 heads are not shared by 8 ranks.
  for (const MemoryCase& c : cases) CHECK(c.strategy != "tensor parallel over 8");
  const auto four =
      memory_by_strategy({&model, Precision::bf16, Optimizer::adamw, 1, 4, kNoFramework, {}});
  CHECK(named(four, "tensor parallel over 4").memory.parameters.v < 2 * n);
}
