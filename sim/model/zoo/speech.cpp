#include "sim/model/zoo/speech.h"

#include <fmt/format.h>

#include "sim/model/zoo/recurrent.h"

namespace reckon {
namespace {

struct Lstm {
  std::int64_t in = 0, hidden = 0;
  int layers = 1;
  double dropout = 0;  // behind each layer (common/rnn.py)
};

LayerId lstm(LayerList& net, const std::string& name, const Lstm& op, LayerId x) {
  for (int i = 0; i < op.layers; ++i) {
    const std::string layer = fmt::format("{}.{}", name, i);
    const std::int64_t in = i == 0 ? op.in : op.hidden;
    x = recurrent_layer(net, layer, {in, op.hidden}, x);
    x = net.add(layer + ".dropout", Dropout{op.dropout}, x);
  }
  return x;
}

}  // namespace

Expected<ModelGraph> make_rnnt(std::string name, const TransducerShape& shape) {
  constexpr std::int64_t kFeatures = 240, kEncoder = 1024, kPrediction = 512, kJoint = 512;
  constexpr std::int64_t kClasses = 1024, kStacked = 2;
  LayerList net(64);
  net.set_group("encoder");
  LayerId f = net.add("input", InputLayer{}, std::vector<LayerId>{});
  f = lstm(net, "encoder.pre_rnn", {kFeatures, kEncoder, 2, 0.1}, f);
  f = net.add("encoder.stack_time", RegroupTokens{.join = kStacked}, f);
  f = lstm(net, "encoder.post_rnn", {kStacked * kEncoder, kEncoder, 3, 0.1}, f);
  f = net.add("joint_enc", Linear{kEncoder, kJoint}, f);

  net.set_group("prediction");
  // One more for the start of the text.
  LayerId g = net.add("text", ExtraInput{shape.symbols + 1}, std::vector<LayerId>{});
  g = net.add("prediction.embed", Embedding{kClasses - 1, kPrediction}, g);
  g = lstm(net, "prediction.dec_rnn", {kPrediction, kPrediction, 2, 0.3}, g);
  g = net.add("joint_pred", Linear{kPrediction, kJoint}, g);

  net.set_group("joint");
  LayerId x = net.add("joint", PairSums{}, {f, g});
  x = net.add("joint_net.0", Activation{}, x);
  x = net.add("joint_net.1", Dropout{0.3}, x);
  x = net.add("joint_net.2", Linear{kJoint, kClasses}, x);
  net.add("loss", SoftmaxCrossEntropy{kClasses}, x);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {shape.frames, kFeatures},
                          net.take());
}

Expected<ModelGraph> make_lstm_language_model(std::string name, std::int64_t sequence_length) {
  constexpr std::int64_t kWords = 33278, kWidth = 200;
  constexpr double kDropout = 0.2;  // probability: speech.h
  LayerList net(16);
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = net.add("encoder", Embedding{kWords, kWidth}, x);
  x = net.add("drop", Dropout{kDropout}, x);
  x = lstm(net, "rnn", {kWidth, kWidth, 2, kDropout}, x);
  x = net.add("decoder", Linear{kWidth, kWords}, x);
  net.add("loss", SoftmaxCrossEntropy{kWords}, x);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {sequence_length}, net.take());
}

}  // namespace reckon
