#include "sim/model/zoo/transformer_dimensions.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <variant>

#include "sim/model/finetune.h"
#include "support/zoo.h"

using namespace reckon;
using test::zoo;

namespace {

// Decoders with an encoder before them, and Transformer-XL.
constexpr std::array kOthers{"transformer", "bart"};

}  // namespace

TEST_CASE("a decoder's dimensions are read off its layers") {
  const auto llama = transformer_dimensions_of(zoo("llama3_8b"));
  REQUIRE(llama);
  // meta-llama/Meta-Llama-3-8B, config.json
  CHECK(llama->layers == 32);
  CHECK(llama->hidden == 4096);
  CHECK(llama->heads == 32);
  CHECK(llama->kv_heads == 8);
  CHECK(llama->head_width == 128);
  CHECK(llama->feed_forward == 14336);
  CHECK(llama->vocabulary == 128256);
  CHECK(llama->rotary_theta == 500000);
  CHECK(llama->rms_norm);
  CHECK(llama->gated_feed_forward);
  CHECK_FALSE(llama->bias);
  CHECK_FALSE(llama->tied_output);
}

TEST_CASE("the dimensions of every plain decoder of the zoo are found") {
  // GPT-2's and GPT-3's learned positions, NeoX's parallel blocks, MPT's slopes, Qwen's biases and
  // norms, Mixtral's experts.
  int decoders = 0;
  for (const std::string& name : zoo_names()) {
    const ModelGraph model = zoo(name);
    const auto is_attention = [](const Layer& l) {
      const auto* op = std::get_if<Attention>(&l.op);
      return op != nullptr && op->causal;
    };
    const bool latent = std::ranges::any_of(
        model.layers(), [](const Layer& l) { return std::holds_alternative<ConcatToHeads>(l.op); });
    if (!std::ranges::any_of(model.layers(), is_attention) || latent) continue;
    const bool other = std::ranges::any_of(kOthers, [&](auto o) { return name.starts_with(o); });
    const auto d = transformer_dimensions_of(model);
    INFO(name);
    CHECK(d.has_value() == !other);
    if (!d) continue;
    ++decoders;
    const auto again = make_transformer(name, *d);
    REQUIRE(again);
    CHECK(again->parameters() == model.parameters());
    CHECK(again->model_flops() == model.model_flops());
  }
  CHECK(decoders > 10);
}

TEST_CASE("what is no plain decoder, or is trained in parts, has no dimensions") {
  CHECK_FALSE(transformer_dimensions_of(zoo("resnet50")));
  CHECK_FALSE(transformer_dimensions_of(zoo("bert_base")));
  CHECK_FALSE(transformer_dimensions_of(zoo("transformer_big")));
  const auto adapted = with_lora(zoo("gpt2_small"), LoraAdapters{.rank = 4});
  REQUIRE(adapted);
  CHECK_FALSE(transformer_dimensions_of(*adapted));
}
