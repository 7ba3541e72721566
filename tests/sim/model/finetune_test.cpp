#include "sim/model/finetune.h"

#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

ModelGraph lora(std::string_view name, const LoraAdapters& adapters,
                std::optional<std::int64_t> tokens = {}) {
  Expected<ModelGraph> net = with_lora(zoo_model(name, tokens).value(), adapters);
  if (!net) FAIL(format(net.error()));
  return std::move(*net);
}

}  // namespace

TEST_CASE("LoRA trains the published numbers of parameters") {
  // peft's print_trainable_parameters(): Llama-2-7B, r = 8, q_proj and v_proj: "trainable params:
  // 4,194,304 || all params: 6,742,609,920"; by hand 32 layers * 2 * 8 * (4096 + 4096).
  const ModelGraph llama2 = lora("llama2_7b", {.rank = 8});
  CHECK(llama2.trainable_parameters() == 4'194'304);
  CHECK(llama2.parameters() == 6'742'609'920);
  // GPT-2 small, r = 8, c_attn: 12 * 8 * (768 + 2304) = 294,912.
  CHECK(lora("gpt2_small", {.rank = 8}).trainable_parameters() == 294'912);
  // unsloth's notebooks print 41,943,040 for Llama-3-8B, r = 16, all linear layers: 32 * 16 * (q
  // 8192, o 8192, k and v 5120 each, three of 4096 + 14336).
  const ModelGraph llama3 = lora("llama3_8b", {.rank = 16, .targets = LoraTargets::all_linear});
  CHECK(llama3.trainable_parameters() == 41'943'040);
  CHECK(llama3.trainable_parameters() == 32 * 16 * (2 * 8192 + 2 * 5120 + 3 * (4096 + 14336)));
}

TEST_CASE("a frozen token costs 4 N FLOPs in place of 6 N") {
  // One token of Llama-2-7B: N = 32 (4 D D + 3 D F) + D V; attention over one token is nothing. The
  // first layer's q, k and v have no input gradient and the head's... all others have: 4 N less 2 *
  // 3 D D, and the adapters' 6 * 4,194,304.
  const double D = 4096, F = 11008, V = 32000;
  const double N = 32 * (4 * D * D + 3 * D * F) + D * V;
  const ModelGraph full = zoo_model("llama2_7b", 1).value();
  const ModelGraph adapted = lora("llama2_7b", {.rank = 8}, 1);
  const double attention = 12 * 32 * D;
  CHECK(full.model_flops().v == Approx(6 * N + attention).epsilon(1e-12));
  CHECK(adapted.model_flops().v ==
        Approx(4 * N - 2 * 3 * D * D + 6 * 4'194'304.0 + attention).epsilon(1e-12));
}

TEST_CASE("frozen matrices keep no inputs, and what lies before the first adapter keeps nothing") {
  const ModelGraph full = zoo_model("llama2_7b", 128).value();
  const ModelGraph adapted = lora("llama2_7b", {.rank = 8}, 128);
  CHECK(adapted.saved_elements() < full.saved_elements());
  for (const Layer& layer : adapted.layers()) {
    const LayerCount& count = adapted.counts()[index(layer.id)];
    if (layer.name == "model.embed_tokens" || layer.name == "model.layers.0.self_attn.k_proj") {
      CAPTURE(layer.name);
      CHECK_FALSE(count.has_backward);
      CHECK(count.backward.v == 0);
    }
    // The product of the gated feed-forward part is the input of the frozen down projection alone.
    if (layer.name == "model.layers.3.mlp.up_proj.multiply") CHECK(count.saved_elements == 0);
    // The second norm's output goes into frozen matrices alone, the first's into adapters as well.
    if (layer.name == "model.layers.3.post_attention_layernorm") CHECK(count.saved_elements == 0);
    if (layer.name == "model.layers.3.input_layernorm") CHECK(count.saved_elements == 128 * 4096);
  }
}

TEST_CASE("adapting changes no shape, and the forward pass by the adapters alone") {
  const ModelGraph full = zoo_model("mixtral_8x7b", 64).value();
  const ModelGraph adapted =
      lora("mixtral_8x7b", {.rank = 4, .targets = LoraTargets::all_linear}, 64);
  CHECK(adapted.parameters() - full.parameters() == adapted.trainable_parameters());
  CHECK(adapted.trainable_parameters() > 0);
  CHECK(adapted.layers().back().output == full.layers().back().output);
  // Adapters of all 8 experts, of which a token meets 2: 32 * 4 * 3 * (4096 + 14336) each.
  CHECK(adapted.trainable_parameters() ==
        32 * 4 * (2 * 8192 + 2 * 5120 + (4096 + 8) + 8 * 3 * (4096 + 14336)));
  CHECK(adapted.active_parameters() - full.active_parameters() ==
        32 * 4 * (2 * 8192 + 2 * 5120 + (4096 + 8) + 2 * 3 * (4096 + 14336)));
}

TEST_CASE("what cannot be adapted is said") {
  const Expected<ModelGraph> image = with_lora(zoo_model("resnet50").value(), {.rank = 8});
  REQUIRE_FALSE(image.has_value());
  CHECK(image.error()[0].what == "network resnet50 has no layer that LoRA could adapt");
  const Expected<ModelGraph> rank = with_lora(zoo_model("gpt2_small").value(), {.rank = 0});
  REQUIRE_FALSE(rank.has_value());
  CHECK(rank.error()[0].what == "the rank of the adapters is 0");
  const Expected<ModelGraph> wide = with_lora(zoo_model("gpt2_small").value(), {.rank = 5000});
  REQUIRE_FALSE(wide.has_value());
  CHECK(wide.error()[0].what ==
        "a rank of 5000 is more than the 2304 features of the widest matrix that it adapts");
}

TEST_CASE("a linear probe trains the classifier and needs no backward pass below it") {
  const ModelGraph full = zoo_model("resnet50_v1_5").value();
  const ModelGraph probe = with_last_layers(full, 1).value();
  CHECK(probe.parameters() == full.parameters());
  CHECK(probe.trainable_parameters() == 2048 * 1000 + 1000);
  int backward = 0;
  for (const LayerCount& c : probe.counts()) backward += c.has_backward ? 1 : 0;
  CHECK(backward == 2);  // the classifier and the loss
  CHECK(probe.saved_elements() < 0.01 * full.saved_elements());
  // Forward once, and the gradient of the classifier's weights. MFU counts two products of a
  // trained layer's backward pass, as 6 N does.
  Flops forward{};
  double products = 0;
  for (const LayerCount& c : probe.counts()) {
    forward += c.matrix;
    if (c.matrix.v > 0) products += c.backward.v;
  }
  CHECK(products == Approx(2 * 2048 * 1000.0).epsilon(1e-3));
  CHECK(probe.model_flops().v == Approx(forward.v + 2 * 2 * 2048 * 1000.0).epsilon(1e-9));
}

TEST_CASE("all layers as the last ones is full training, and more than all is an error") {
  const ModelGraph full = zoo_model("alexnet").value();
  const ModelGraph same = with_last_layers(full, 8).value();  // 5 convolutions, 3 products
  CHECK(same.trainable_parameters() == full.trainable_parameters());
  CHECK(same.model_flops().v == Approx(full.model_flops().v));
  CHECK_FALSE(with_last_layers(full, 9));
  CHECK_FALSE(with_last_layers(full, 0));
}

TEST_CASE("QLoRA keeps the products in four bits and adapts all of them") {
  const ModelGraph net =
      with_adapters(zoo_model("llama3_8b", 16).value(), AdapterKind::qlora, 16).value();
  CHECK(net.trainable_parameters() == 41'943'040);  // as LoRA on all linear layers, above
  std::int64_t four_bit = 0;
  for (const LayerCount& c : net.counts()) four_bit += c.four_bit ? c.parameters : 0;
  // 32 blocks of q and o 2 4096 4096, k and v 2 4096 1024, three of 4096 14336; not the output.
  CHECK(four_bit == 32LL * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14'336));
}

TEST_CASE("DoRA learns a length for each output of a target, and reads the weights for it") {
  const ModelGraph base = zoo_model("llama2_7b", 16).value();
  const ModelGraph dora = with_adapters(base, AdapterKind::dora, 8).value();
  // 32 layers, q and v of 4096 outputs each.
  CHECK(dora.trainable_parameters() == 4'194'304 + 32 * 2 * 4096);
  std::int64_t read = 0;
  for (const Layer& layer : dora.layers())
    if (std::holds_alternative<WeightNorms>(layer.op))
      read += dora.counts()[index(layer.id)].weights_read;
  CHECK(read == 64LL * 4096 * 4096);
  CHECK(dora.forward_flops() > with_lora(base, {.rank = 8})->forward_flops());
}

TEST_CASE("adapters stand behind both parts of a block, and norms are trained with them") {
  const ModelGraph base = zoo_model("bert_base").value();
  const ModelGraph net = with_adapters(base, AdapterKind::adapters, 64).value();
  // [Houlsby 2019, section 2.1]: 2 m d + d + m each, two a block; norms 2 d: two a block, and those
  // of the embeddings and of the head.
  const std::int64_t adapter = 2 * 64 * 768 + 768 + 64;
  CHECK(net.trainable_parameters() == 24 * adapter + 26 * 2 * 768);
  const auto wrong = with_adapters(zoo_model("alexnet").value(), AdapterKind::adapters, 8);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(format(wrong.error()).find("no product that goes into a residual sum") !=
        std::string::npos);
}
