#include "executor/train/gradient_cases.h"

#include "executor/train/networks.h"
#include "sim/model/finetune.h"
#include "sim/model/shapes.h"
#include "sim/model/zoo/zoo.h"

namespace reckon::test {

namespace {

/// An image (channels, 6, 5) through a convolution that is trained, then what `body` puts, then a
/// classifier: the layers of `body` have gradients to take and to give.
ModelGraph image_network(std::int64_t channels,
                         const std::function<LayerId(LayerList&, LayerId)>& body) {
  LayerList net(16);
  LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
  x = net.add("stem", Conv2d{.in = 2, .out = channels, .bias = true}, x);
  x = body(net, x);
  x = net.add("pool", GlobalAveragePool{}, x);
  net.add("loss", MeanSquaredError{}, x);
  return network(SampleUnit::image, {2, 6, 5}, net);
}

/// Tokens (7) embedded in `width` features.
ModelGraph token_network(std::int64_t width,
                         const std::function<LayerId(LayerList&, LayerId)>& body) {
  LayerList net(32);
  LayerId x = net.add("ids", InputLayer{}, std::vector<LayerId>{});
  x = net.add("embed", Embedding{11, width}, x);
  x = body(net, x);
  net.add("loss", MeanSquaredError{}, x);
  return network(SampleUnit::sequence, {7}, net);
}

ModelGraph image_op(std::int64_t channels, LayerOp op) {
  return image_network(channels, [&](LayerList& net, LayerId x) { return net.add("op", op, x); });
}
ModelGraph token_op(std::int64_t width, LayerOp op) {
  return token_network(width, [&](LayerList& net, LayerId x) { return net.add("op", op, x); });
}
/// A record (n) through a linear layer.
ModelGraph record_network(std::int64_t width,
                          const std::function<LayerId(LayerList&, LayerId)>& body, LayerOp loss) {
  LayerList net(16);
  LayerId x = net.add("record", InputLayer{}, std::vector<LayerId>{});
  x = net.add("first", Linear{4, width}, x);
  x = body(net, x);
  net.add("loss", loss, x);
  return network(SampleUnit::record, {4}, net);
}

ModelGraph attention_network(std::int64_t heads, std::int64_t kv_heads, const Attention& op,
                             bool fused) {
  return token_network(6, [&](LayerList& net, LayerId x) {
    const std::int64_t q = heads * op.head_width, kv = kv_heads * op.head_width;
    if (fused) {
      x = net.add("qkv", Linear{6, q + 2 * kv}, x);
      return net.add("attention", op, x);
    }
    const LayerId a = net.add("q", Linear{6, q}, x), b = net.add("k", Linear{6, kv}, x),
                  c = net.add("v", Linear{6, kv}, x);
    return net.add("attention", op, {a, b, c});
  });
}

ModelGraph expert_network(bool normalize) {
  return token_network(4, [&](LayerList& net, LayerId x) {
    const LayerId scores = net.add("scores", Linear{4, 5, false}, x);
    LayerId y = net.add("dispatch", ExpertDispatch{5, 2}, {x, scores});
    y = net.add("up", ExpertLinear{5, 2, 4, 6, true}, {y, scores});
    y = net.add("act", Activation{ActivationKind::silu}, y);
    y = net.add("down", ExpertLinear{5, 2, 6, 4, false}, {y, scores});
    return net.add("combine", ExpertCombine{5, 2, normalize}, {y, scores});
  });
}

/// Dense fields and one field of ids, their vectors and all dot products: DLRM in small.
ModelGraph recommendation_network() {
  LayerList net(16);
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  LayerId dense = net.add("dense", SelectFeatures{0, 3}, record);
  dense = net.add("bottom", Linear{3, 4}, dense);
  const LayerId ids = net.add("ids", SelectFeatures{3, 2}, record);
  const LayerId bag = net.add("bag", EmbeddingBag{9, 4, 2}, ids);
  const LayerId dots = net.add("dots", PairwiseDots{2, 4}, {dense, bag});
  LayerId x = net.add("beside", Concat{}, {dense, dots});
  x = net.add("selected", SelectFeatures{1, 4}, x);
  x = net.add("top", Linear{4, 1}, x);
  net.add("loss", SigmoidCrossEntropy{}, x);
  return network(SampleUnit::record, {5}, net);
}

ModelGraph gate_network(const Shape& gate) {
  if (gate.size() == 1)
    return image_network(3, [](LayerList& net, LayerId x) {
      LayerId g = net.add("squeeze", GlobalAveragePool{}, x);
      g = net.add("open", Activation{ActivationKind::sigmoid}, g);
      return net.add("gate", Multiply{}, {x, g});
    });
  return token_network(4, [&](LayerList& net, LayerId x) {
    const LayerId g = net.add("open", Linear{4, gate[1]}, x);
    return net.add("gate", Multiply{}, {x, g});
  });
}

template <class... Ts>
std::vector<LayerId> ids_of(Ts... ids) {
  return {ids...};
}

std::vector<GradientCase> simple_cases() {
  const auto same = [](LayerList&, LayerId x) { return x; };
  return {
      {"linear", [=] { return record_network(3, same, MeanSquaredError{}); }},
      {"linear without bias",
       [] {
         return token_op(4, Linear{4, 3, false});
       }},
      {"softmax cross entropy", [=] { return record_network(5, same, SoftmaxCrossEntropy{5}); }},
      {"softmax cross entropy of tokens",
       [] {
         LayerList net(4);
         LayerId x = net.add("ids", InputLayer{}, std::vector<LayerId>{});
         x = net.add("embed", Embedding{11, 37}, x);
         net.add("loss", SoftmaxCrossEntropy{37}, x);
         return network(SampleUnit::sequence, {7}, net);
       }},
      {"sigmoid cross entropy", [=] { return record_network(3, same, SigmoidCrossEntropy{}); }},
      {"batch norm", [] { return image_op(3, BatchNorm{3}); }},
      {"batch norm of a record",
       [] {
         return record_network(
             3, [](LayerList& net, LayerId x) { return net.add("bn", BatchNorm{3}, x); },
             MeanSquaredError{});
       }},
      {"layer norm", [] { return token_op(6, LayerNorm{6}); }},
      {"layer norm without bias",
       [] {
         return token_op(6, LayerNorm{6, false});
       }},
      {"RMS norm", [] { return token_op(6, RmsNorm{6}); }},
      {"RMS norm of heads",
       [] {
         return token_op(6, RmsNorm{3, 2});
       }},
      {"relu", [] { return token_op(4, Activation{ActivationKind::relu}); }},
      {"gelu", [] { return token_op(4, Activation{ActivationKind::gelu}); }},
      {"silu", [] { return token_op(4, Activation{ActivationKind::silu}); }},
      {"tanh", [] { return token_op(4, Activation{ActivationKind::tanh}); }},
      {"sigmoid", [] { return token_op(4, Activation{ActivationKind::sigmoid}); }},
      {"dropout", [] { return token_op(4, Dropout{0.3}); }},
      {"dropout of whole samples",
       [] {
         return image_op(3, Dropout{0.4, true});
       }},
      {"dropout of rate 0", [] { return token_op(4, Dropout{0}); }},
      {"scale", [] { return token_op(4, ScaleBy{-1.5}); }},
      {"max pool",
       [] {
         return image_op(3, Pool2d{PoolKind::max, 3, 2, 1});
       }},
      {"average pool",
       [] {
         return image_op(3, Pool2d{PoolKind::average, 2, 1, 1});
       }},
      {"position embedding",
       [] {
         return token_op(4, PositionEmbedding{9, 4});
       }},
      {"sinusoidal positions", [] { return token_op(4, SinusoidalPositions{4}); }},
      {"rotary embedding",
       [] {
         return token_op(8, RotaryEmbedding{4, 100});
       }},
      {"rotary embedding of a part",
       [] {
         return token_op(12, RotaryEmbedding{6, 100, 4});
       }},
      {"class token", [] { return token_op(4, ClassToken{4}); }},
      {"first tokens", [] { return token_op(4, SelectTokens{2}); }},
      {"masked tokens",
       [] {
         return token_op(4, SelectTokens{3, true});
       }},
      {"recommendation", recommendation_network},
      {"experts", [] { return expert_network(true); }},
      {"experts weighed among all", [] { return expert_network(false); }},
      {"gate by element",
       [] {
         return gate_network({7, 4});
       }},
      {"gate by token",
       [] {
         return gate_network({7, 1});
       }},
      {"gate by channel", [] { return gate_network({3}); }},
  };
}

std::vector<GradientCase> convolution_cases() {
  const auto conv = [](Conv2d c) { return [=] { return image_op(4, c); }; };
  return {
      {"convolution 1x1", conv({.in = 4, .out = 3})},
      {"convolution 1x1 of stride 2", conv({.in = 4, .out = 3, .stride = 2})},
      {"convolution 3x3",
       conv({.in = 4, .out = 3, .kernel_h = 3, .kernel_w = 3, .padding = 1, .bias = true})},
      {"convolution 3x3 of stride 2",
       conv({.in = 4, .out = 5, .kernel_h = 3, .kernel_w = 3, .stride = 2, .padding = 1})},
      {"convolution 3x2 with other padding of columns",
       conv({.in = 4, .out = 2, .kernel_h = 3, .kernel_w = 2, .padding = 0, .padding_w = 2})},
      {"grouped convolution",
       conv({.in = 4, .out = 6, .kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 2})},
      {"depthwise convolution",
       conv({.in = 4, .out = 4, .kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 4})},
  };
}

std::vector<GradientCase> attention_cases() {
  const auto attention = [](Attention op, bool fused) {
    return [=] { return attention_network(op.heads, op.kv_heads, op, fused); };
  };
  return {
      {"causal attention of one input",
       attention({.heads = 2, .kv_heads = 2, .head_width = 3}, true)},
      {"attention of three inputs",
       attention({.heads = 2, .kv_heads = 2, .head_width = 3, .causal = false}, false)},
      {"grouped-query attention", attention({.heads = 4, .kv_heads = 2, .head_width = 2}, false)},
      {"multi-query attention of one input",
       attention({.heads = 3, .kv_heads = 1, .head_width = 2}, true)},
      {"attention with a window",
       attention({.heads = 2, .kv_heads = 2, .head_width = 3, .window = 3}, true)},
      {"attention with distances",
       attention({.heads = 3, .kv_heads = 3, .head_width = 2, .alibi = true}, true)},
      {"attention with dropout",
       attention({.heads = 2, .kv_heads = 2, .head_width = 3, .dropout = 0.3}, true)},
      {"attention of a tensor to itself",
       [] {
         return token_network(6, [](LayerList& net, LayerId x) {
           const Attention op{.heads = 2, .kv_heads = 2, .head_width = 3};
           return net.add("attention", op, {x, x, x});
         });
       }},
      {"attention over other tokens",
       [] {
         return token_network(4, [](LayerList& net, LayerId x) {
           const LayerId few = net.add("few", SelectTokens{3}, x);
           const Attention op{.heads = 2, .kv_heads = 2, .head_width = 2, .causal = false};
           return net.add("attention", op, {few, x, x});
         });
       }},
  };
}

std::vector<GradientCase> composed_cases() {
  return {
      {"residual sum of a tensor with itself and another",
       [] {
         return image_network(3, [](LayerList& net, LayerId x) {
           const LayerId y = net.add("conv", Conv2d{.in = 3, .out = 3}, x);
           return net.add("add", Add{}, ids_of(x, y, x));
         });
       }},
      {"concatenated images",
       [] {
         return image_network(3, [](LayerList& net, LayerId x) {
           const LayerId y = net.add("conv", Conv2d{.in = 3, .out = 2}, x);
           return net.add("beside", Concat{}, ids_of(y, x));
         });
       }},
      {"flattened image",
       [] {
         LayerList net(8);
         LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
         x = net.add("conv", Conv2d{.in = 2, .out = 3}, x);
         x = net.add("flat", Flatten{}, x);
         x = net.add("fc", Linear{36, 4}, x);
         net.add("loss", SoftmaxCrossEntropy{4}, x);
         return network(SampleUnit::image, {2, 4, 3}, net);
       }},
      {"points of an image as tokens",
       [] {
         LayerList net(8);
         LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
         x = net.add("patches",
                     Conv2d{.in = 2, .out = 4, .kernel_h = 2, .kernel_w = 2, .stride = 2}, x);
         x = net.add("tokens", ImageTokens{}, x);
         x = net.add("class", ClassToken{4}, x);
         x = net.add("norm", LayerNorm{4}, x);
         net.add("loss", MeanSquaredError{}, x);
         return network(SampleUnit::image, {2, 4, 6}, net);
       }},
      {"two losses and a factor",
       [] {
         LayerList net(8);
         LayerId x = net.add("record", InputLayer{}, std::vector<LayerId>{});
         x = net.add("fc", Linear{3, 4}, x);
         const LayerId a = net.add("class", SoftmaxCrossEntropy{4}, x);
         LayerId b = net.add("square", MeanSquaredError{}, x);
         b = net.add("less", ScaleBy{0.25}, b);
         net.add("loss", Add{}, ids_of(a, b));
         return network(SampleUnit::record, {3}, net);
       }},
      {"GPT-2 in small, with a tied matrix",
       [] {
         return *make_transformer("gpt2", {.layers = 2,
                                           .hidden = 8,
                                           .heads = 2,
                                           .vocabulary = 13,
                                           .sequence_length = 5,
                                           .positions = 6,
                                           .dropout = 0.1});
       }},
      {"Llama in small",
       [] {
         return *make_transformer("llama", {.layers = 2,
                                            .hidden = 8,
                                            .heads = 4,
                                            .kv_heads = 2,
                                            .feed_forward = 12,
                                            .vocabulary = 13,
                                            .sequence_length = 5,
                                            .gated_feed_forward = true,
                                            .rms_norm = true,
                                            .bias = false,
                                            .tied_output = false,
                                            .activation = ActivationKind::silu});
       }},
      {"BERT in small",
       [] {
         return *make_transformer("bert", {.layers = 1,
                                           .hidden = 8,
                                           .heads = 2,
                                           .vocabulary = 13,
                                           .sequence_length = 8,
                                           .positions = 8,
                                           .token_types = 2,
                                           .causal = false,
                                           .post_norm = true});
       }},
      {"LoRA beside frozen weights",
       [] {
         const ModelGraph base = *make_transformer("gpt2", {.layers = 1,
                                                            .hidden = 8,
                                                            .heads = 2,
                                                            .vocabulary = 13,
                                                            .sequence_length = 5,
                                                            .positions = 6});
         return *with_lora(base, {.rank = 2, .targets = LoraTargets::all_linear});
       }},
  };
}

}  // namespace

std::vector<GradientCase> all_gradient_cases() {
  std::vector<GradientCase> all = simple_cases();
  for (auto&& more : {convolution_cases(), attention_cases(), composed_cases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace reckon::test
