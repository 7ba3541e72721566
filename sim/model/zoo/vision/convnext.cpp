#include <fmt/format.h>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

namespace reckon {
namespace {

/// kernel x kernel without overlap, with a bias.
Conv2d patches(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return {
      .in = in, .out = out, .kernel_h = kernel, .kernel_w = kernel, .stride = kernel, .bias = true};
}

/// torchvision CNBlock: 7x7 depthwise, then a perceptron at each point.
LayerId block(LayerList& net, const std::string& name, std::int64_t width, double drop_rate,
              LayerId in) {
  Conv2d depthwise = square(width, width, 7, 1);
  depthwise.groups = width;
  depthwise.bias = true;
  LayerId x = net.add(name + ".0", depthwise, in);
  x = net.add(name + ".1", ImageTokens{}, x);
  x = net.add(name + ".2", LayerNorm{width}, x);
  x = net.add(name + ".3", Linear{width, 4 * width}, x);
  x = net.add(name + ".4", Activation{ActivationKind::gelu}, x);
  x = net.add(name + ".5", Linear{4 * width, width}, x);
  x = net.add(name + ".6", ImageTokens{}, x);
  x = net.add(name + ".stochastic_depth", Dropout{drop_rate, true}, x);
  return net.add(name + ".add", Add{}, {in, x});
}

}  // namespace

Expected<ModelGraph> make_convnext(std::string name, const ConvNextShape& shape) {
  LayerList net(512);
  net.set_group("features.0");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  std::int64_t width = shape.width;
  x = net.add("features.0.0", patches(3, width, 4), x);
  x = net.add("features.0.1", GroupNorm{width, 1}, x);
  int all = 0, done = 0;
  for (const int blocks : shape.blocks) all += blocks;
  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    if (stage > 0) {
      const std::string down = fmt::format("features.{}", 2 * stage);
      net.set_group(down);
      x = net.add(down + ".0", GroupNorm{width, 1}, x);
      x = net.add(down + ".1", patches(width, 2 * width, 2), x);
      width *= 2;
    }
    const std::string group = fmt::format("features.{}", 2 * stage + 1);
    net.set_group(group);
    for (int i = 0; i < shape.blocks[stage]; ++i, ++done) {
      const double rate = shape.stochastic_depth * done / (all - 1);
      x = block(net, fmt::format("{}.{}", group, i), width, rate, x);
    }
  }
  net.set_group("head");
  x = net.add("avgpool", GlobalAveragePool{}, x);
  x = net.add("classifier.0", LayerNorm{width}, x);
  x = net.add("classifier.2", Linear{width, 1000}, x);
  net.add("loss", SoftmaxCrossEntropy{1000}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, 224, 224}, net.take());
}

}  // namespace reckon
