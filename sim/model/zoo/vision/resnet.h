#pragma once
#include <span>
#include <vector>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

namespace reckon {

/// Stem and the first `stages` stages of a ResNet over `image`; what comes out of each stage. A
/// detector's is mostly trained from ImageNet's weights: `frozen_stages` of them, and the stem with
/// the first, stay as they are, and with them all batch norms (torchvision's
/// resnet_fpn_backbone(trainable_layers), FrozenBatchNorm2d). `last_stride`: of the last stage.
struct Backbone {
  int stages = 4;
  int frozen_stages = 0;
  std::int64_t last_stride = 2;
};
std::vector<Features> resnet_stages(LayerList& net, const ResNetShape& shape, LayerId image,
                                    const Backbone& backbone);

}  // namespace reckon
