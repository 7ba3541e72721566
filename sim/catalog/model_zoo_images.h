#pragma once
#include <array>
#include <string>

#include "sim/catalog/model_graph.h"

// Networks for images, each built for inputs of 3 x 224 x 224 and 1,000 classes (ImageNet) unless
// said otherwise.
namespace reckon {

/// [He 2016, arXiv:1512.03385, table 1]. Layers and names: torchvision/models/resnet.py; its one
/// ReLU module is used several times in a block, the names of the uses (relu, relu_1, relu_2, add)
/// are those of torchvision's feature_extraction.
struct ResNetShape {
  std::array<int, 4> blocks{};  // a stage
  bool bottleneck = false;      // 1x1, 3x3, 1x1 with four times the channels; else two 3x3
  /// Where a bottleneck halves the image: v1 (the paper) in its first 1x1, v1.5 (torchvision) in
  /// its 3x3.
  bool stride_in_3x3 = false;
};
Expected<ModelGraph> make_resnet(std::string name, const ResNetShape& shape);

/// Configuration D of [Simonyan 2015, arXiv:1409.1556, table 1]; torchvision/models/vgg.py (its
/// adaptive pooling to 7 x 7 is the identity at this input size).
Expected<ModelGraph> make_vgg16();

/// keras/examples/mnist_mlp.py without its dropout: 28 x 28 grey images, 512 and 512 hidden, 10
/// classes.
Expected<ModelGraph> make_mnist_mlp();

}  // namespace reckon
