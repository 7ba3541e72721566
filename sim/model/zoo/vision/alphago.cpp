#include <fmt/format.h>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

// AlphaGo Zero's policy and value network.
namespace reckon {
namespace {

constexpr std::int64_t kBoard = 19, kPoints = kBoard * kBoard, kChannels = 256, kPlanes = 17;

/// The paper's convolutions are followed by batch normalisation: no bias.
LayerId conv_bn_relu(LayerList& net, const std::string& name, const Conv2d& op, LayerId x) {
  return net.add(name + ".relu", Activation{}, conv_bn(net, name + ".conv", name + ".bn", op, x));
}

LayerId residual_block(LayerList& net, const std::string& name, LayerId x) {
  const Conv2d op = square(kChannels, kChannels, 3, 1);
  LayerId y = conv_bn_relu(net, name + ".0", op, x);
  y = conv_bn(net, name + ".1.conv", name + ".1.bn", op, y);
  return net.add(name + ".relu", Activation{}, net.add(name + ".add", Add{}, {x, y}));
}

LayerId policy_loss(LayerList& net, LayerId x) {
  constexpr std::int64_t kMoves = kPoints + 1;  // all points, or pass
  net.set_group("policy");
  x = conv_bn_relu(net, "policy", square(kChannels, 2, 1, 1), x);
  x = net.add("policy.flatten", Flatten{}, x);
  x = net.add("policy.fc", Linear{2 * kPoints, kMoves}, x);
  return net.add("policy.loss", SoftmaxCrossEntropy{kMoves}, x);
}

LayerId value_loss(LayerList& net, LayerId x) {
  net.set_group("value");
  x = conv_bn_relu(net, "value", square(kChannels, 1, 1, 1), x);
  x = net.add("value.flatten", Flatten{}, x);
  x = net.add("value.fc1", Linear{kPoints, 256}, x);
  x = net.add("value.fc1.relu", Activation{}, x);
  x = net.add("value.fc2", Linear{256, 1}, x);
  x = net.add("value.tanh", Activation{ActivationKind::tanh}, x);
  return net.add("value.loss", MeanSquaredError{}, x);
}

}  // namespace

Expected<ModelGraph> make_alphago_zero(std::string name, int blocks) {
  LayerList net(24 + 8 * static_cast<std::size_t>(blocks));
  net.set_group("tower.0");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  x = conv_bn_relu(net, "tower.0", square(kPlanes, kChannels, 3, 1), x);
  for (int i = 1; i < blocks; ++i) {
    const std::string block = fmt::format("tower.{}", i);
    net.set_group(block);
    x = residual_block(net, block, x);
  }
  const LayerId policy = policy_loss(net, x);
  const LayerId value = value_loss(net, x);
  net.set_group("head");
  net.add("loss", Add{}, {policy, value});
  return ModelGraph::make(std::move(name), SampleUnit::image, {kPlanes, kBoard, kBoard},
                          net.take());
}

}  // namespace reckon
