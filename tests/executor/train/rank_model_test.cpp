#include "executor/train/parallel/rank_model.h"

#include <catch2/catch.hpp>

#include "executor/train/initialise.h"
#include "executor/train/parallel_networks.h"

using namespace reckon;

namespace {

ParameterLayout layout_at(const ModelGraph& model, GroupPlace tensor, GroupPlace expert = {}) {
  const auto rank = make_rank_model(model, {.tensor = tensor, .expert = expert});
  REQUIRE(rank);
  return parameter_layout(model, *rank);
}

const ParameterSlot& slot_of(const ParameterLayout& layout, const std::string& name) {
  for (const ParameterSlot& slot : layout.slots)
    if (slot.name == name) return slot;
  FAIL("no " << name);
  std::abort();
}

std::vector<Box> boxes_of(const ParameterSlot& slot) {
  std::vector<Box> boxes;
  for (const SlotSlice& slice : slices_of(slot, slot.name)) boxes.push_back(slice.tensor.box);
  return boxes;
}

std::vector<std::string> texts_of(const Diagnostics& problems) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : problems) texts.push_back(d.what);
  return texts;
}

}  // namespace

TEST_CASE("tensor ranks hold the slices of Megatron-LM") {
  const ModelGraph model = test::parallel_gpt2();  // hidden 32, 4 heads of 8, 61 words
  const ParameterLayout second = layout_at(model, {1, 2});
  // One matrix of queries, keys and values: heads 2 and 3 of each.
  CHECK(boxes_of(slot_of(second, "transformer.h.0.attn.c_attn.weight")) ==
        std::vector<Box>{{{16, 0}, {16, 32}}, {{48, 0}, {16, 32}}, {{80, 0}, {16, 32}}});
  CHECK(boxes_of(slot_of(second, "transformer.h.0.attn.c_attn.bias")) ==
        std::vector<Box>{{{16}, {16}}, {{48}, {16}}, {{80}, {16}}});
  CHECK(boxes_of(slot_of(second, "transformer.h.0.attn.c_proj.weight")) ==
        std::vector<Box>{{{0, 16}, {32, 16}}});
  CHECK(boxes_of(slot_of(second, "transformer.h.1.mlp.c_fc.weight")) ==
        std::vector<Box>{{{64, 0}, {64, 32}}});
  CHECK(boxes_of(slot_of(second, "transformer.h.1.mlp.c_proj.weight")) ==
        std::vector<Box>{{{0, 64}, {32, 64}}});
  // Whole: a bias that is added once, norms.
  CHECK(boxes_of(slot_of(second, "transformer.h.1.mlp.c_proj.bias")) ==
        std::vector<Box>{{{0}, {32}}});
  CHECK(boxes_of(slot_of(second, "transformer.ln_f.weight")) == std::vector<Box>{{{0}, {32}}});
  // 61 words: 31 and 30.
  CHECK(boxes_of(slot_of(second, "transformer.wte.weight")) ==
        std::vector<Box>{{{31, 0}, {30, 32}}});
}

TEST_CASE("key-value heads fewer than tensor ranks are held by several") {
  const ModelGraph model = test::parallel_llama(2);  // 2 key-value heads of 8
  const std::string keys = "model.layers.0.self_attn.k_proj.weight";
  for (const int rank : {0, 1, 2, 3}) {
    const ParameterLayout layout = layout_at(model, {rank, 4});
    const ParameterSlot& slot = slot_of(layout, keys);
    CHECK(boxes_of(slot) == std::vector<Box>{{{rank / 2 * 8, 0}, {8, 32}}});
    CHECK(slot.sums_gradient);
    CHECK(slot.parts[0].counts == (rank % 2 == 0));
  }
  const ParameterLayout two = layout_at(model, {1, 2});
  CHECK_FALSE(slot_of(two, keys).sums_gradient);
}

TEST_CASE("expert ranks hold experts, each of them whole") {
  const ModelGraph model = test::parallel_mixture(false);  // 4 experts of (24, 32)
  const ParameterLayout layout = layout_at(model, {1, 2}, {1, 2});
  const ParameterSlot& up = slot_of(layout, "model.layers.0.mlp.experts.up_proj.weight");
  CHECK(boxes_of(up) == std::vector<Box>{{{2, 12, 0}, {2, 12, 32}}});
  CHECK(up.of_experts);
  CHECK_FALSE(slot_of(layout, "model.layers.0.mlp.gate.weight").of_experts);
}

TEST_CASE("what ranks draw first is what one rank draws") {
  Workers workers(1);
  for (const test::NamedNetwork& network : test::tensor_parallel_networks()) {
    INFO(network.name);
    const ParameterLayout whole = parameter_layout(network.model);
    std::vector<float> all(whole.count);
    initialise(network.model, whole, 4, workers, all);
    for (const int rank : {0, 1, 2, 3}) {
      const ParameterLayout layout = layout_at(network.model, {rank, 4});
      std::vector<float> own(layout.count);
      initialise(network.model, layout, 4, workers, own);
      for (const ParameterSlot& slot : layout.slots)
        for (const SlotSlice& slice : slices_of(slot, slot.name)) {
          const ParameterSlot& from = slot_of(whole, slot.name);
          std::vector<float> expected(slice.count);
          copy_box(slice.tensor.box, whole_box(from.shape),
                   std::as_bytes(std::span(all).subspan(from.first, from.count)), slice.tensor.box,
                   std::as_writable_bytes(std::span(expected)), sizeof(float));
          CHECK(std::equal(expected.begin(), expected.end(),
                           own.begin() + static_cast<std::ptrdiff_t>(slice.first)));
        }
    }
  }
}

TEST_CASE("layouts that the runtime cannot compute are refused, all reasons at once") {
  Layout layout;
  CHECK(model_parallel_problems(test::parallel_bert(), layout).empty());
  layout.tensor = 8;
  CHECK(texts_of(model_parallel_problems(test::parallel_gpt2(), layout)) ==
        std::vector<std::string>{
            "layer 'transformer.h.0.attn' has 4 heads, which 8 tensor ranks do not divide",
            "layer 'transformer.h.1.attn' has 4 heads, which 8 tensor ranks do not divide"});
  layout.tensor = 1;
  layout.context = 2;
  CHECK(model_parallel_problems(test::parallel_llama(2), layout).empty());
  const auto bert = texts_of(model_parallel_problems(test::parallel_bert(), layout));
  REQUIRE(!bert.empty());
  CHECK(bert[0] ==
        "layer 'cls.predictions.select' (SelectTokens) takes all tokens together, which context "
        "ranks have a part of each");
  layout.context = 1;
  layout.data = layout.expert = 3;
  CHECK(texts_of(model_parallel_problems(test::parallel_mixture(false), layout)).front() ==
        "layer 'model.layers.0.mlp.experts.dispatch' (ExpertDispatch) has 4 experts, which 3 ranks "
        "do not share evenly");
}
