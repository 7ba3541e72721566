#pragma once
#include <string>
#include <vector>

#include "executor/train/networks.h"
#include "sim/model/finetune.h"

// Small networks of the families that several ranks hold together.
namespace reckon::test {

/// Sizes that two and four ranks share; a vocabulary that they do not.
inline TransformerDimensions small_dimensions(int layers = 2) {
  return {.layers = layers,
          .hidden = 32,
          .heads = 4,
          .vocabulary = 61,
          .sequence_length = 16,
          .positions = 16,
          .dropout = 0.1};
}
inline ModelGraph made(const TransformerDimensions& d) {
  auto model = make_transformer("test", d);
  if (!model) throw std::runtime_error(format(model.error()));
  return std::move(*model);
}

/// Tied output, learned positions, one matrix of queries, keys and values.
inline ModelGraph parallel_gpt2(std::int64_t kv_heads = 4, int layers = 2) {
  TransformerDimensions d = small_dimensions(layers);
  d.kv_heads = kv_heads;
  return made(d);
}

/// Rotary positions, gated feed-forward, RMS norms, key-value heads that query heads share.
inline ModelGraph parallel_llama(std::int64_t kv_heads, int layers = 2) {
  TransformerDimensions d = small_dimensions(layers);
  d.kv_heads = kv_heads;
  d.feed_forward = 48;
  d.positions = 0;
  d.gated_feed_forward = d.rms_norm = true;
  d.bias = d.tied_output = false;
  d.activation = ActivationKind::silu;
  d.dropout = 0;
  return made(d);
}
/// With norms of each head's queries and keys, whose weights all heads share, and biases (Qwen3).
inline ModelGraph parallel_qwen() {
  TransformerDimensions d = small_dimensions();
  d.kv_heads = 4;
  d.positions = 0;
  d.gated_feed_forward = d.rms_norm = d.qk_norm = true;
  return made(d);
}
inline ModelGraph parallel_mixture(bool gate, int layers = 2) {
  TransformerDimensions d = small_dimensions(layers);
  d.positions = 0;
  d.gated_feed_forward = d.rms_norm = true;
  d.dropout = 0;
  d.experts = 4;
  d.experts_per_token = 2;
  d.expert_feed_forward = 24;
  d.shared_feed_forward = gate ? 16 : 0;
  d.shared_expert_gate = gate;
  return made(d);
}
inline ModelGraph parallel_bert(int layers = 2) {
  TransformerDimensions d = small_dimensions(layers);
  d.token_types = 2;
  d.causal = false;
  d.post_norm = true;
  return made(d);
}
/// A feed-forward part that drops features of its inner width, which tensor ranks share out: with
/// a width of 30 two ranks have halves that no block of four random numbers divides.
inline ModelGraph parallel_inner_dropout(std::int64_t inner = 30) {
  LayerList net(32);
  LayerId x = net.add("ids", InputLayer{}, std::vector<LayerId>{});
  x = net.add("embed", Embedding{61, 32}, x);
  for (const std::string name : {"block0", "block1"}) {
    net.set_group(name);
    LayerId y = net.add(name + ".norm", LayerNorm{32}, x);
    y = net.add(name + ".up", Linear{32, inner}, y);
    y = net.add(name + ".gelu", Activation{ActivationKind::gelu}, y);
    y = net.add(name + ".dropout_inside", Dropout{0.3}, y);
    y = net.add(name + ".down", Linear{inner, 32}, y);
    x = net.add(name + ".add", Add{}, {x, y});
  }
  net.set_group("head");
  x = net.add("norm", LayerNorm{32}, x);
  x = net.add("logits", Linear{32, 61}, x);
  net.add("loss", SoftmaxCrossEntropy{61}, x);
  return network(SampleUnit::sequence, {16}, net);
}
/// Distances in place of positions, attention and feed-forward side by side.
inline ModelGraph parallel_mpt() {
  TransformerDimensions d = small_dimensions();
  d.positions = 0;
  d.alibi = d.parallel_residual = true;
  return made(d);
}
inline ModelGraph parallel_lora(const ModelGraph& base, LoraTargets targets) {
  auto model = with_lora(base, {.rank = 4, .targets = targets});
  if (!model) throw std::runtime_error(format(model.error()));
  return std::move(*model);
}

struct NamedNetwork {
  std::string name;
  ModelGraph model;
};
inline std::vector<NamedNetwork> tensor_parallel_networks() {
  return {{"gpt2", parallel_gpt2()},
          {"gpt2 with shared key-value heads", parallel_gpt2(2)},
          {"llama", parallel_llama(4)},
          {"llama with shared key-value heads", parallel_llama(2)},
          {"qwen", parallel_qwen()},
          {"mixture of experts", parallel_mixture(false)},
          {"mixture with a shared expert and its gate", parallel_mixture(true)},
          {"bert", parallel_bert()},
          {"mpt", parallel_mpt()},
          {"gpt2 with adapters", parallel_lora(parallel_gpt2(), LoraTargets::query_value)},
          {"llama with adapters", parallel_lora(parallel_llama(2), LoraTargets::all_linear)}};
}

}  // namespace reckon::test
