#include "sim/model/zoo/vision/resnet.h"

#include <fmt/format.h>

namespace reckon {
namespace {

/// torchvision BasicBlock: 3x3, 3x3.
Features basic_block(LayerList& net, const std::string& name, Features in, std::int64_t width,
                     std::int64_t stride) {
  LayerId x =
      conv_bn(net, name + ".conv1", name + ".bn1", square(in.channels, width, 3, stride), in.layer);
  x = net.add(name + ".relu", Activation{}, x);
  x = conv_bn(net, name + ".conv2", name + ".bn2", square(width, width, 3, 1), x);
  LayerId shortcut = in.layer;
  if (stride != 1 || in.channels != width) {
    shortcut = conv_bn(net, name + ".downsample.0", name + ".downsample.1",
                       square(in.channels, width, 1, stride), in.layer);
  }
  x = net.add(name + ".add", Add{}, {x, shortcut});
  return {net.add(name + ".relu_1", Activation{}, x), width};
}

/// senet.py of the paper's authors: SELayer, in front of the residual sum.
LayerId squeeze_excitation(LayerList& net, const std::string& name, std::int64_t channels,
                           std::int64_t squeeze, LayerId x) {
  LayerId s = net.add(name + ".avg_pool", GlobalAveragePool{}, x);
  s = net.add(name + ".fc1", Linear{channels, channels / squeeze}, s);
  s = net.add(name + ".relu", Activation{}, s);
  s = net.add(name + ".fc2", Linear{channels / squeeze, channels}, s);
  s = net.add(name + ".sigmoid", Activation{ActivationKind::sigmoid}, s);
  return net.add(name + ".scale", Multiply{}, {x, s});
}

/// torchvision Bottleneck: 1x1, 3x3, 1x1. The inner width is planes * width_per_group / 64 in each
/// of the groups.
Features bottleneck(LayerList& net, const std::string& name, Features in, std::int64_t planes,
                    std::int64_t stride, const ResNetShape& shape) {
  const std::int64_t first = shape.stride_in_3x3 ? 1 : stride;
  const std::int64_t width = planes * shape.width_per_group / 64 * shape.groups;
  const std::int64_t out = 4 * planes;
  LayerId x =
      conv_bn(net, name + ".conv1", name + ".bn1", square(in.channels, width, 1, first), in.layer);
  x = net.add(name + ".relu", Activation{}, x);
  Conv2d middle = square(width, width, 3, shape.stride_in_3x3 ? stride : 1);
  middle.groups = shape.groups;
  x = conv_bn(net, name + ".conv2", name + ".bn2", middle, x);
  x = net.add(name + ".relu_1", Activation{}, x);
  x = conv_bn(net, name + ".conv3", name + ".bn3", square(width, out, 1, 1), x);
  if (shape.squeeze > 0) x = squeeze_excitation(net, name + ".se", out, shape.squeeze, x);
  LayerId shortcut = in.layer;
  if (stride != 1 || in.channels != out) {
    shortcut = conv_bn(net, name + ".downsample.0", name + ".downsample.1",
                       square(in.channels, out, 1, stride), in.layer);
  }
  x = net.add(name + ".add", Add{}, {x, shortcut});
  return {net.add(name + ".relu_2", Activation{}, x), out};
}

}  // namespace

std::vector<Features> resnet_stages(LayerList& net, const ResNetShape& shape, LayerId image,
                                    const Backbone& backbone) {
  const bool frozen_norms = backbone.frozen_stages > 0;
  net.freeze(frozen_norms, frozen_norms);
  net.set_group("stem");
  LayerId x = image;
  if (shape.small_images) {
    x = conv_bn(net, "conv1", "bn1", square(3, 64, 3, 1), x);
    x = net.add("relu", Activation{}, x);
  } else {
    x = conv_bn(net, "conv1", "bn1", square(3, 64, 7, 2), x);
    x = net.add("relu", Activation{}, x);
    x = net.add("maxpool", Pool2d{.kernel = 3, .stride = 2, .padding = 1}, x);
  }
  Features features{x, 64};
  std::vector<Features> outputs;
  for (int stage = 0; stage < backbone.stages; ++stage) {
    net.freeze(stage < backbone.frozen_stages, frozen_norms);
    net.set_group(fmt::format("layer{}", stage + 1));
    const std::int64_t width = std::int64_t{64} << stage;
    const bool last = stage + 1 == backbone.stages;
    for (int block = 0; block < shape.blocks[static_cast<std::size_t>(stage)]; ++block) {
      const std::string prefix = fmt::format("layer{}.{}", stage + 1, block);
      const std::int64_t down = last ? backbone.last_stride : 2;
      const std::int64_t stride = stage > 0 && block == 0 ? down : 1;
      features = shape.bottleneck ? bottleneck(net, prefix, features, width, stride, shape)
                                  : basic_block(net, prefix, features, width, stride);
    }
    outputs.push_back(features);
  }
  net.freeze(false, false);
  return outputs;
}

Expected<ModelGraph> make_resnet(std::string name, const ResNetShape& shape) {
  LayerList net(16 + 18 * static_cast<std::size_t>(shape.blocks[0] + shape.blocks[1] +
                                                   shape.blocks[2] + shape.blocks[3]));
  net.set_group("stem");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const Features features = resnet_stages(net, shape, image, {}).back();
  net.set_group("head");
  LayerId x = net.add("avgpool", GlobalAveragePool{}, features.layer);
  x = net.add("fc", Linear{features.channels, shape.classes}, x);
  net.add("loss", SoftmaxCrossEntropy{shape.classes}, x);
  const std::int64_t side = shape.small_images ? 32 : 224;
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, side, side}, net.take());
}

}  // namespace reckon
