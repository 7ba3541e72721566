#pragma once
#include <vector>

#include "sim/model/zoo/vision/convolutions.h"
#include "sim/model/zoo/vision/images.h"

namespace reckon {

/// The maps behind each of its stages, stem first, without the last 1x1 and the classifier.
std::vector<Features> efficientnet_stages(LayerList& net, const EfficientNetShape& shape,
                                          LayerId image);

}  // namespace reckon
