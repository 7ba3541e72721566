#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "executor/cuda/exchange/reducer.h"
#include "executor/train/parameters.h"

namespace reckon::cuda {

/// The ranks of a worker, of several (executor/comm/parameter_server/worker_exchange.h, whose rules
/// hold): both null: it is one.
struct StagedWorker {
  DeviceReducer* devices = nullptr;
  Communicator* hosts = nullptr;
  bool in_lockstep = true;
};

/// A device's gradients and parameters through an exchange of the host's memory, as the workers of
/// parameter servers need it: gradients are copied to pinned memory as soon as the backward pass
/// has made them, behind it, on a stream of their own, and handed to `host` in the same order; the
/// new values are copied back when a step ends. Where parameter servers see several ranks as one
/// worker their devices add up first, and the first of them alone has a `host` and gives the others
/// the new values. `layout` is the host's, and the view that start() takes device_layout(layout).
/// Rows of tables that `host` pulls for a step are copied to the device before the passes that need
/// them; of a worker of one rank. `host` keeps no parts. Throws DeviceError, and what `host`
/// throws.
std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream,
                                                       StagedWorker worker = {});

}  // namespace reckon::cuda
