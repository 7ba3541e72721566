#include "sim/model/zoo/vision/cifar.h"

#include <fmt/format.h>

#include "sim/model/zoo/vision/convolutions.h"

namespace reckon {
namespace {

constexpr std::int64_t kCifarClasses = 10, kCifarSide = 32;

LayerId cifar_conv(LayerList& net, const std::string& name, const Conv2d& op, LayerId in) {
  return net.add(name + ".relu", Activation{}, conv_bn(net, name + ".conv", name + ".bn", op, in));
}

Features cifar_block(LayerList& net, const std::string& name, Features in, std::int64_t width,
                     std::int64_t stride, bool bottleneck) {
  const std::int64_t out = bottleneck ? 4 * width : width;
  LayerId x = in.layer;
  if (bottleneck) {
    x = cifar_conv(net, name + ".1", square(in.channels, width, 1, stride), x);
    x = cifar_conv(net, name + ".2", square(width, width, 3, 1), x);
    x = conv_bn(net, name + ".3.conv", name + ".3.bn", square(width, out, 1, 1), x);
  } else {
    x = cifar_conv(net, name + ".1", square(in.channels, width, 3, stride), x);
    x = conv_bn(net, name + ".2.conv", name + ".2.bn", square(width, width, 3, 1), x);
  }
  LayerId shortcut = in.layer;
  if (stride != 1 || in.channels != out)
    shortcut = conv_bn(net, name + ".shortcut.conv", name + ".shortcut.bn",
                       square(in.channels, out, 1, stride), in.layer);
  x = net.add(name + ".add", Add{}, {x, shortcut});
  return {net.add(name + ".relu", Activation{}, x), out};
}

Expected<ModelGraph> with_head(LayerList& net, std::string name, LayerId features,
                               std::int64_t channels) {
  net.set_group("head");
  LayerId x = net.add("fc", Linear{channels, kCifarClasses}, features);
  net.add("loss", SoftmaxCrossEntropy{kCifarClasses}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, {3, kCifarSide, kCifarSide},
                          net.take());
}

}  // namespace

Expected<ModelGraph> make_deep_cifar_resnet(std::string name, const DeepCifarResNet& shape) {
  constexpr std::int64_t kStem = 16;
  constexpr int kStages = 3;
  LayerList net(16 + 33 * static_cast<std::size_t>(shape.blocks));
  net.set_group("stem");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  Features f{cifar_conv(net, "stem", square(3, kStem, 3, 1), image), kStem};
  for (int stage = 0; stage < kStages; ++stage) {
    net.set_group(fmt::format("stage{}", stage + 1));
    for (int block = 0; block < shape.blocks; ++block)
      f = cifar_block(net, fmt::format("stage{}.{}", stage + 1, block), f, kStem << stage,
                      stage > 0 && block == 0 ? 2 : 1, shape.bottleneck);
  }
  const LayerId pooled = net.add("avgpool", GlobalAveragePool{}, f.layer);
  return with_head(net, std::move(name), pooled, f.channels);
}

Expected<ModelGraph> make_resnet9_cifar10() {
  LayerList net(40);
  net.set_group("prep");
  const LayerId image = net.add("input", InputLayer{}, std::vector<LayerId>{});
  LayerId x = cifar_conv(net, "prep", square(3, 64, 3, 1), image);
  std::int64_t channels = 64;
  for (const int stage : {1, 2, 3}) {
    const std::string name = fmt::format("layer{}", stage);
    net.set_group(name);
    x = cifar_conv(net, name, square(channels, 2 * channels, 3, 1), x);
    channels *= 2;
    x = net.add(name + ".pool", Pool2d{.kernel = 2, .stride = 2, .padding = 0}, x);
    if (stage == 2) continue;
    LayerId y = cifar_conv(net, name + ".res1", square(channels, channels, 3, 1), x);
    y = cifar_conv(net, name + ".res2", square(channels, channels, 3, 1), y);
    x = net.add(name + ".add", Add{}, {x, y});
  }
  // Its last pooling takes all that is left, 4 x 4.
  const LayerId pooled = net.add("pool", GlobalAveragePool{}, x);
  return with_head(net, "resnet9_cifar10", pooled, channels);
}

}  // namespace reckon
