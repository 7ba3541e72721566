#pragma once
#include <memory>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/cuda/exchange/reducer.h"
#include "executor/train/parameters.h"

namespace reckon::cuda {

/// As make_all_reduce_exchange(), over parameters in the device's memory, device_layout(layout);
/// options.trained, and where it is given options.counted, are made from `layout`.
/// optimizer_state() is a copy on the host in the order of `layout`, so checkpoints do not depend
/// on the device. `reducer` may be null: one device. `expert_replicas`: of devices that have the
/// same experts; null: ranks do not share them out. finish_step() returns when the device has done
/// the step.
std::unique_ptr<GradientExchange> make_device_exchange(DeviceReducer* reducer,
                                                       AllReduceOptions options,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream,
                                                       DeviceReducer* expert_replicas = nullptr);

}  // namespace reckon::cuda
