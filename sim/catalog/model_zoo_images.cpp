#include "sim/catalog/model_zoo_images.h"

#include <fmt/format.h>

#include <span>

#include "sim/catalog/model_zoo.h"
#include "sim/catalog/model_zoo_convolutions.h"

namespace reckon {
namespace {

constexpr std::int64_t kImageNetClasses = 1000;
const Shape kImageNetInput{3, 224, 224};

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

/// torchvision Bottleneck: 1x1, 3x3, 1x1.
Features bottleneck(LayerList& net, const std::string& name, Features in, std::int64_t width,
                    std::int64_t stride, bool stride_in_3x3) {
  const std::int64_t first = stride_in_3x3 ? 1 : stride, second = stride_in_3x3 ? stride : 1;
  const std::int64_t out = 4 * width;
  LayerId x =
      conv_bn(net, name + ".conv1", name + ".bn1", square(in.channels, width, 1, first), in.layer);
  x = net.add(name + ".relu", Activation{}, x);
  x = conv_bn(net, name + ".conv2", name + ".bn2", square(width, width, 3, second), x);
  x = net.add(name + ".relu_1", Activation{}, x);
  x = conv_bn(net, name + ".conv3", name + ".bn3", square(width, out, 1, 1), x);
  LayerId shortcut = in.layer;
  if (stride != 1 || in.channels != out) {
    shortcut = conv_bn(net, name + ".downsample.0", name + ".downsample.1",
                       square(in.channels, out, 1, stride), in.layer);
  }
  x = net.add(name + ".add", Add{}, {x, shortcut});
  return {net.add(name + ".relu_2", Activation{}, x), out};
}

}  // namespace

Expected<ModelGraph> make_resnet(std::string name, const ResNetShape& shape) {
  LayerList net(16 + 12 * static_cast<std::size_t>(shape.blocks[0] + shape.blocks[1] +
                                                   shape.blocks[2] + shape.blocks[3]));
  net.set_group("stem");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = conv_bn(net, "conv1", "bn1", square(3, 64, 7, 2), x);
  x = net.add("relu", Activation{}, x);
  x = net.add("maxpool", Pool2d{.kernel = 3, .stride = 2, .padding = 1}, x);

  Features features{x, 64};
  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    net.set_group(fmt::format("layer{}", stage + 1));
    const std::int64_t width = std::int64_t{64} << stage;
    for (int block = 0; block < shape.blocks[stage]; ++block) {
      const std::string prefix = fmt::format("layer{}.{}", stage + 1, block);
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      features = shape.bottleneck
                     ? bottleneck(net, prefix, features, width, stride, shape.stride_in_3x3)
                     : basic_block(net, prefix, features, width, stride);
    }
  }

  net.set_group("head");
  x = net.add("avgpool", GlobalAveragePool{}, features.layer);
  x = net.add("fc", Linear{features.channels, kImageNetClasses}, x);
  net.add("loss", SoftmaxCrossEntropy{kImageNetClasses}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, kImageNetInput, net.take());
}

Expected<ModelGraph> make_vgg16() {
  // torchvision's cfgs["D"]; 0 stands for "M", a pooling that halves the image.
  constexpr std::array<std::int64_t, 18> kFeatures{64, 64,  0,   128, 128, 0,   256, 256, 256,
                                                   0,  512, 512, 512, 0,   512, 512, 512, 0};
  LayerList net(48);
  net.set_group("features.0");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  std::int64_t channels = 3;
  int position = 0, stage = 0;
  for (std::int64_t width : kFeatures) {
    if (width == 0) {
      x = net.add(fmt::format("features.{}", position++), Pool2d{}, x);
      net.set_group(fmt::format("features.{}", ++stage));
      continue;
    }
    Conv2d conv = square(channels, width, 3, 1);
    conv.bias = true;
    x = net.add(fmt::format("features.{}", position++), conv, x);
    x = net.add(fmt::format("features.{}", position++), Activation{}, x);
    channels = width;
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
  return ModelGraph::make("vgg16", SampleUnit::image, kImageNetInput, net.take());
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
