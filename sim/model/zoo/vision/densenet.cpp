#include <fmt/format.h>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

namespace reckon {
namespace {

LayerId norm_relu(LayerList& net, const std::string& name, std::int64_t channels, LayerId x) {
  x = net.add(fmt::format("{}.norm", name), BatchNorm{channels}, x);
  return net.add(fmt::format("{}.relu", name), Activation{}, x);
}

/// torchvision _DenseLayer: 1x1 to four times the growth, 3x3; what it makes stands beside what it
/// got.
Features dense_layer(LayerList& net, const std::string& name, Features in, std::int64_t growth) {
  const std::int64_t inner = 4 * growth;
  LayerId x = norm_relu(net, name + ".1", in.channels, in.layer);
  x = net.add(name + ".conv1", square(in.channels, inner, 1, 1), x);
  x = norm_relu(net, name + ".2", inner, x);
  x = net.add(name + ".conv2", square(inner, growth, 3, 1), x);
  return {net.add(name + ".concat", Concat{}, {in.layer, x}), in.channels + growth};
}

}  // namespace

Expected<ModelGraph> make_densenet(std::string name, const DenseNetShape& shape) {
  LayerList net(1024);
  net.set_group("stem");
  const std::int64_t first = 2 * shape.growth;
  LayerId stem = net.add("input", InputLayer{}, std::vector<LayerId>{});
  stem = conv_bn(net, "features.conv0", "features.norm0", square(3, first, 7, 2), stem);
  stem = net.add("features.relu0", Activation{}, stem);
  Features x{net.add("features.pool0", Pool2d{.kernel = 3, .stride = 2, .padding = 1}, stem),
             first};
  for (std::size_t i = 0; i < shape.layers.size(); ++i) {
    const std::string block = fmt::format("features.denseblock{}", i + 1);
    net.set_group(block);
    for (int j = 0; j < shape.layers[i]; ++j)
      x = dense_layer(net, fmt::format("{}.denselayer{}", block, j + 1), x, shape.growth);
    if (i + 1 == shape.layers.size()) break;
    const std::string half = fmt::format("features.transition{}", i + 1);
    net.set_group(half);
    LayerId y = norm_relu(net, half, x.channels, x.layer);
    y = net.add(half + ".conv", square(x.channels, x.channels / 2, 1, 1), y);
    x = {net.add(half + ".pool", Pool2d{.kind = PoolKind::average}, y), x.channels / 2};
  }
  net.set_group("head");
  LayerId y = norm_relu(net, "features.5", x.channels, x.layer);
  y = net.add("avgpool", GlobalAveragePool{}, y);
  y = net.add("classifier", Linear{x.channels, 1000}, y);
  net.add("loss", SoftmaxCrossEntropy{1000}, y);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, 224, 224}, net.take());
}

}  // namespace reckon
