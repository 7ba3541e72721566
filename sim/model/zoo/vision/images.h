#pragma once
#include <array>
#include <string>

#include "sim/model/graph.h"

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
  // ResNeXt [Xie 2017, arXiv:1611.05431] and wide ResNet [Zagoruyko 2016, arXiv:1605.07146]:
  // torchvision's `groups` and `width_per_group` of a bottleneck's 3x3.
  std::int64_t groups = 1, width_per_group = 64;
  /// Squeeze-and-excitation behind each bottleneck, so many times narrower inside [Hu 2018,
  /// arXiv:1709.01507]; 0: none. Its layers on one point are Linear here.
  std::int64_t squeeze = 0;
  /// CIFAR's: 32 x 32, a 3x3 stem of stride 1, no pooling (kuangliu/pytorch-cifar, resnet.py).
  bool small_images = false;
  std::int64_t classes = 1000;
};
Expected<ModelGraph> make_resnet(std::string name, const ResNetShape& shape);

/// [Simonyan 2015, arXiv:1409.1556, table 1] by the convolutions of its five stages (configuration
/// D, 16 layers: 2, 2, 3, 3, 3); torchvision/models/vgg.py (its adaptive pooling to 7 x 7 is the
/// identity at this input size).
Expected<ModelGraph> make_vgg(std::string name, const std::array<int, 5>& convolutions);

/// [Krizhevsky 2014, arXiv:1404.5997]; torchvision/models/alexnet.py (its adaptive pooling to 6 x 6
/// is the identity at this input size).
Expected<ModelGraph> make_alexnet();

/// [Szegedy 2015, arXiv:1512.00567]; torchvision/models/inception.py with its auxiliary classifier,
/// whose loss counts 0.4 (references/classification/train.py). Inputs of 3 x 299 x 299.
Expected<ModelGraph> make_inception_v3();

/// [Tan 2019, arXiv:1905.11946, table 1, scaled]; torchvision/models/efficientnet.py, stochastic
/// depth included. The two convolutions of a squeeze-and-excitation on one point are Linear here.
struct EfficientNetShape {
  double width = 1, depth = 1;  // multipliers of channels and of blocks
  std::int64_t resolution = 224;
  double dropout = 0.2;  // probability
  /// Squeezes the expanded channels to a quarter, not the block's input
  /// (NVIDIA/DeepLearningExamples:PyTorch/Classification/ConvNets/efficientnet, "WideSE").
  bool wide_squeeze = false;
};
Expected<ModelGraph> make_efficientnet(std::string name, const EfficientNetShape& shape);

/// [Huang 2017, arXiv:1608.06993, table 1]; torchvision/models/densenet.py.
struct DenseNetShape {
  std::array<int, 4> layers{};  // of a block
  std::int64_t growth = 32;     // channels that a layer adds; the stem has twice as many
};
Expected<ModelGraph> make_densenet(std::string name, const DenseNetShape& shape);

/// [Liu 2022, arXiv:2201.03545, section 2]; torchvision/models/convnext.py. Left out: the scale of
/// a channel behind each block, one parameter a channel, which a compiler folds into the product
/// before it. Norms over the channels of a point count as group norms of one group.
struct ConvNextShape {
  std::array<int, 4> blocks{};
  std::int64_t width = 96;        // channels of the first stage
  double stochastic_depth = 0.1;  // probability that the last block is dropped
};
Expected<ModelGraph> make_convnext(std::string name, const ConvNextShape& shape);

/// [Sandler 2018, arXiv:1801.04381]; torchvision/models/mobilenetv2.py. Its ReLU6 counts as a ReLU.
Expected<ModelGraph> make_mobilenet_v2();

/// [Silver 2017, Nature 550, 354-359, methods, "Neural network architecture"]: 17 planes of 19 x
/// 19, 256 channels; one convolutional block and blocks - 1 residual ones (the paper's 19 or 39).
/// Policy and value head, the sum of their losses.
Expected<ModelGraph> make_alphago_zero(std::string name, int blocks);

/// keras/examples/mnist_mlp.py without its dropout: 28 x 28 grey images, 512 and 512 hidden, 10
/// classes.
Expected<ModelGraph> make_mnist_mlp();

}  // namespace reckon
