#include <fmt/format.h>

#include <array>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

namespace reckon {
namespace {

struct InvertedStage {
  std::int64_t expand, out, blocks, stride;
};
// [Sandler 2018, table 2].
constexpr std::array kInvertedStages{InvertedStage{1, 16, 1, 1}, InvertedStage{6, 24, 2, 2},
                                     InvertedStage{6, 32, 3, 2}, InvertedStage{6, 64, 4, 2},
                                     InvertedStage{6, 96, 3, 1}, InvertedStage{6, 160, 3, 2},
                                     InvertedStage{6, 320, 1, 1}};

LayerId conv_bn_relu6(LayerList& net, const std::string& name, const Conv2d& op, LayerId x) {
  x = conv_bn(net, name + ".0", name + ".1", op, x);
  return net.add(name + ".2", Activation{}, x);
}

/// torchvision InvertedResidual.
Features inverted_residual(LayerList& net, const std::string& name, Features in,
                           const InvertedStage& s, std::int64_t stride) {
  const std::int64_t inner = in.channels * s.expand;
  LayerId x = in.layer;
  if (s.expand > 1) x = conv_bn_relu6(net, name + ".expand", square(in.channels, inner, 1, 1), x);
  Conv2d depthwise = square(inner, inner, 3, stride);
  depthwise.groups = inner;
  x = conv_bn_relu6(net, name + ".depthwise", depthwise, x);
  x = conv_bn(net, name + ".project", name + ".norm", square(inner, s.out, 1, 1), x);
  if (stride == 1 && in.channels == s.out) x = net.add(name + ".add", Add{}, {x, in.layer});
  return {x, s.out};
}

}  // namespace

Expected<ModelGraph> make_mobilenet_v2() {
  constexpr std::int64_t kFirst = 32, kLast = 1280;
  LayerList net(160);
  net.set_group("features.0");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  Features x{conv_bn_relu6(net, "features.0", square(3, kFirst, 3, 2), image), kFirst};
  int block = 1;
  for (const InvertedStage& s : kInvertedStages) {
    for (std::int64_t i = 0; i < s.blocks; ++i, ++block) {
      const std::string name = fmt::format("features.{}", block);
      net.set_group(name);
      x = inverted_residual(net, name, x, s, i == 0 ? s.stride : 1);
    }
  }
  net.set_group("head");
  LayerId y = conv_bn_relu6(net, "features.18", square(x.channels, kLast, 1, 1), x.layer);
  y = net.add("avgpool", GlobalAveragePool{}, y);
  y = net.add("classifier.0", Dropout{0.2}, y);
  y = net.add("classifier.1", Linear{kLast, 1000}, y);
  net.add("loss", SoftmaxCrossEntropy{1000}, y);
  return ModelGraph::make("mobilenet_v2", SampleUnit::image, {3, 224, 224}, net.take());
}

}  // namespace reckon
