#pragma once
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/data/samples.h"
#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/zoo.h"

// Small networks for tests of the runtime.
namespace reckon::test {

inline ModelGraph network(SampleUnit unit, Shape input, LayerList& layers) {
  auto made = ModelGraph::make("test", unit, std::move(input), layers.take());
  if (!made) throw std::runtime_error(format(made.error()));
  return std::move(*made);
}

/// A model's double-precision runtime with random parameters and one synthetic batch.
template <class T>
struct Trial {
  Trial(const ModelGraph& model, std::int64_t batch, Recompute recompute = Recompute::none,
        int threads = 1)
      : workers(threads),
        runtime(model, {.batch = batch, .recompute = recompute, .seed = 3}, workers),
        data(sample_format(model), batch),
        values(runtime.layout().count),
        gradients(runtime.layout().count) {
    for (std::int64_t b = 0; b < batch; ++b) fill_synthetic(sample_format(model), 5, b, data, b);
    // Far from zero, so that no gradient is small by accident.
    for (std::size_t i = 0; i < values.size(); ++i)
      values.data()[i] = static_cast<T>(0.4 * std::sin(static_cast<double>(7 * i + 1)) + 0.05);
  }
  double loss() { return runtime.forward(data.view(), values.span(), {2, 0}, true); }
  void backward() { runtime.backward(values.span(), gradients.span(), 1, {}); }

  Workers workers;
  GraphRuntime<T> runtime;
  SampleBatch data;
  AlignedBuffer<T> values, gradients;
};

/// ResNet-18 in small: images (3, 16, 16), a stem, two stages of one basic block, the second at
/// half the size with a projection beside it; 4 classes.
inline ModelGraph small_resnet() {
  LayerList net(32);
  const auto conv_norm = [&](const std::string& name, Conv2d conv, LayerId x) {
    x = net.add(name, conv, x);
    return net.add(name + ".bn", BatchNorm{conv.out}, x);
  };
  const auto relu = [&](const std::string& name, LayerId x) {
    return net.add(name, Activation{ActivationKind::relu}, x);
  };
  const auto conv3 = [](std::int64_t in, std::int64_t out, std::int64_t stride) {
    return Conv2d{
        .in = in, .out = out, .kernel_h = 3, .kernel_w = 3, .stride = stride, .padding = 1};
  };
  LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
  x = relu("stem.relu", conv_norm("stem", conv3(3, 8, 1), x));
  for (const std::int64_t out : {8, 16}) {
    const std::string name = "layer" + std::to_string(out / 8);
    net.set_group(name);
    const std::int64_t stride = out / 8;
    LayerId y = relu(name + ".relu1", conv_norm(name + ".conv1", conv3(8, out, stride), x));
    y = conv_norm(name + ".conv2", conv3(out, out, 1), y);
    if (stride > 1) x = conv_norm(name + ".down", Conv2d{.in = 8, .out = out, .stride = stride}, x);
    x = relu(name + ".relu2", net.add(name + ".add", Add{}, {y, x}));
  }
  net.set_group("head");
  x = net.add("avgpool", GlobalAveragePool{}, x);
  x = net.add("fc", Linear{16, 4}, x);
  net.add("loss", SoftmaxCrossEntropy{4}, x);
  return network(SampleUnit::image, {3, 16, 16}, net);
}

inline ModelGraph small_gpt2(double dropout) {
  auto made = make_transformer("gpt2", {.layers = 2,
                                        .hidden = 32,
                                        .heads = 4,
                                        .vocabulary = 61,
                                        .sequence_length = 24,
                                        .positions = 24,
                                        .dropout = dropout});
  return std::move(*made);
}

/// DLRM in small: of a record so many numbers, a user's id and three items' ids.
inline ModelGraph small_recommender(std::int64_t numbers = 3, std::int64_t users = 50,
                                    std::int64_t items_there = 9) {
  LayerList net(16);
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId fields = net.add("numbers", SelectFeatures{0, numbers}, record);
  const LayerId dense = net.add("bottom", Linear{numbers, 8}, fields);
  const LayerId user_id = net.add("user_id", SelectFeatures{numbers, 1}, record);
  const LayerId user = net.add("user", EmbeddingBag{users, 8, 1}, user_id);
  const LayerId item_ids = net.add("item_ids", SelectFeatures{numbers + 1, 3}, record);
  const LayerId items = net.add("items", EmbeddingBag{items_there, 8, 3}, item_ids);
  const LayerId dots = net.add("dots", PairwiseDots{3, 8}, {dense, user, items});
  LayerId x = net.add("beside", Concat{}, {dense, user, items, dots});
  x = net.add("over", Linear{27, 16}, x);
  x = net.add("bent", Activation{}, x);
  x = net.add("click", Linear{16, 1}, x);
  net.add("loss", SigmoidCrossEntropy{}, x);
  return network(SampleUnit::record, {numbers + 4}, net);
}

}  // namespace reckon::test
