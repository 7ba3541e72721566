#include "sim/model/zoo/vision/images.h"

#include <fmt/format.h>

#include <span>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/zoo.h"

namespace reckon {
namespace {

constexpr std::int64_t kImageNetClasses = 1000;
const Shape kImageNetInput{3, 224, 224};

}  // namespace

Expected<ModelGraph> make_vgg(std::string name, const std::array<int, 5>& convolutions) {
  constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
  LayerList net(56);
  net.set_group("features.0");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  std::int64_t channels = 3;
  int position = 0;
  for (std::size_t stage = 0; stage < kWidths.size(); ++stage) {
    net.set_group(fmt::format("features.{}", stage));
    for (int i = 0; i < convolutions[stage]; ++i) {
      Conv2d conv = square(channels, kWidths[stage], 3, 1);
      conv.bias = true;
      x = net.add(fmt::format("features.{}", position++), conv, x);
      x = net.add(fmt::format("features.{}", position++), Activation{}, x);
      channels = kWidths[stage];
    }
    x = net.add(fmt::format("features.{}", position++), Pool2d{}, x);
  }
  net.set_group("classifier");
  x = net.add("flatten", Flatten{}, x);
  x = net.add("classifier.0", Linear{512 * 7 * 7, 4096}, x);
  x = net.add("classifier.1", Activation{}, x);
  x = net.add("classifier.2", Dropout{0.5}, x);
  x = net.add("classifier.3", Linear{4096, 4096}, x);
  x = net.add("classifier.4", Activation{}, x);
  x = net.add("classifier.5", Dropout{0.5}, x);
  x = net.add("classifier.6", Linear{4096, kImageNetClasses}, x);
  net.add("loss", SoftmaxCrossEntropy{kImageNetClasses}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, kImageNetInput, net.take());
}

Expected<ModelGraph> make_alexnet() {
  LayerList net(32);
  net.set_group("features");
  int position = 0;
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const auto add = [&](const LayerOp& op) {
    x = net.add(fmt::format("features.{}", position++), op, x);
  };
  const auto convolution = [&](Conv2d conv) {
    conv.bias = true;
    add(conv);
    add(Activation{});
  };
  const Pool2d pool{.kernel = 3, .stride = 2};
  Conv2d first = square(3, 64, 11, 4);
  first.padding = 2;
  convolution(first);
  add(pool);
  convolution(square(64, 192, 5, 1));
  add(pool);
  convolution(square(192, 384, 3, 1));
  convolution(square(384, 256, 3, 1));
  convolution(square(256, 256, 3, 1));
  add(pool);
  net.set_group("classifier");
  x = net.add("flatten", Flatten{}, x);
  x = net.add("classifier.0", Dropout{0.5}, x);
  x = net.add("classifier.1", Linear{256 * 6 * 6, 4096}, x);
  x = net.add("classifier.2", Activation{}, x);
  x = net.add("classifier.3", Dropout{0.5}, x);
  x = net.add("classifier.4", Linear{4096, 4096}, x);
  x = net.add("classifier.5", Activation{}, x);
  x = net.add("classifier.6", Linear{4096, kImageNetClasses}, x);
  net.add("loss", SoftmaxCrossEntropy{kImageNetClasses}, x);
  return ModelGraph::make("alexnet", SampleUnit::image, kImageNetInput, net.take());
}

namespace {

/// Linear and ReLU for each hidden width, then the classifier.
void add_perceptron(LayerList& net, LayerId x, std::int64_t inputs,
                    std::span<const std::int64_t> hidden, std::int64_t classes) {
  std::int64_t width = inputs;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    net.set_group(fmt::format("hidden.{}", i));
    x = net.add(fmt::format("hidden.{}.linear", i), Linear{width, hidden[i]}, x);
    x = net.add(fmt::format("hidden.{}.relu", i), Activation{}, x);
    width = hidden[i];
  }
  net.set_group("head");
  x = net.add("output", Linear{width, classes}, x);
  net.add("loss", SoftmaxCrossEntropy{classes}, x);
}

}  // namespace

Expected<ModelGraph> make_mlp(std::string name, std::int64_t inputs,
                              std::span<const std::int64_t> hidden, std::int64_t classes) {
  LayerList net(4 + 2 * hidden.size());
  const LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  add_perceptron(net, x, inputs, hidden, classes);
  return ModelGraph::make(std::move(name), SampleUnit::record, {inputs}, net.take());
}

Expected<ModelGraph> make_mnist_mlp() {
  constexpr std::array<std::int64_t, 2> kHidden{512, 512};
  LayerList net(8);
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  add_perceptron(net, net.add("flatten", Flatten{}, image), 28 * 28, kHidden, 10);
  return ModelGraph::make("mlp_mnist", SampleUnit::image, {1, 28, 28}, net.take());
}

}  // namespace reckon
