#include "sim/model/sharding.h"

#include <catch2/catch.hpp>

#include "sim/model/finetune.h"
#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

LayerSharding of(const ModelGraph& model, const std::string& name) {
  const auto sharding = shard_layers(model);
  for (const Layer& layer : model.layers())
    if (layer.name == name) return sharding[index(layer.id)];
  FAIL("no layer " << name);
  return {};
}

}  // namespace

TEST_CASE("a transformer is cut as Megatron-LM cuts it") {
  // [Shoeybi et al. 2019, Fig. 3]: qkv and the first product of the MLP by columns, the second ones
  // by rows, vocabulary of the embedding and of the output.
  const ModelGraph gpt = zoo_model("gpt2_small").value();
  using enum TensorCut;
  CHECK(of(gpt, "transformer.wte").cut == row);
  CHECK(of(gpt, "transformer.h.3.ln_1").cut == whole);
  CHECK(of(gpt, "transformer.h.3.attn.c_attn").cut == column);
  CHECK(of(gpt, "transformer.h.3.attn.c_attn").gathers);
  CHECK(of(gpt, "transformer.h.3.attn").cut == parts);
  CHECK(of(gpt, "transformer.h.3.attn.c_proj").cut == row);
  CHECK(of(gpt, "transformer.h.3.attn.c_proj.add").cut == whole);
  CHECK(of(gpt, "transformer.h.3.mlp.c_fc").cut == column);
  CHECK(of(gpt, "transformer.h.3.mlp.act").cut == parts);
  CHECK(of(gpt, "transformer.h.3.mlp.c_proj").cut == row);
  CHECK(of(gpt, "lm_head").cut == column);
  CHECK(of(gpt, "loss").cut == parts);
}

TEST_CASE("query, key and value gather their common input once, as gate and up do") {
  const ModelGraph llama = zoo_model("llama3_8b").value();
  const std::string block = "model.layers.7.";
  CHECK(of(llama, block + "self_attn.q_proj").gathers);
  CHECK_FALSE(of(llama, block + "self_attn.k_proj").gathers);
  CHECK_FALSE(of(llama, block + "self_attn.v_proj").gathers);
  CHECK(of(llama, block + "mlp.gate_proj").gathers);
  CHECK(of(llama, block + "mlp.up_proj").cut == TensorCut::column);
  CHECK_FALSE(of(llama, block + "mlp.up_proj").gathers);
  CHECK(of(llama, block + "mlp.up_proj.multiply").cut == TensorCut::parts);
  const ShardedWidths widths = sharded_widths(llama);
  CHECK(widths.heads == std::vector<std::int64_t>{32});
  CHECK(widths.kv_heads == std::vector<std::int64_t>{8});
  CHECK(widths.features == std::vector<std::int64_t>{14336});
}

TEST_CASE("experts are cut like a feed-forward layer, their router is not") {
  const ModelGraph moe = zoo_model("mixtral_8x7b").value();
  for (const Layer& layer : moe.layers()) {
    if (std::holds_alternative<ExpertDispatch>(layer.op) ||
        std::holds_alternative<ExpertCombine>(layer.op))
      CHECK(of(moe, layer.name).cut == TensorCut::whole);
    if (const auto* e = std::get_if<ExpertLinear>(&layer.op))
      CHECK(of(moe, layer.name).cut == (e->in == 4096 ? TensorCut::column : TensorCut::row));
    if (layer.name.ends_with("mlp.gate")) CHECK(of(moe, layer.name).cut == TensorCut::whole);
  }
}

TEST_CASE("LoRA's second matrix is cut with the projection that it stands beside") {
  const ModelGraph lora = with_lora(zoo_model("llama3_8b").value(), {.rank = 16}).value();
  for (const Layer& layer : lora.layers()) {
    if (layer.name == "model.layers.0.self_attn.q_proj")
      CHECK(of(lora, layer.name).cut == TensorCut::column);
    if (layer.name.find("layers.0.self_attn.q_proj.lora_A") != std::string::npos)
      CHECK(of(lora, layer.name).cut == TensorCut::whole);
    if (layer.name.find("layers.0.self_attn.q_proj.lora_B") != std::string::npos)
      CHECK(of(lora, layer.name).cut == TensorCut::column);
  }
}

TEST_CASE("BERT's transform before the vocabulary stays whole, a network without products too") {
  const ModelGraph bert = zoo_model("bert_large").value();
  CHECK(of(bert, "cls.predictions.transform.dense").cut == TensorCut::whole);
  CHECK(of(bert, "bert.encoder.layer.0.attention.self").cut == TensorCut::parts);
  const ModelGraph resnet = zoo_model("resnet50").value();
  CHECK(sharded_widths(resnet).heads.empty());
}
