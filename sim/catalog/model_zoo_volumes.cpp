#include <fmt/format.h>

#include <array>

#include "sim/catalog/model_zoo_builder.h"
#include "sim/catalog/model_zoo_detection.h"

// Segmentation of volumes.
namespace reckon {
namespace {

LayerId norm_relu(LayerList& net, const std::string& name, std::int64_t channels, LayerId x) {
  x = net.add(name + ".instance_norm", GroupNorm{channels, channels}, x);
  return net.add(name + ".relu", Activation{}, x);
}

/// Two convolutions, the first of which may halve the volume.
LayerId two_convs(LayerList& net, const std::string& name, std::int64_t in, std::int64_t out,
                  std::int64_t stride, LayerId x) {
  net.set_group(name);
  x = net.add(name + ".conv1", Conv3d{.in = in, .out = out, .stride = stride}, x);
  x = norm_relu(net, name + ".conv1", out, x);
  x = net.add(name + ".conv2", Conv3d{.in = out, .out = out}, x);
  return norm_relu(net, name + ".conv2", out, x);
}

}  // namespace

Expected<ModelGraph> make_unet3d_kits19() {
  constexpr std::array<std::int64_t, 6> kChannels{32, 64, 128, 256, 320, 320};
  constexpr std::int64_t kClasses = 3, kSide = 128;
  LayerList net(128);
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = two_convs(net, "input_block", 1, kChannels[0], 1, x);
  std::vector<LayerId> skips;
  for (std::size_t i = 1; i < kChannels.size(); ++i) {
    skips.push_back(x);
    const bool last = i + 1 == kChannels.size();
    const std::string name = last ? "bottleneck" : fmt::format("downsample.{}", i - 1);
    x = two_convs(net, name, kChannels[i - 1], kChannels[i], 2, x);
  }
  for (std::size_t i = kChannels.size() - 1; i-- > 0;) {
    const std::string name = fmt::format("upsample.{}", kChannels.size() - 2 - i);
    net.set_group(name);
    x = net.add(name + ".upsample_conv",
                TransposedConv{.in = kChannels[i + 1], .out = kChannels[i], .dimensions = 3}, x);
    x = net.add(name + ".concat", Concat{}, {x, skips[i]});
    x = two_convs(net, name, 2 * kChannels[i], kChannels[i], 1, x);
  }
  net.set_group("output");
  x = net.add("output.conv",
              Conv3d{.in = kChannels[0], .out = kClasses, .kernel = 1, .padding = 0, .bias = true},
              x);
  x = net.add("output.flat", Flatten{}, x);
  net.add("loss", SigmoidCrossEntropy{}, x);
  return ModelGraph::make("unet3d_kits19", SampleUnit::image, {1, kSide, kSide, kSide}, net.take());
}

}  // namespace reckon
