#pragma once
#include <functional>
#include <memory>

#include "executor/cuda/exchange/group.h"
#include "executor/cuda/precision.h"
#include "executor/train/layouts/layout_training.h"

namespace reckon::cuda {

/// How the devices of some ranks exchange: NCCL, or make_staged_group(). Collective over `hosts`.
using GroupMaker = std::function<std::unique_ptr<ReducingGroup>(Communicator& hosts)>;

/// Ranks of a layout that train on the current device of the calling thread, queueing on `stream`;
/// cannot_run_on_device() of the model is empty. Throws DeviceError, and what `groups` throws.
std::unique_ptr<LayoutMaker> make_device_layouts(DevicePrecision precision, cudaStream_t stream,
                                                 GroupMaker groups);

}  // namespace reckon::cuda
