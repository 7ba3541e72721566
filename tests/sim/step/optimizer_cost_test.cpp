#include "sim/step/optimizer_cost.h"

#include <catch2/catch.hpp>

#include "sim/model/finetune.h"
#include "sim/model/zoo/zoo.h"
#include "sim/step/compute.h"
#include "sim/step/element_sizes.h"

using namespace reckon;

namespace {

/// A product of 64 x 256 inside, a table of 100 x 64 and an output of its own.
ModelGraph small() {
  std::vector<Layer> layers{
      {.name = "ids", .op = InputLayer{}},
      {.name = "table", .op = Embedding{100, 64}, .inputs = {LayerId{0}}},
      {.name = "up", .op = Linear{64, 256, true}, .inputs = {LayerId{1}}},
      {.name = "down", .op = Linear{256, 64, false}, .inputs = {LayerId{2}}},
      {.name = "head", .op = Linear{64, 100, false}, .inputs = {LayerId{3}}},
      {.name = "loss", .op = SoftmaxCrossEntropy{100}, .inputs = {LayerId{4}}}};
  return ModelGraph::make("small", SampleUnit::sequence, {8}, layers).value();
}
constexpr double kInside = 2 * 64 * 256, kAll = kInside + 256 + 2 * 6400;

}  // namespace

TEST_CASE("each optimizer keeps what its paper says") {
  const ModelGraph model = small();
  const auto state = [&](Optimizer o) { return optimizer_cost(model, o).state.v; };
  CHECK(state(Optimizer::sgd_momentum) == 4);
  CHECK(state(Optimizer::adamw) == 8);
  CHECK(state(Optimizer::lion) == 4);
  CHECK(state(Optimizer::adamw_8bit) == Approx(2 + 8. / 2048));
  // Rows and columns of the four matrices, and the bias.
  CHECK(state(Optimizer::adafactor) == Approx(4 * (2 * (64 + 256) + 2 * (100 + 64) + 256) / kAll));
  // A momentum inside; two moments of the table, the output and the bias.
  CHECK(state(Optimizer::muon) == Approx((4 * kInside + 8 * (kAll - kInside)) / kAll));
}

TEST_CASE("Muon's Newton-Schulz iterations are products by the matrices' shapes") {
  const OptimizerCost muon = optimizer_cost(small(), Optimizer::muon);
  // Five times 4 n n m + 2 n n n for each of two matrices of n = 64, m = 256.
  const double n = 64, m = 256;
  CHECK(muon.flops.v == Approx(2 * 5 * (4 * n * n * m + 2 * n * n * n) / kAll));
  CHECK(optimizer_cost(small(), Optimizer::adamw).flops.v == 0);
  // [Jordan 2024] bounds it by 6 n of the 6 B m n FLOPs of a step, five times: for Llama-3-8B and
  // batches of half a million tokens below one percent.
  const ModelGraph llama = zoo_model("llama3_8b").value();
  const double update =
      optimizer_cost(llama, Optimizer::muon).flops.v * double(llama.trainable_parameters());
  constexpr double kTokens = 524'288;
  const double step = llama.model_flops().v / double(llama.sequence_length()) * kTokens;
  CHECK(update / step > 0.001);
  CHECK(update / step < 0.05);
}

TEST_CASE("an optimizer with less state moves less, Muon takes longer") {
  const ModelGraph model = zoo_model("gpt2_small").value();
  Processor core{.peak = FlopsPerSecond{100e12}, .memory_bandwidth = BytesPerSecond{1e12}};
  core.efficiency.memory = core.efficiency.matmul = Fact<double>{1.0};
  const auto time = [&](Optimizer o) {
    const ElementSizes size = element_sizes(Precision::bf16, optimizer_cost(model, o), false);
    return update_time(1e8, size, core).count();
  };
  // gradient 2, master 2 4, copy 2, moments 2 8: 28 bytes; one momentum: 20.
  CHECK(time(Optimizer::adamw) == Approx(28e8 / 1e12));
  CHECK(time(Optimizer::lion) == Approx(20e8 / 1e12));
  CHECK(time(Optimizer::adamw_8bit) == Approx((12 + 4 * (1 + 4. / 2048)) * 1e8 / 1e12));
  CHECK(time(Optimizer::adafactor) < time(Optimizer::lion));
  CHECK(time(Optimizer::muon) > time(Optimizer::adamw));
}

TEST_CASE("a tied output and frozen weights have no state of their own") {
  const ModelGraph gpt2 = zoo_model("gpt2_small").value();
  CHECK(trainable_shapes(gpt2).parameters == 124'439'808);
  const ModelGraph lora = with_lora(gpt2, {.rank = 8}).value();
  CHECK(trainable_shapes(lora).parameters == double(lora.trainable_parameters()));
}
