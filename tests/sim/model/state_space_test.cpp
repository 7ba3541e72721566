#include <catch2/catch.hpp>

#include "sim/model/counts.h"
#include "sim/model/graph.h"
#include "sim/model/sharding.h"

// Layers with a state of fixed size in place of attention's keys; numbers are counted by hand.
using namespace reckon;
using Catch::Matchers::Contains;

namespace {

/// A network of the layers between inputs of given widths and a loss over what comes out.
class Net {
 public:
  explicit Net(std::int64_t tokens) : tokens_(tokens) {}

  LayerId tokens(std::int64_t width) {
    const LayerId ids = add("ids", InputLayer{}, {});
    return add("tokens", Embedding{10, width}, {ids});
  }
  LayerId add(std::string name, LayerOp op, std::vector<LayerId> inputs) {
    const LayerId id{static_cast<std::uint32_t>(layers_.size())};
    layers_.push_back({.id = id,
                       .name = name + std::to_string(layers_.size()),
                       .op = std::move(op),
                       .inputs = std::move(inputs)});
    return id;
  }
  LayerId linear(std::int64_t in, std::int64_t out, LayerId x) {
    return add("linear", Linear{in, out, false}, {x});
  }
  Expected<ModelGraph> made(LayerId x, std::int64_t width) {
    add("loss", SoftmaxCrossEntropy{width}, {x});
    return ModelGraph::make("net", SampleUnit::sequence, {tokens_}, layers_);
  }

 private:
  std::int64_t tokens_;
  std::vector<Layer> layers_;
};

/// Count of the one layer of that kind.
template <class Op>
LayerCount count_of(const ModelGraph& model) {
  for (const Layer& layer : model.layers())
    if (std::holds_alternative<Op>(layer.op)) return model.counts()[index(layer.id)];
  FAIL("no such layer");
  return {};
}

ModelGraph state_space_net(const StateSpace& op, std::int64_t tokens) {
  Net net(tokens);
  const std::int64_t inner = op.heads * op.head_width, parts = op.groups * op.state;
  const LayerId x = net.tokens(8);
  const LayerId y = net.add("ssm", op,
                            {net.linear(8, inner, x), net.linear(8, op.heads, x),
                             net.linear(8, parts, x), net.linear(8, parts, x)});
  return net.made(net.linear(inner, 8, y), 8).value();
}

}  // namespace

TEST_CASE("a state-space layer is products of chunks: linear in the tokens") {
  const StateSpace op{.heads = 4, .head_width = 16, .state = 32, .groups = 2, .chunk = 64};
  const LayerCount c = count_of<StateSpace>(state_space_net(op, 256));
  // A token: 64 32 2 scores within the chunk, 64 64 of them with x, 32 64 in and 32 64 out.
  const double each = 64. * 32 * 2 + 64 * 64 + 2 * 32 * 64;
  CHECK(c.matrix.v == 2 * each * 256);
  CHECK(c.model.v == 3 * c.matrix.v);
  CHECK(c.forward.v == c.matrix.v + 3. * 64 * 4 * 256);
  CHECK(c.parameters == 3 * 4);  // decay, skip and the bias of the steps of each head
  CHECK(count_of<StateSpace>(state_space_net(op, 512)).matrix.v == 2 * c.matrix.v);
  // A chunk is no longer than the sequence.
  CHECK(count_of<StateSpace>(state_space_net(op, 32)).matrix.v ==
        2 * (32. * 32 * 2 + 32 * 64 + 2 * 32 * 64) * 32);
}

TEST_CASE("Mamba's scan is bound by memory, nine operations for each number of a state") {
  Net net(64);
  const LayerId x = net.tokens(8);
  const LayerId wide = net.linear(8, 32, x);
  const LayerId y =
      net.add("scan", SelectiveScan{32, 16},
              {wide, net.linear(8, 32, x), net.linear(8, 16, x), net.linear(8, 16, x)});
  const ModelGraph model = net.made(net.linear(32, 8, y), 8).value();
  const LayerCount c = count_of<SelectiveScan>(model);
  CHECK(c.forward.v == 9. * 64 * 32 * 16);
  CHECK(c.matrix.v == 0);
  CHECK(c.work == WorkKind::memory);
  CHECK(c.parameters == 32 * 16 + 32);
  CHECK(c.elements_in == 64 * (32 + 32 + 16 + 16));
}

TEST_CASE("the gated delta rule counts its chunk's products") {
  Net net(128);
  const DeltaRule op{.heads = 4, .key_heads = 2, .key_width = 16, .value_width = 8, .chunk = 32};
  const LayerId x = net.tokens(8);
  const LayerId y = net.add("rule", op,
                            {net.linear(8, 32, x), net.linear(8, 32, x), net.linear(8, 32, x),
                             net.linear(8, 4, x), net.linear(8, 4, x)});
  const ModelGraph model = net.made(net.linear(32, 8, y), 8).value();
  const double each = 6. * 32 * 16 + 4. * 32 * 8 + 2. / 3 * 32 * 32 + 6. * 16 * 8;
  CHECK(count_of<DeltaRule>(model).matrix.v == Approx(each * 4 * 128));
  CHECK(count_of<DeltaRule>(model).parameters == 2 * 4);
}

TEST_CASE("a convolution along the tokens has a kernel a channel, or mixes channels") {
  Net net(64);
  LayerId x = net.tokens(16);
  x = net.add("depthwise", SequenceConv{16, 16, 4, 1, 16, true}, {x});
  x = net.add("strided", SequenceConv{16, 32, 3, 2, 1, true}, {x});
  const ModelGraph model = net.made(x, 32).value();
  const LayerCount& depthwise = model.counts()[2];
  CHECK(depthwise.parameters == 16 * 4 + 16);
  CHECK(depthwise.depthwise);
  CHECK(depthwise.matrix.v == 2. * 4 * 16 * 64);
  const LayerCount& strided = model.counts()[3];
  CHECK(strided.parameters == 32 * 16 * 3 + 32);
  CHECK(model.layers()[3].output == Shape{32, 32});
  CHECK(strided.matrix.v == 2. * 3 * 16 * 32 * 32);
}

TEST_CASE("new layers are simulated only, and say what they take") {
  CHECK(only_simulated(StateSpace{}));
  CHECK(only_simulated(SelectiveScan{}));
  CHECK(only_simulated(DeltaRule{}));
  CHECK(only_simulated(SequenceConv{}));
  Attention sinks;
  sinks.sinks = true;
  CHECK(only_simulated(sinks));
  CHECK_FALSE(only_simulated(Attention{}));
  CHECK(only_simulated(LayerNorm{8, false, false}));
  Net net(64);
  const LayerId x = net.tokens(8);
  const LayerId y = net.add("ssm", StateSpace{.heads = 2, .head_width = 4, .state = 4},
                            {x, net.linear(8, 3, x), net.linear(8, 4, x), net.linear(8, 4, x)});
  const auto wrong = net.made(y, 8);
  REQUIRE_FALSE(wrong.has_value());
  CHECK_THAT(wrong.error()[0].what, Contains("takes time steps of (64, 2), its input is (64, 3)"));
}

TEST_CASE("tensor parallelism cuts a state-space layer by its heads") {
  const ModelGraph model =
      state_space_net({.heads = 4, .head_width = 16, .state = 32, .groups = 2}, 64);
  const auto cuts = shard_layers(model);
  for (const Layer& layer : model.layers()) {
    if (!std::holds_alternative<StateSpace>(layer.op)) continue;
    CHECK(cuts[index(layer.id)].cut == TensorCut::parts);
    CHECK(cuts[index(layer.inputs[0])].cut == TensorCut::column);  // x
    CHECK(cuts[index(layer.inputs[2])].cut == TensorCut::whole);   // B, which its heads share
  }
}

TEST_CASE("a learned bias of distances is added to the scores, sinks are a number a head") {
  Net net(16);
  const LayerId x = net.tokens(8);
  const LayerId bias = net.add("bias", RelativeBias{2, 32}, {x, x});
  Attention op{2, 2, 4, false};
  op.sinks = true;
  const LayerId y = net.add("attention", op, {x, x, x, bias});
  const ModelGraph model = net.made(y, 8).value();
  const LayerCount c = count_of<Attention>(model);
  CHECK(c.parameters == 2);
  const double scores = 2. * 16 * 16;
  CHECK(c.matrix.v == 2 * scores * 8);
  CHECK(c.forward.v == c.matrix.v + (3 + 1) * scores);
  CHECK(count_of<RelativeBias>(model).parameters == 64);
}
