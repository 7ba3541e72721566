#include "sim/model/graph.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

LayerId layer_id(std::uint32_t i) { return LayerId{i}; }

/// 4 -> 6 -> 2 -> loss.
std::vector<Layer> small() {
  return {{.name = "input", .op = InputLayer{}},
          {.name = "fc1", .op = Linear{4, 6}, .inputs = {layer_id(0)}},
          {.name = "relu", .op = Activation{}, .inputs = {layer_id(1)}},
          {.name = "fc2", .op = Linear{6, 2}, .inputs = {layer_id(2)}},
          {.name = "loss", .op = SoftmaxCrossEntropy{2}, .inputs = {layer_id(3)}}};
}

Diagnostics errors_of(std::vector<Layer> layers, Shape input = {4}) {
  const auto graph =
      ModelGraph::make("test", SampleUnit::record, std::move(input), std::move(layers));
  return graph ? Diagnostics{} : graph.error();
}

/// The one error's text; a list where there are more, so that the comparison shows them.
std::string error_of(std::vector<Layer> layers, Shape input = {4}) {
  const Diagnostics errors = errors_of(std::move(layers), std::move(input));
  return errors.size() == 1 ? errors[0].what : format(errors);
}

}  // namespace

TEST_CASE("a right network has its shapes inferred and its ids set") {
  const auto graph = ModelGraph::make("test", SampleUnit::record, {4}, small());
  REQUIRE(graph.has_value());
  CHECK(graph->layers()[1].output == Shape{6});
  CHECK(graph->layers()[4].output == Shape{1});
  CHECK(graph->layers()[4].id == layer_id(4));
  CHECK(graph->counts().size() == 5);
  CHECK(graph->parameters() == 4 * 6 + 6 + 6 * 2 + 2);
  CHECK(graph->sequence_length() == 1);
}

TEST_CASE("an input that does not exist is named") {
  auto layers = small();
  layers[3].inputs = {layer_id(17)};
  CHECK(error_of(layers) == "layer 'fc2' (Linear): takes layer 17, which does not exist");
}

TEST_CASE("an input that stands later is named, with what to do") {
  auto layers = small();
  std::swap(layers[2], layers[3]);  // relu, at 3, takes fc1; fc2, at 2, takes relu
  layers[2].inputs = {layer_id(3)};
  layers[3].inputs = {layer_id(1)};
  layers[4].inputs = {layer_id(2)};
  const Diagnostics errors = errors_of(layers);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what == "layer 'fc2' (Linear): takes 'relu', which stands later");
  CHECK(errors[0].hint.find("move it before") != std::string::npos);
}

TEST_CASE("a cycle is told apart from a wrong order, and its layers are listed") {
  auto layers = small();
  layers[1].inputs = {layer_id(2)};  // fc1 <-> relu
  const Diagnostics errors = errors_of(layers);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what == "layer 'fc1' (Linear): takes 'relu', which depends on it");
  CHECK(errors[0].hint.find("fc1, relu") != std::string::npos);
}

TEST_CASE("a layer that takes itself is a cycle") {
  auto layers = small();
  layers[2].inputs = {layer_id(2)};
  CHECK(error_of(layers) == "layer 'relu' (Activation): takes 'relu', which depends on it");
}

TEST_CASE("a shape that does not fit is told with both shapes") {
  auto layers = small();
  layers[3].op = Linear{5, 2};
  CHECK(error_of(layers) ==
        "layer 'fc2' (Linear): is built for 5 input features, its input is (6)");

  layers = small();
  layers[2] = {.name = "sum", .op = Add{}, .inputs = {layer_id(0), layer_id(1)}};
  CHECK(error_of(layers) == "layer 'sum' (Add): its inputs differ in shape: (4) and (6)");
}

TEST_CASE("an image in front of a linear layer asks for a Flatten") {
  const Diagnostics errors = errors_of(small(), {4, 7, 7});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what == "layer 'fc1' (Linear): takes (4) or (T, 4), its input is (4, 7, 7)");
  CHECK(errors[0].hint.find("Flatten") != std::string::npos);
}

TEST_CASE("a kernel larger than its image is named with both sizes") {
  std::vector<Layer> layers{
      {.name = "input", .op = InputLayer{}},
      {.name = "conv",
       .op = Conv2d{.in = 3, .out = 8, .kernel_h = 5, .kernel_w = 5},
       .inputs = {layer_id(0)}},
      {.name = "pool", .op = GlobalAveragePool{}, .inputs = {layer_id(1)}},
      {.name = "loss", .op = SoftmaxCrossEntropy{8}, .inputs = {layer_id(2)}}};
  CHECK(error_of(layers, {3, 4, 4}) ==
        "layer 'conv' (Conv2d): a kernel of 5x5 does not fit into (3, 4, 4) with padding 0");
  CHECK(error_of(layers, {1, 8, 8}) ==
        "layer 'conv' (Conv2d): is built for 3 input channels, its input is (1, 8, 8)");
}

TEST_CASE("attention names the input whose shape is wrong") {
  std::vector<Layer> layers{
      {.name = "input", .op = InputLayer{}},
      {.name = "embedding", .op = Embedding{10, 8}, .inputs = {layer_id(0)}},
      {.name = "attention",
       .op = Attention{4, 2, 2},
       .inputs = {layer_id(1), layer_id(1), layer_id(1)}},
      {.name = "loss", .op = SoftmaxCrossEntropy{8}, .inputs = {layer_id(2)}}};
  CHECK(error_of(layers, {5}) ==
        "layer 'attention' (Attention): takes k of (5, 4), its input is (5, 8)");
  layers[2].inputs.pop_back();
  CHECK(error_of(layers, {5}) ==
        "layer 'attention' (Attention): takes three inputs (q, k, v) or one of all, it has 2");
}

TEST_CASE("a network without a loss is refused") {
  auto layers = small();
  layers.pop_back();
  CHECK(error_of(layers) == "the network has no loss");
  CHECK(error_of({}) == "the network has no layers");
}

TEST_CASE("a layer that the loss does not need is named, with all that serves it alone") {
  auto layers = small();
  layers.insert(layers.begin() + 4, {.name = "probe", .op = Linear{6, 3}, .inputs = {layer_id(2)}});
  layers.insert(layers.begin() + 5,
                {.name = "probe.relu", .op = Activation{}, .inputs = {layer_id(4)}});
  const Diagnostics errors = errors_of(layers);
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].what ==
        "layer 'probe' (Linear): is not used: no path leads from it to the loss 'loss'");
  CHECK(errors[1].what ==
        "layer 'probe.relu' (Activation): is not used: no path leads from it to the loss 'loss'");
}

TEST_CASE("two losses must be summed") {
  auto layers = small();
  layers.push_back({.name = "loss2", .op = SoftmaxCrossEntropy{2}, .inputs = {layer_id(3)}});
  CHECK(error_of(layers) == "layer 'loss' (SoftmaxCrossEntropy): is a second loss beside 'loss2'");
  layers.push_back({.name = "total", .op = Add{}, .inputs = {layer_id(4), layer_id(5)}});
  CHECK(errors_of(layers).empty());
}

TEST_CASE("names are given and unique") {
  auto layers = small();
  layers[2].name = "fc1";
  CHECK(error_of(layers) == "layer 'fc1' (Activation): the name is taken by an earlier layer");
  layers[2].name = "";
  CHECK(error_of(layers) == "layer 2 (Activation) has no name");
}

TEST_CASE("attributes that no layer can have are named") {
  const auto with = [](LayerOp op) {
    auto layers = small();
    layers[2].op = op;
    return error_of(layers);
  };
  CHECK(with(Linear{6, 0}) == "layer 'relu' (Linear): out is 0");
  CHECK(with(Linear{-6, 6}) == "layer 'relu' (Linear): in is -6");
  CHECK(with(Dropout{1.0}) == "layer 'relu' (Dropout): the dropout rate is 1");
  CHECK(with(Dropout{-0.5}) == "layer 'relu' (Dropout): the dropout rate is -0.5");
  CHECK(with(Conv2d{.in = 6, .out = 4, .groups = 4}) ==
        "layer 'relu' (Conv2d): 4 groups do not divide 6 input and 4 output channels");
  CHECK(with(Attention{6, 4, 1}) ==
        "layer 'relu' (Attention): 4 key-value heads do not divide 6 heads");
  CHECK(with(Pool2d{PoolKind::max, 2, 2, 2}) ==
        "layer 'relu' (Pool2d): padding 2 is more than half of kernel 2");
  CHECK(with(RotaryEmbedding{3}) ==
        "layer 'relu' (RotaryEmbedding): head_width is 3 and theta 10000");
  CHECK(with(Linear{std::int64_t{1} << 30, std::int64_t{1} << 30}) ==
        "layer 'relu' (Linear): has 1.15e+18 parameters");
}

TEST_CASE("an input of no or negative size is refused") {
  CHECK(error_of(small(), {}) == "the input of one sample is ()");
  CHECK(error_of(small(), {-4}) == "the input of one sample is (-4)");
}

TEST_CASE("tied weights must be those of an earlier layer, in the same shape") {
  std::vector<Layer> layers{
      {.name = "input", .op = InputLayer{}},
      {.name = "wte", .op = Embedding{10, 8}, .inputs = {layer_id(0)}},
      {.name = "head", .op = Linear{8, 10, false}, .inputs = {layer_id(1)}, .tied_to = layer_id(1)},
      {.name = "loss", .op = SoftmaxCrossEntropy{10}, .inputs = {layer_id(2)}}};
  const auto graph = ModelGraph::make("test", SampleUnit::sequence, {5}, layers);
  REQUIRE(graph.has_value());
  CHECK(graph->parameters() == 80);
  layers[2].tied_to = layer_id(3);
  CHECK(error_of(layers, {5}) ==
        "layer 'head' (Linear): is tied to layer 3, which is not an earlier layer");
  layers[2].tied_to = layer_id(0);
  CHECK(error_of(layers, {5}) ==
        "layer 'head' (Linear): cannot share the weights of 'input' (InputLayer)");
  layers[2].tied_to = layer_id(1);
  layers[1].op = Embedding{11, 8};
  CHECK(error_of(layers, {5}) ==
        "layer 'head' (Linear): has weights of (10, 8), those of 'wte' are (11, 8)");
}

TEST_CASE("all mistakes come at once, and none twice") {
  auto layers = small();
  layers[1].op = Linear{3, 6};  // the shapes behind it are unknown, and not complained about
  layers[2].name = "fc1";
  layers.insert(layers.begin() + 1,
                {.name = "unused", .op = Linear{4, 0}, .inputs = {layer_id(0)}});
  for (std::size_t i = 3; i < layers.size(); ++i)
    layers[i].inputs = {layer_id(static_cast<std::uint32_t>(i - 1))};
  std::vector<std::string> whats;
  for (const Diagnostic& d : errors_of(layers)) whats.push_back(d.what);
  CHECK(whats ==
        std::vector<std::string>{
            "layer 'fc1' (Activation): the name is taken by an earlier layer",
            "layer 'unused' (Linear): out is 0",
            "layer 'fc1' (Linear): is built for 3 input features, its input is (4)",
            "layer 'unused' (Linear): is not used: no path leads from it to the loss 'loss'"});
}

TEST_CASE("a transformer's dimensions are checked together") {
  TransformerDimensions d{
      .layers = 2, .hidden = 10, .heads = 3, .vocabulary = 0, .sequence_length = -1};
  auto errors = make_transformer("test", d);
  REQUIRE_FALSE(errors.has_value());
  REQUIRE(errors.error().size() == 2);
  CHECK(errors.error()[0].what == "vocabulary of a transformer is 0");
  CHECK(errors.error()[1].what == "sequence_length of a transformer is -1");
  d.vocabulary = 10;
  d.sequence_length = 8;
  d.positions = 4;
  d.kv_heads = 2;
  errors = make_transformer("test", d);
  REQUIRE_FALSE(errors.has_value());
  REQUIRE(errors.error().size() == 3);
  CHECK(errors.error()[0].what == "3 heads do not divide hidden 10");
  CHECK(errors.error()[1].what == "2 key-value heads do not divide 3 heads");
  CHECK(errors.error()[2].what == "a sequence of 8 tokens is longer than the 4 learned positions");
}

namespace {

/// Every kind of transformer that the dimensions can describe, small.
rc::Gen<TransformerDimensions> transformers() {
  return rc::gen::exec([] {
    TransformerDimensions d;
    d.layers = *rc::gen::inRange(1, 6);
    d.kv_heads = *rc::gen::inRange(1, 3);
    d.heads = d.kv_heads * *rc::gen::inRange(1, 3);
    d.head_width = 2 * *rc::gen::inRange(1, 5);
    d.hidden = *rc::gen::inRange(1, 40);
    d.feed_forward = *rc::gen::inRange(0, 50);
    d.vocabulary = *rc::gen::inRange(2, 100);
    d.sequence_length = *rc::gen::inRange(1, 64);
    d.positions = *rc::gen::element(0, 64);
    d.token_types = *rc::gen::element(0, 2);
    d.gated_feed_forward = *rc::gen::arbitrary<bool>();
    d.rms_norm = *rc::gen::arbitrary<bool>();
    d.bias = *rc::gen::arbitrary<bool>();
    d.tied_output = *rc::gen::arbitrary<bool>();
    d.causal = *rc::gen::arbitrary<bool>();
    d.post_norm = *rc::gen::arbitrary<bool>();
    d.dropout = *rc::gen::element(0.0, 0.1);
    return d;
  });
}

ModelGraph with_layers(TransformerDimensions d, std::int64_t layers) {
  d.layers = layers;
  return make_transformer("test", d).value();
}

}  // namespace

TEST_CASE("each block of a transformer costs the same") {
  CHECK(rc::check([] {
    const TransformerDimensions d = *transformers();
    const ModelGraph one = with_layers(d, 1), two = with_layers(d, 2),
                     n = with_layers(d, 2 + d.layers);
    const double k = static_cast<double>(d.layers);
    // Whole numbers below 2^53: exact.
    RC_ASSERT(n.forward_flops().v ==
              two.forward_flops().v + k * (two.forward_flops() - one.forward_flops()).v);
    RC_ASSERT(n.backward_flops().v ==
              two.backward_flops().v + k * (two.backward_flops() - one.backward_flops()).v);
    RC_ASSERT(n.parameters() ==
              two.parameters() + d.layers * (two.parameters() - one.parameters()));
    RC_ASSERT(n.saved_elements() ==
              two.saved_elements() + k * (two.saved_elements() - one.saved_elements()));
  }));
}

TEST_CASE("the parameters of a transformer do not depend on the sequence length") {
  CHECK(rc::check([] {
    TransformerDimensions d = *transformers();
    const std::int64_t parameters = make_transformer("test", d).value().parameters();
    d.sequence_length = *rc::gen::inRange(1, 64);
    RC_ASSERT(make_transformer("test", d).value().parameters() == parameters);
  }));
}

TEST_CASE("layers stand behind their inputs, and blocks in their order") {
  CHECK(rc::check([] {
    const TransformerDimensions d = *transformers();
    const ModelGraph graph = make_transformer("test", d).value();
    std::size_t position = 0;
    std::vector<std::string> groups;
    for (const Layer& layer : graph.layers()) {
      RC_ASSERT(index(layer.id) == position++);
      for (LayerId input : layer.inputs) RC_ASSERT(index(input) < index(layer.id));
      if (groups.empty() || groups.back() != layer.group) groups.push_back(layer.group);
    }
    // Each group is one run of layers: embeddings, blocks 0..n-1, head.
    RC_ASSERT(groups.size() == static_cast<std::size_t>(d.layers) + 2);
    for (std::int64_t i = 0; i < d.layers; ++i) {
      RC_ASSERT(groups[static_cast<std::size_t>(i) + 1].ends_with("." + std::to_string(i)));
    }
  }));
}

TEST_CASE("a chain of any length keeps its order, and any broken link is found") {
  CHECK(rc::check([] {
    const std::uint32_t n = *rc::gen::inRange(1u, 40u);
    std::vector<Layer> layers{{.name = "input", .op = InputLayer{}}};
    for (std::uint32_t i = 1; i <= n; ++i) {
      layers.push_back(
          {.name = "fc" + std::to_string(i), .op = Linear{4, 4}, .inputs = {layer_id(i - 1)}});
    }
    layers.push_back({.name = "loss", .op = SoftmaxCrossEntropy{4}, .inputs = {layer_id(n)}});
    const auto graph = ModelGraph::make("chain", SampleUnit::record, {4}, layers);
    RC_ASSERT(graph.has_value());
    for (std::uint32_t i = 0; i <= n + 1; ++i) RC_ASSERT(graph->layers()[i].name == layers[i].name);
    // Skip a layer: it alone becomes useless.
    const std::uint32_t skipped = *rc::gen::inRange(1u, n + 1);
    layers[skipped + 1].inputs = {layer_id(skipped - 1)};
    const Diagnostics errors = errors_of(layers);
    RC_ASSERT(errors.size() == 1u);
    RC_ASSERT(errors[0].what.find("'" + layers[skipped].name + "'") != std::string::npos);
  }));
}
