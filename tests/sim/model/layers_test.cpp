#include "sim/model/layers.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

const std::vector<LayerText> kSmall{{{"input", "1x28x28"}},
                                    {{"conv2d", "8"}, {"kernel", "3"}, {"padding", "1"}},
                                    {{"activation", "relu"}, {"name", "stem"}},
                                    {{"conv2d", "8"}, {"kernel", "3"}, {"padding", "1"}},
                                    {{"add", "stem, conv2d_3"}},
                                    {{"global_average_pool", "true"}},
                                    {{"linear", "10"}},
                                    {{"softmax_cross_entropy", "true"}}};

std::vector<LayerMistake> mistakes_of(const std::vector<LayerText>& layers) {
  const auto net = make_layers("mine", layers);
  REQUIRE_FALSE(net.has_value());
  return net.error();
}

/// kSmall with one layer changed.
std::vector<LayerMistake> with(std::size_t i, LayerText layer) {
  std::vector<LayerText> layers = kSmall;
  layers[i] = std::move(layer);
  return mistakes_of(layers);
}

}  // namespace

TEST_CASE("a network is read from a list of layers") {
  const auto net = make_layers("mine", kSmall);
  REQUIRE(net.has_value());
  CHECK(net->name() == "mine");
  CHECK(net->sample_unit() == SampleUnit::image);
  // 9*8+8 + 9*8*8+8 + 8*10+10
  CHECK(net->parameters() == 80 + 584 + 90);
  CHECK(net->layers()[3].name == "conv2d_3");
  CHECK(net->layers()[4].inputs == std::vector<LayerId>{LayerId{2}, LayerId{3}});
}

TEST_CASE("a perceptron in text is the zoo's") {
  const std::vector<LayerText> text{{{"input", "1x28x28"}}, {{"flatten", "true"}},
                                    {{"linear", "512"}},    {{"activation", "relu"}},
                                    {{"linear", "512"}},    {{"activation", "relu"}},
                                    {{"linear", "10"}},     {{"softmax_cross_entropy", "true"}}};
  const auto mine = make_layers("mine", text);
  REQUIRE(mine.has_value());
  const ModelGraph zoo = zoo_model("mlp_mnist").value();
  CHECK(mine->parameters() == zoo.parameters());
  CHECK(mine->forward_flops().v == zoo.forward_flops().v);
  CHECK(mine->saved_elements() == zoo.saved_elements());
}

TEST_CASE("attention, mixtures of experts and tied outputs can be written") {
  const std::vector<LayerText> text{
      {{"input", "16"}},
      {{"embedding", "32"}, {"rows", "100"}, {"name", "table"}},
      {{"rms_norm", "true"}, {"name", "norm"}},
      {{"linear", "64"}, {"name", "qkv"}},
      {{"attention", "4"}, {"kv_heads", "2"}, {"name", "attention"}},
      {{"linear", "32"}, {"name", "out"}},
      {{"add", "table, out"}, {"name", "x"}},
      {{"linear", "8"}, {"bias", "false"}, {"name", "scores"}},
      {{"expert_dispatch", "8"}, {"top_k", "2"}, {"from", "x, scores"}, {"name", "rows"}},
      {{"expert_linear", "32"},
       {"experts", "8"},
       {"top_k", "2"},
       {"from", "rows, scores"},
       {"name", "expert"}},
      {{"expert_combine", "8"}, {"top_k", "2"}, {"from", "expert, scores"}},
      {{"linear", "100"}, {"bias", "false"}, {"tied_to", "table"}},
      {{"softmax_cross_entropy", "true"}}};
  const auto net = make_layers("mine", text);
  if (!net) FAIL(net.error()[0].what);
  CHECK(net->sample_unit() == SampleUnit::sequence);
  CHECK(net->sequence_length() == 16);
  CHECK(std::get<Attention>(net->layers()[4].op).head_width == 8);  // 64 / (4 + 2 + 2)
  CHECK(net->parameters() == 3200 + 32 + (32 * 64 + 64) + (32 * 32 + 32) + 256 + 8 * 32 * 32);
  CHECK(net->active_parameters() == net->parameters() - 6 * 32 * 32);
}

TEST_CASE("mistakes in layers name the layer and the key") {
  auto m = with(1, {{"convd2", "8"}});
  REQUIRE(m.size() == 1);
  CHECK(m[0].layer == 1);
  CHECK(m[0].what == "no kind of layer among its keys; did you mean 'conv2d'?");

  m = with(6, {{"linear", "ten"}});
  REQUIRE(m.size() == 1);
  CHECK(m[0].layer == 6);
  CHECK(m[0].key == "linear");
  CHECK(m[0].what == "'ten' is not a whole number");

  m = with(6, {{"linear", "10"}, {"bais", "false"}});
  REQUIRE(m.size() == 1);
  CHECK(m[0].key == "bais");
  CHECK(m[0].what == "unknown key 'bais' of linear; did you mean 'bias'?");

  m = with(4, {{"add", "stem, conv2d_9"}});
  REQUIRE_FALSE(m.empty());
  CHECK(m[0].key == "add");
  CHECK(m[0].what == "no earlier layer is called 'conv2d_9'; did you mean 'conv2d_1'?");

  m = with(6, {{"linear", "10"}, {"in", "9"}});
  REQUIRE(m.size() == 1);
  CHECK(m[0].what == "layer 'linear_6' (Linear): is built for 9 input features, its input is (8)");

  m = with(6, {{"linear", "10"}, {"conv2d", "9"}});
  CHECK(m[0].what == "a layer is linear and conv2d at once");
  m = with(5, {{"global_average_pool", "3"}});
  CHECK(m[0].what == "global_average_pool has no value, not '3'");
  m = with(2, {{"activation", "rleu"}, {"name", "stem"}});
  CHECK(m[0].what == "unknown activation 'rleu'; did you mean 'relu'?");
  m = with(0, {{"input", "0x28x28"}});
  CHECK(m[0].what == "'0x28x28' is no shape of a sample");
  m = with(3, {{"conv2d", "8"}, {"name", "stem"}});
  CHECK(m[0].what == "the name 'stem' is taken by an earlier layer");
  CHECK(mistakes_of({{{"linear", "10"}}})[0].what == "the first layer is no input");
  CHECK(mistakes_of({})[0].what == "the network has no layers");

  // Two mistakes, both told.
  std::vector<LayerText> layers = kSmall;
  layers[1]["kernel"] = "x";
  layers[6] = {{"linear", "-"}};
  CHECK(mistakes_of(layers).size() == 2);

  // The whole network's: no loss.
  layers = kSmall;
  layers.pop_back();
  m = mistakes_of(layers);
  REQUIRE(m.size() == 1);
  CHECK_FALSE(m[0].layer.has_value());
  CHECK(m[0].what == "the network has no loss");
}

TEST_CASE("the example of each kind is written by its kind") {
  for (const LayerKindText& kind : layer_kinds()) {
    CAPTURE(kind.kind);
    CHECK(kind.example.starts_with("{" + std::string(kind.kind) + ":"));
  }
}

TEST_CASE("no text of layers brings the reader down") {
  const auto word = [] {
    return *rc::gen::elementOf(std::vector<std::string>{"linear",         "conv2d",
                                                        "input",          "add",
                                                        "attention",      "from",
                                                        "kernel",         "padding",
                                                        "rows",           "experts",
                                                        "top_k",          "name",
                                                        "tied_to",        "heads",
                                                        "flatten",        "concat",
                                                        "scale",          "pool2d",
                                                        "multiply",       "unit",
                                                        "embedding",      "rms_norm",
                                                        "expert_linear",  "embedding_bag",
                                                        "pairwise_dots",  "select_features",
                                                        "expert_dispatch"});
  };
  const auto value = [] {
    return *rc::gen::elementOf(std::vector<std::string>{
        "1", "0", "-3", "8", "3x224x224", "16", "true", "a", "a, a", ",", "", "x", "1e400", "max",
        "relu", "9223372036854775807", "1000000000x1000000000x1000000000", "linear_1", "nan"});
  };
  CHECK(rc::check([&] {
    std::vector<LayerText> layers{{{"input", value()}, {"name", "a"}}};
    const int count = *rc::gen::inRange(0, 8);
    for (int i = 0; i < count; ++i) {
      LayerText layer;
      const int keys = *rc::gen::inRange(0, 4);
      for (int k = 0; k < keys; ++k) layer[word()] = value();
      layers.push_back(std::move(layer));
    }
    const auto net = make_layers("mine", layers);
    RC_ASSERT(net.has_value() || !net.error().empty());
  }));
}
