#pragma once
#include <string>

#include "sim/model/zoo/builder.h"

// What the builders of convolutional networks share.
namespace reckon {

struct Features {
  LayerId layer{};
  std::int64_t channels = 0;
};

/// kernel x kernel, padded so that stride 1 keeps the size.
inline Conv2d square(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return {.in = in,
          .out = out,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride = stride,
          .padding = kernel / 2};
}

inline LayerId conv_bn(LayerList& net, const std::string& conv, const std::string& bn,
                       const Conv2d& op, LayerId input) {
  return net.add(bn, BatchNorm{op.out}, net.add(conv, op, input));
}

}  // namespace reckon
