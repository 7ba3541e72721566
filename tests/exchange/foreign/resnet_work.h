#pragma once
#include "exchange/foreign/imported.h"

namespace reckon::test {

/// What the tests train on the clusters that they import.
inline const ImportedWork kResNet50{.model = "resnet50",
                                    .dataset = "imagenet",
                                    .length = "epochs: 90",
                                    .precision = "",
                                    .batch = std::nullopt,
                                    .assumed = {}};

}  // namespace reckon::test
