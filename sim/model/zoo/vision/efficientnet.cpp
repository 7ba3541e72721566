#include "sim/model/zoo/vision/efficientnet.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace reckon {
namespace {

/// torchvision's _make_divisible: the nearest multiple of 8, not below 0.9 of the number.
std::int64_t scaled_channels(std::int64_t channels, double width) {
  const double wanted = static_cast<double>(channels) * width;
  const std::int64_t down = static_cast<std::int64_t>(wanted + 4) / 8 * 8;
  const std::int64_t rounded = std::max<std::int64_t>(8, down);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

struct MobileStage {
  std::int64_t expand, kernel, stride, in, out, blocks;
};
// [Tan 2019, table 1]: EfficientNet-B0, stages 2 to 8.
constexpr std::array kMobileStages{
    MobileStage{1, 3, 1, 32, 16, 1},  MobileStage{6, 3, 2, 16, 24, 2},
    MobileStage{6, 5, 2, 24, 40, 2},  MobileStage{6, 3, 2, 40, 80, 3},
    MobileStage{6, 5, 1, 80, 112, 3}, MobileStage{6, 5, 2, 112, 192, 4},
    MobileStage{6, 3, 1, 192, 320, 1}};

LayerId conv_bn_silu(LayerList& net, const std::string& name, const Conv2d& op, LayerId x) {
  x = conv_bn(net, name + ".0", name + ".1", op, x);
  return net.add(name + ".2", Activation{ActivationKind::silu}, x);
}

LayerId squeeze_excitation_silu(LayerList& net, const std::string& name, std::int64_t channels,
                                std::int64_t squeezed, LayerId x) {
  LayerId s = net.add(name + ".avgpool", GlobalAveragePool{}, x);
  s = net.add(name + ".fc1", Linear{channels, squeezed}, s);
  s = net.add(name + ".activation", Activation{ActivationKind::silu}, s);
  s = net.add(name + ".fc2", Linear{squeezed, channels}, s);
  s = net.add(name + ".scale_activation", Activation{ActivationKind::sigmoid}, s);
  return net.add(name + ".scale", Multiply{}, {x, s});
}

struct MobileBlock {
  std::int64_t expand, kernel, stride, out;
  double drop_rate;  // stochastic depth
  bool wide_squeeze;
};

/// torchvision's MBConv: expand 1x1, depthwise, squeeze-and-excitation, project 1x1.
Features mb_conv(LayerList& net, const std::string& name, Features in, const MobileBlock& b) {
  int part = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  const std::int64_t expanded = scaled_channels(in.channels * b.expand, 1);
  LayerId x = in.layer;
  if (expanded != in.channels)
    x = conv_bn_silu(net, next(), square(in.channels, expanded, 1, 1), x);
  Conv2d depthwise = square(expanded, expanded, b.kernel, b.stride);
  depthwise.groups = expanded;
  x = conv_bn_silu(net, next(), depthwise, x);
  const std::int64_t squeezed =
      std::max<std::int64_t>(1, (b.wide_squeeze ? expanded : in.channels) / 4);
  x = squeeze_excitation_silu(net, next(), expanded, squeezed, x);
  const std::string project = next();
  x = conv_bn(net, project + ".0", project + ".1", square(expanded, b.out, 1, 1), x);
  if (b.stride == 1 && in.channels == b.out) {
    x = net.add(name + ".stochastic_depth", Dropout{b.drop_rate, true}, x);
    x = net.add(name + ".add", Add{}, {x, in.layer});
  }
  return {x, b.out};
}

std::int64_t scaled_depth(std::int64_t blocks, double depth) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(blocks) * depth));
}

std::int64_t blocks_of(const EfficientNetShape& shape) {
  std::int64_t total = 0;
  for (const MobileStage& s : kMobileStages) total += scaled_depth(s.blocks, shape.depth);
  return total;
}

}  // namespace

std::vector<Features> efficientnet_stages(LayerList& net, const EfficientNetShape& shape,
                                          LayerId image) {
  constexpr double kStochasticDepth = 0.2;  // probability that blocks rise to
  const std::int64_t total = blocks_of(shape);
  std::int64_t block = 0;
  net.set_group("features.0");
  std::vector<Features> stages;
  const std::int64_t stem = scaled_channels(32, shape.width);
  Features x{conv_bn_silu(net, "features.0", square(3, stem, 3, 2), image), stem};
  stages.push_back(x);
  for (std::size_t i = 0; i < kMobileStages.size(); ++i) {
    const MobileStage& s = kMobileStages[i];
    const std::string stage = fmt::format("features.{}", i + 1);
    net.set_group(stage);
    for (std::int64_t j = 0; j < scaled_depth(s.blocks, shape.depth); ++j, ++block) {
      const double rate =
          kStochasticDepth * static_cast<double>(block) / static_cast<double>(total);
      x = mb_conv(net, fmt::format("{}.{}", stage, j), x,
                  {s.expand, s.kernel, j == 0 ? s.stride : 1, scaled_channels(s.out, shape.width),
                   rate, shape.wide_squeeze});
    }
    stages.push_back(x);
  }
  return stages;
}

Expected<ModelGraph> make_efficientnet(std::string name, const EfficientNetShape& shape) {
  LayerList net(64 + 20 * static_cast<std::size_t>(blocks_of(shape)));
  net.set_group("features.0");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const Features x = efficientnet_stages(net, shape, image).back();
  net.set_group("head");
  const std::int64_t last = 4 * x.channels;
  LayerId y = conv_bn_silu(net, "features.8", square(x.channels, last, 1, 1), x.layer);
  y = net.add("avgpool", GlobalAveragePool{}, y);
  y = net.add("classifier.0", Dropout{shape.dropout}, y);
  y = net.add("classifier.1", Linear{last, 1000}, y);
  net.add("loss", SoftmaxCrossEntropy{1000}, y);
  return ModelGraph::make(std::move(name), SampleUnit::image,
                          {3, shape.resolution, shape.resolution}, net.take());
}

}  // namespace reckon
