#pragma once

namespace reckon::cuda {

/// What activations, their gradients and the weights that layers read are held in.
enum class DevicePrecision { fp32, bf16, fp16 };

}  // namespace reckon::cuda
