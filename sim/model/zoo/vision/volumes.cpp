#include <fmt/format.h>

#include <array>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/detection.h"

// Segmentation of medical images and volumes.
namespace reckon {
namespace {

LayerId instance_norm_relu(LayerList& net, const std::string& name, std::int64_t channels,
                           LayerId x) {
  x = net.add(name + ".instance_norm", GroupNorm{channels, channels}, x);
  return net.add(name + ".relu", Activation{}, x);
}

/// Two convolutions, the first of which may halve the volume.
LayerId two_convs(LayerList& net, const std::string& name, std::int64_t in, std::int64_t out,
                  std::int64_t stride, LayerId x) {
  net.set_group(name);
  x = net.add(name + ".conv1", Conv3d{.in = in, .out = out, .stride = stride}, x);
  x = instance_norm_relu(net, name + ".conv1", out, x);
  x = net.add(name + ".conv2", Conv3d{.in = out, .out = out}, x);
  return instance_norm_relu(net, name + ".conv2", out, x);
}

}  // namespace

Expected<ModelGraph> make_unet3d(std::string name, const Unet3dShape& shape) {
  constexpr std::array<std::int64_t, 6> kChannels{32, 64, 128, 256, 320, 320};
  constexpr std::int64_t kSide = 128;
  LayerList net(128);
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = two_convs(net, "input_block", shape.channels, kChannels[0], 1, x);
  std::vector<LayerId> skips;
  for (std::size_t i = 1; i < kChannels.size(); ++i) {
    skips.push_back(x);
    const bool last = i + 1 == kChannels.size();
    const std::string block = last ? "bottleneck" : fmt::format("downsample.{}", i - 1);
    x = two_convs(net, block, kChannels[i - 1], kChannels[i], 2, x);
  }
  for (std::size_t i = kChannels.size() - 1; i-- > 0;) {
    const std::string block = fmt::format("upsample.{}", kChannels.size() - 2 - i);
    net.set_group(block);
    x = net.add(block + ".upsample_conv",
                TransposedConv{.in = kChannels[i + 1], .out = kChannels[i], .dimensions = 3}, x);
    x = net.add(block + ".concat", Concat{}, {x, skips[i]});
    x = two_convs(net, block, 2 * kChannels[i], kChannels[i], 1, x);
  }
  net.set_group("output");
  x = net.add("output.conv",
              Conv3d{.in = kChannels[0],
                     .out = shape.classes,
                     .kernel = shape.last_kernel,
                     .padding = shape.last_kernel / 2,
                     .bias = true},
              x);
  x = net.add("output.flat", Flatten{}, x);
  net.add("loss", SigmoidCrossEntropy{}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, {shape.channels, kSide, kSide, kSide},
                          net.take());
}

namespace {

/// As two_convs, of images.
LayerId two_convs_2d(LayerList& net, const std::string& name, std::int64_t in, std::int64_t out,
                     std::int64_t stride, LayerId x) {
  net.set_group(name);
  x = instance_norm_relu(net, name + ".conv1", out,
                         net.add(name + ".conv1", square(in, out, 3, stride), x));
  return instance_norm_relu(net, name + ".conv2", out,
                            net.add(name + ".conv2", square(out, out, 3, 1), x));
}

}  // namespace

Expected<ModelGraph> make_nnunet_2d() {
  constexpr std::array<std::int64_t, 6> kChannels{32, 64, 128, 256, 512, 512};
  constexpr std::int64_t kModalities = 4, kClasses = 4, kHeight = 192, kWidth = 160;
  LayerList net(128);
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = two_convs_2d(net, "input_block", kModalities, kChannels[0], 1, x);
  std::vector<LayerId> skips;
  for (std::size_t i = 1; i < kChannels.size(); ++i) {
    skips.push_back(x);
    const bool last = i + 1 == kChannels.size();
    const std::string name = last ? "bottleneck" : fmt::format("downsample.{}", i - 1);
    x = two_convs_2d(net, name, kChannels[i - 1], kChannels[i], 2, x);
  }
  for (std::size_t i = kChannels.size() - 1; i-- > 0;) {
    const std::string name = fmt::format("upsample.{}", kChannels.size() - 2 - i);
    net.set_group(name);
    x = net.add(name + ".upsample_conv",
                TransposedConv{.in = kChannels[i + 1], .out = kChannels[i]}, x);
    x = net.add(name + ".concat", Concat{}, {x, skips[i]});
    x = two_convs_2d(net, name, 2 * kChannels[i], kChannels[i], 1, x);
  }
  net.set_group("output");
  Conv2d last = square(kChannels[0], kClasses, 1, 1);
  last.bias = true;
  x = net.add("output.flat", Flatten{}, net.add("output.conv", last, x));
  net.add("loss", SigmoidCrossEntropy{}, x);
  return ModelGraph::make("nnunet_2d", SampleUnit::image, {kModalities, kHeight, kWidth},
                          net.take());
}

namespace {

class Vnet {
 public:
  Vnet() : net_(128) {}

  Expected<ModelGraph> build() {
    constexpr std::int64_t kSide = 32, kFirst = 16, kClasses = 3;
    constexpr std::array<int, 3> kDown{3, 3, 3};
    constexpr std::array<int, 2> kUp{3, 3};
    net_.set_group("input_block");
    const LayerId image = net_.add("input", InputLayer{}, std::vector<LayerId>{});
    // The image is added to each of the 16 channels; that sum of one channel is left out.
    Features x = conv("input_block", {image, 1}, kFirst, 3);
    std::vector<Features> skips{x};
    for (std::size_t i = 0; i < kDown.size(); ++i) {
      const std::string name = fmt::format("downsample.{}", i);
      net_.set_group(name);
      x = conv(name + ".pool", x, 2 * x.channels, 2);
      x = residual(name, x, kDown[i]);
      if (i + 1 < kDown.size()) skips.push_back(x);
    }
    for (std::size_t i = 0; i < kUp.size(); ++i) {
      const std::string name = fmt::format("upsample.{}", i);
      net_.set_group(name);
      const Features skip = skips.back();
      skips.pop_back();
      x = up(name, x, skip.channels);
      x = {net_.add(name + ".concat", Concat{}, {x.layer, skip.layer}), 2 * skip.channels};
      x = residual(name, x, kUp[i]);
    }
    net_.set_group("output_block");
    x = up("output_block", x, skips.back().channels);
    LayerId y = net_.add("output_block.conv",
                         Conv3d{.in = x.channels, .out = kClasses, .bias = true}, x.layer);
    y = net_.add("output_block.flat", Flatten{}, y);
    net_.add("loss", SigmoidCrossEntropy{}, y);
    return ModelGraph::make("vnet", SampleUnit::image, {1, kSide, kSide, kSide}, net_.take());
  }

 private:
  /// Convolution of stride 1 (kernel 3) or 2 (kernel 2), batch norm, ReLU.
  Features conv(const std::string& name, Features x, std::int64_t out, std::int64_t kernel) {
    const Conv3d op{.in = x.channels,
                    .out = out,
                    .kernel = kernel,
                    .stride = kernel == 2 ? 2 : 1,
                    .padding = kernel == 2 ? 0 : 1,
                    .bias = true};
    return finish(name, net_.add(name, op, x.layer), out);
  }
  Features up(const std::string& name, Features x, std::int64_t out) {
    const TransposedConv op{.in = x.channels, .out = out, .dimensions = 3};
    return finish(name + ".up", net_.add(name + ".up", op, x.layer), out);
  }
  Features finish(const std::string& name, LayerId x, std::int64_t channels) {
    x = net_.add(name + ".bn", BatchNorm{channels}, x);
    return {net_.add(name + ".relu", Activation{}, x), channels};
  }
  Features residual(const std::string& name, Features x, int depth) {
    Features y = x;
    for (int i = 0; i < depth; ++i) y = conv(fmt::format("{}.{}", name, i), y, y.channels, 3);
    return {net_.add(name + ".add", Add{}, {x.layer, y.layer}), x.channels};
  }

  LayerList net_;
};

}  // namespace

Expected<ModelGraph> make_vnet() { return Vnet().build(); }

}  // namespace reckon
