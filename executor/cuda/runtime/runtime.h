#pragma once
#include <memory>
#include <string>

#include "executor/comm/zero_exchange.h"
#include "executor/cuda/runtime/graph.h"
#include "executor/train/device/layers.h"
#include "executor/train/step_runtime.h"

// The runtime of a ModelGraph on one CUDA device. In bf16 and fp16, activations, their gradients
// and the weights that layers read have 16 bits; master weights, gradients of weights, sums and
// statistics are float [Micikevicius 2018, arXiv:1710.03740, section 3; bf16 needs no loss scaling,
// that of fp16 is the training loop's, executor/train/loss_scale.h].
namespace reckon::cuda {

/// On the current device of the calling thread. `model` must outlive it; cannot_run() and
/// cannot_run_on_device() must be empty. Work is queued on `stream`; forward() waits for the loss,
/// backward() for the gradients.
/// Throws DeviceError, also where memory is short.
std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model, RuntimeOptions options,
                                                 DevicePrecision precision, cudaStream_t stream);

/// The same of a rank that has its parameters in `parameters`, which an exchange shares, and a
/// place among those that share the model. `gathers`: with ZeRO's stage 3 the exchange, as
/// make_sharded_runtime() has it. exchanged() is then DeviceParameters::exchanged(). All arguments
/// must outlive it.
std::unique_ptr<StepRuntime> make_device_runtime(const ModelGraph& model,
                                                 const RuntimeOptions& options,
                                                 DeviceParameters& parameters,
                                                 const DeviceGroups& groups, ZeroExchange* gathers,
                                                 DevicePrecision precision, cudaStream_t stream);

}  // namespace reckon::cuda
