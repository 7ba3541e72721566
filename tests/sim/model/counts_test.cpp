#include <catch2/catch.hpp>

#include "sim/model/graph.h"
#include "sim/model/zoo/zoo.h"

// Each counting rule of sim/model/counts.h on a layer small enough to count by hand.
using namespace reckon;

namespace {

LayerId id(std::uint32_t i) { return LayerId{i}; }

/// input -> `op` -> ... -> loss: the counts of the layers, `op`'s at index 1.
std::vector<LayerCount> counts_of(SampleUnit unit, Shape input, std::vector<Layer> layers) {
  const Expected<ModelGraph> graph =
      ModelGraph::make("test", unit, std::move(input), std::move(layers));
  if (!graph) FAIL(format(graph.error()));
  return {graph->counts().begin(), graph->counts().end()};
}

/// Image in, `op` behind a first convolution of the same shape (so that its input has a gradient),
/// pooled and classified.
LayerCount image_layer(Shape image, LayerOp op, std::int64_t channels_out) {
  const Conv2d first{.in = image[0], .out = image[0]};
  return counts_of(SampleUnit::image, image,
                   {{.name = "input", .op = InputLayer{}},
                    {.name = "first", .op = first, .inputs = {id(0)}},
                    {.name = "tested", .op = op, .inputs = {id(1)}},
                    {.name = "pool", .op = GlobalAveragePool{}, .inputs = {id(2)}},
                    {.name = "fc", .op = Linear{channels_out, 2}, .inputs = {id(3)}},
                    {.name = "loss", .op = SoftmaxCrossEntropy{2}, .inputs = {id(4)}}})[2];
}

/// Token ids (T) -> embedding (T, D) -> `op` (T, D) -> loss over D classes.
std::vector<LayerCount> token_layers(std::int64_t tokens, std::int64_t width, LayerOp op) {
  return counts_of(SampleUnit::sequence, {tokens},
                   {{.name = "input", .op = InputLayer{}},
                    {.name = "embedding", .op = Embedding{10, width}, .inputs = {id(0)}},
                    {.name = "tested", .op = op, .inputs = {id(1)}},
                    {.name = "loss", .op = SoftmaxCrossEntropy{width}, .inputs = {id(2)}}});
}
LayerCount token_layer(std::int64_t tokens, std::int64_t width, LayerOp op) {
  return token_layers(tokens, width, op)[2];
}

}  // namespace

TEST_CASE("a linear layer costs 2 in out a row, and twice that backward") {
  // 5 rows of 3 -> 3: 2*3*3*5 = 90; 9 weights + 3 biases.
  const LayerCount c = token_layer(5, 3, Linear{3, 3});
  CHECK(c.forward.v == 90);
  CHECK(c.backward.v == 180);
  CHECK(c.matrix.v == 90);
  CHECK(c.parameters == 12);
  CHECK(c.weights_read == 12);
  CHECK(c.elements_in == 15);
  CHECK(c.elements_out == 15);
  CHECK(c.work == WorkKind::matmul);
}

TEST_CASE("the first layer with weights has no input gradient") {
  const std::vector<LayerCount> c =
      counts_of(SampleUnit::record, {4},
                {{.name = "input", .op = InputLayer{}},
                 {.name = "relu", .op = Activation{}, .inputs = {id(0)}},
                 {.name = "fc1", .op = Linear{4, 6}, .inputs = {id(1)}},
                 {.name = "fc2", .op = Linear{6, 2}, .inputs = {id(2)}},
                 {.name = "loss", .op = SoftmaxCrossEntropy{2}, .inputs = {id(3)}}});
  CHECK(c[1].forward.v == 4);
  CHECK(c[1].backward.v == 0);  // nothing before it learns
  CHECK(c[2].forward.v == 2 * 4 * 6);
  CHECK(c[2].backward.v == 2 * 4 * 6);        // weights only
  CHECK(c[3].backward.v == 2 * (2 * 6 * 2));  // weights and input
}

TEST_CASE("a convolution costs 2 k k (in/groups) an output element") {
  // (4, 6, 6) -> 3x3, stride 2, padding 1 -> (8, 3, 3): 2*9*4*72 = 5184; 9*4*8 weights + 8 biases.
  Conv2d conv{
      .in = 4, .out = 8, .kernel_h = 3, .kernel_w = 3, .stride = 2, .padding = 1, .bias = true};
  LayerCount c = image_layer({4, 6, 6}, conv, 8);
  CHECK(c.forward.v == 5184);
  CHECK(c.backward.v == 2 * 5184);
  CHECK(c.parameters == 296);
  CHECK(c.elements_in == 144);
  CHECK(c.elements_out == 72);
  CHECK(c.work == WorkKind::convolution);
  CHECK_FALSE(c.depthwise);

  // Two groups: each output sees half of the inputs.
  conv.groups = 2;
  c = image_layer({4, 6, 6}, conv, 8);
  CHECK(c.forward.v == 5184 / 2);
  CHECK(c.parameters == 9 * 2 * 8 + 8);
  CHECK_FALSE(c.depthwise);

  conv.groups = 4;
  c = image_layer({4, 6, 6}, conv, 8);
  CHECK(c.forward.v == 5184 / 4);
  CHECK(c.depthwise);
}

TEST_CASE("a kernel that is not square counts both sides") {
  // (2, 5, 5), 1x3 -> (3, 5, 3): 2*3*2*45 = 540.
  const LayerCount c =
      image_layer({2, 5, 5}, Conv2d{.in = 2, .out = 3, .kernel_h = 1, .kernel_w = 3}, 3);
  CHECK(c.forward.v == 540);
  CHECK(c.parameters == 18);
}

TEST_CASE("batch norm costs 5 an element and reads its input twice") {
  const LayerCount c = image_layer({4, 3, 3}, BatchNorm{4}, 4);
  CHECK(c.forward.v == 5 * 36);
  CHECK(c.backward.v == 5 * 36);
  CHECK(c.matrix.v == 0);
  CHECK(c.parameters == 8);
  CHECK(c.elements_in == 72);
  CHECK(c.elements_out == 36);
  CHECK(c.work == WorkKind::memory);
}

TEST_CASE("pooling costs its window an output, and max pooling keeps an index of 8 bytes") {
  // (2, 6, 6) -> 3x3, stride 2, padding 1 -> (2, 3, 3) = 18.
  const LayerCount max = image_layer({2, 6, 6}, Pool2d{PoolKind::max, 3, 2, 1}, 2);
  CHECK(max.forward.v == 9 * 18);
  CHECK(max.saved_fixed.v == 8 * 18);
  const LayerCount average = image_layer({2, 6, 6}, Pool2d{PoolKind::average, 3, 2, 1}, 2);
  CHECK(average.forward.v == 9 * 18);
  CHECK(average.saved_fixed.v == 0);
}

TEST_CASE("norms of tokens cost 5 or 4 an element and keep fp32 statistics a token") {
  const LayerCount layer = token_layer(5, 3, LayerNorm{3});
  CHECK(layer.forward.v == 5 * 15);
  CHECK(layer.parameters == 6);
  CHECK(layer.saved_fixed.v == 5 * 2 * 4);
  CHECK(token_layer(5, 3, LayerNorm{3, false}).parameters == 3);
  const LayerCount rms = token_layer(5, 3, RmsNorm{3});
  CHECK(rms.forward.v == 4 * 15);
  CHECK(rms.parameters == 3);
  CHECK(rms.saved_fixed.v == 5 * 4);
}

TEST_CASE("attention counts the full T x T, causal or not, and never keeps it") {
  // T = 8, 2 heads of 4, fused q k v: scores 2*8*8*4*2 = 1024, values the same; softmax 3*8*8*2 =
  // 384.
  const auto attention = [](bool causal) {
    return counts_of(SampleUnit::sequence, {8},
                     {{.name = "input", .op = InputLayer{}},
                      {.name = "embedding", .op = Embedding{10, 24}, .inputs = {id(0)}},
                      {.name = "attention", .op = Attention{2, 2, 4, causal}, .inputs = {id(1)}},
                      {.name = "loss", .op = SoftmaxCrossEntropy{8}, .inputs = {id(2)}}});
  };
  for (bool causal : {true, false}) {
    const std::vector<LayerCount> c = attention(causal);
    CHECK(c[2].matrix.v == 2048);
    CHECK(c[2].forward.v == 2048 + 384);
    CHECK(c[2].backward.v == 2 * 2048 + 384);
    CHECK(c[2].elements_in == 8 * 24);
    CHECK(c[2].elements_out == 8 * 8);
    CHECK(c[2].saved_elements == 8 * 8);     // its output
    CHECK(c[2].saved_fixed.v == 8 * 2 * 4);  // a logarithm a token and head
    CHECK(c[1].saved_elements == 8 * 24);    // q, k and v
    CHECK(c[2].work == WorkKind::attention);
  }
}

TEST_CASE("grouped key and value heads cost as many products as heads, but less to read") {
  // q (8, 4*2), k and v (8, 1*2): each of the 4 heads still forms 8 x 8 scores.
  const std::vector<LayerCount> c =
      counts_of(SampleUnit::sequence, {8},
                {{.name = "input", .op = InputLayer{}},
                 {.name = "embedding", .op = Embedding{10, 6}, .inputs = {id(0)}},
                 {.name = "q", .op = Linear{6, 8, false}, .inputs = {id(1)}},
                 {.name = "k", .op = Linear{6, 2, false}, .inputs = {id(1)}},
                 {.name = "v", .op = Linear{6, 2, false}, .inputs = {id(1)}},
                 {.name = "attention", .op = Attention{4, 1, 2}, .inputs = {id(2), id(3), id(4)}},
                 {.name = "loss", .op = SoftmaxCrossEntropy{8}, .inputs = {id(5)}}});
  CHECK(c[5].matrix.v == 2 * (2 * 8 * 8 * 2 * 4));
  CHECK(c[5].elements_in == 8 * (8 + 2 + 2));
}

TEST_CASE("look-ups multiply nothing, their weights are read by the row") {
  const LayerCount c = token_layers(5, 3, Dropout{})[1];  // the embedding, 10 rows
  CHECK(c.forward.v == 0);
  CHECK(c.backward.v == 15);  // additions into the table's gradient
  CHECK(c.parameters == 30);
  CHECK(c.weights_read == 0);
  CHECK(c.elements_in == 15);
  CHECK(c.elements_out == 15);
}

TEST_CASE("selecting tokens moves the selected ones, and scatters their gradients") {
  const LayerCount c = token_layer(5, 3, SelectTokens{2});
  CHECK(c.forward.v == 0);
  CHECK(c.backward.v == 6);
  CHECK(c.elements_in == 6);
  CHECK(c.elements_out == 6);
  CHECK(c.parameters == 0);
}

TEST_CASE("element-wise layers cost one an element, rotation three") {
  CHECK(token_layer(5, 3, Activation{ActivationKind::gelu}).forward.v == 15);
  CHECK(token_layer(5, 3, PositionEmbedding{5, 3}).forward.v == 15);
  CHECK(token_layer(5, 3, PositionEmbedding{7, 3}).parameters == 21);
  CHECK(token_layer(5, 4, RotaryEmbedding{2}).forward.v == 3 * 20);
}

TEST_CASE("dropout keeps a byte an element, and nothing where it drops nothing") {
  const LayerCount some = token_layer(5, 3, Dropout{0.1});
  CHECK(some.saved_fixed.v == 15);
  CHECK(some.forward.v == 15);
  const LayerCount none = token_layer(5, 3, Dropout{0});
  CHECK(none.saved_fixed.v == 0);
  CHECK(none.elements_in == 0);
}

TEST_CASE("the loss costs three a logit, and writes and keeps its log-softmax in fp32") {
  const LayerCount c = token_layers(5, 3, Dropout{})[3];
  CHECK(c.forward.v == 3 * 15);
  CHECK(c.elements_out == 15);
  CHECK(c.saved_fixed.v == 4 * 15);
}

TEST_CASE("a sum of three costs two additions an element, a gate keeps both of its inputs") {
  const std::vector<LayerCount> c =
      counts_of(SampleUnit::sequence, {5},
                {{.name = "input", .op = InputLayer{}},
                 {.name = "a", .op = Embedding{10, 3}, .inputs = {id(0)}},
                 {.name = "b", .op = Embedding{10, 3}, .inputs = {id(0)}},
                 {.name = "gate", .op = Multiply{}, .inputs = {id(1), id(2)}},
                 {.name = "sum", .op = Add{}, .inputs = {id(1), id(2), id(3)}},
                 {.name = "loss", .op = SoftmaxCrossEntropy{3}, .inputs = {id(4)}}});
  CHECK(c[3].forward.v == 15);
  CHECK(c[4].forward.v == 30);
  CHECK(c[1].saved_elements == 15);
  CHECK(c[2].saved_elements == 15);
  CHECK(c[3].saved_elements == 0);  // a sum keeps nothing
  CHECK(c[0].saved_elements == 5);  // token ids, for the tables' gradients; once for the two
}

TEST_CASE("relu keeps its output, gelu its input, and a tensor kept twice counts once") {
  const auto saved = [](ActivationKind kind) {
    const std::vector<LayerCount> c =
        counts_of(SampleUnit::record, {4},
                  {{.name = "input", .op = InputLayer{}},
                   {.name = "fc1", .op = Linear{4, 6}, .inputs = {id(0)}},
                   {.name = "act", .op = Activation{kind}, .inputs = {id(1)}},
                   {.name = "drop",
                    .op = Dropout{0},
                    .inputs = {id(2)}},  // a view: its tensor is that of "act"
                   {.name = "fc2", .op = Linear{6, 2}, .inputs = {id(3)}},
                   {.name = "loss", .op = SoftmaxCrossEntropy{2}, .inputs = {id(4)}}});
    return std::vector<double>{c[0].saved_elements, c[1].saved_elements, c[2].saved_elements,
                               c[3].saved_elements, c[4].saved_elements};
  };
  // fc2 keeps the activation's output in both cases; relu's own need of it adds nothing.
  CHECK(saved(ActivationKind::relu) == std::vector<double>{4, 0, 6, 0, 0});
  CHECK(saved(ActivationKind::tanh) == std::vector<double>{4, 0, 6, 0, 0});
  CHECK(saved(ActivationKind::gelu) == std::vector<double>{4, 6, 6, 0, 0});
  CHECK(saved(ActivationKind::silu) == std::vector<double>{4, 6, 6, 0, 0});
}

TEST_CASE("a transformer block keeps 34 s h bytes in 16 bit, as Megatron counts it") {
  // [Korthikanti 2022, arXiv:2205.05198, section 4.1]: s b h (34 + 5 a s / h); the second part is
  // the T x T matrices that a fused attention does not keep. Beside it: fp32 statistics of two
  // norms (2 * 8 B a token) and of attention (4 B a token and head).
  TransformerDimensions d{.layers = 1,
                          .hidden = 64,
                          .heads = 4,
                          .vocabulary = 100,
                          .sequence_length = 32,
                          .positions = 32,
                          .dropout = 0.1};
  const auto bytes = [&](std::int64_t layers) {
    d.layers = layers;
    return make_transformer("test", d)->saved_bytes(Bytes{2}).v;
  };
  const double s = 32, h = 64, a = 4;
  CHECK(bytes(2) - bytes(1) == Approx(34 * s * h + 16 * s + 4 * s * a).epsilon(1e-12));
}

TEST_CASE("the backward pass of ResNet-50 lacks one gradient, that of the image") {
  const ModelGraph net = *zoo_model("resnet50_v1_5");
  Flops forward{}, backward{};
  for (const LayerCount& c : net.counts()) {
    if (c.work == WorkKind::memory) continue;
    forward += c.forward;
    backward += c.backward;
  }
  // conv1: 2 * 7*7*3 * 64*112*112
  CHECK(2 * forward.v - backward.v == 2.0 * 147 * 64 * 112 * 112);
  CHECK(net.model_flops().v == 3 * forward.v);
}
