#pragma once
#include <string>

#include "sim/model/graph.h"

// Networks that exist for CIFAR-10 alone: 3 x 32 x 32, ten classes.
namespace reckon {

/// [He 2016, arXiv:1512.03385, section 4.2]: a 3x3 stem of 16 channels and three stages of 16, 32
/// and 64; `blocks` a stage, 6 blocks + 2 layers. With bottlenecks [He 2016, "Identity mappings in
/// deep residual networks", arXiv:1603.05027, table 4] four times as many channels leave a block:
/// 9 blocks + 2 layers. Where a stage begins with other channels its shortcut is a 1x1 convolution.
struct DeepCifarResNet {
  int blocks = 0;
  bool bottleneck = false;
};
Expected<ModelGraph> make_deep_cifar_resnet(std::string name, const DeepCifarResNet& shape);

/// Page's network of nine layers with weights, with which most fast entries of DAWNBench train
/// [davidcpage/cifar10-fast, "How to train your ResNet", 2018]: 64 channels; 128, 256 and 512 each
/// behind a pooling by two, with a residual block of two 3x3 in the first and the last.
Expected<ModelGraph> make_resnet9_cifar10();

}  // namespace reckon
