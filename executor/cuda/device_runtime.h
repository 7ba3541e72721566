#pragma once
#include <memory>
#include <string>

#include "executor/cuda/device_memory.h"
#include "executor/train/device_layers.h"
#include "executor/train/step_runtime.h"

// The runtime of a ModelGraph on one CUDA device: the schedule and the memory plan of the CPU's,
// the kernels of kernels/, products by cuBLASLt. In bf16 and fp16, activations, their gradients
// and the weights that layers read have 16 bits; master weights, gradients of weights, sums and
// statistics are float [Micikevicius 2018, arXiv:1710.03740, section 3; bf16 needs no loss scaling,
// that of fp16 is the training loop's, executor/train/loss_scale.h].
namespace reckon::cuda {

/// Parameters as a device has them, which is what the exchange there works on: every slot begins at
/// a multiple of 256 bytes, in float and in 16 bits, and is filled up with zeros, whose gradients
/// are zeros and which no optimizer moves. Matrices get rows of zeros up to a multiple of
/// kMatrixRows.
constexpr std::int64_t kMatrixRows = 8;
ParameterLayout device_layout(const ParameterLayout& layout);

enum class DevicePrecision { fp32, bf16, fp16 };

/// On the current device of the calling thread. `model` must outlive it; cannot_run() and
/// cannot_run_on_device() must be empty. Work is queued on `stream`; forward() waits for the loss,
/// backward() for the gradients.
/// Throws DeviceError, also where memory is short.
std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model, RuntimeOptions options,
                                                 DevicePrecision precision, cudaStream_t stream);

}  // namespace reckon::cuda
