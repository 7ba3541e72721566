#pragma once
#include <memory>

#include "executor/cuda/runtime/graph.h"
#include "executor/train/layouts/pipeline/stage_compute.h"

namespace reckon::cuda {

/// A stage of a pipeline on the current device of the calling thread. What crosses a cut goes
/// through pinned memory, in the precision's bits. `parameters` are the stage's, which an exchange
/// shares. All arguments must outlive it. Throws DeviceError.
std::unique_ptr<StageCompute> make_device_stage(const ModelGraph& model,
                                                DeviceParameters& parameters,
                                                const DeviceGroups& groups,
                                                DevicePrecision precision, cudaStream_t stream);

}  // namespace reckon::cuda
