#pragma once
#include <memory>

#include "executor/comm/zero_exchange.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/parameters.h"

namespace reckon::cuda {

/// make_zero_exchange() over parameters in a device's memory: the same blocks and shards
/// (zero_shards.h), which it and the optimizer's state of them keep there. `replicas`: the devices
/// between which state is cut, used by a thread of its own too; `hosts`: the same ranks, for the
/// norm. `options` is of parameters.layout(), in which ranges that the host names are;
/// gradient_ready() takes ranges of parameters.padded(). kept_parts() is a copy on the host, which
/// restore_optimizer_state() reads again. Of stage 3 start() takes the host's values alone.
/// `expert_replicas`: the devices between which blocks of experts are cut, as `replicas`; null:
/// there are none. All arguments must outlive it. Throws DeviceError, and what the groups throw.
std::unique_ptr<ZeroExchange> make_device_zero_exchange(DeviceGroup& replicas,
                                                        DeviceGroup* expert_replicas,
                                                        Communicator& hosts, ZeroOptions options,
                                                        DeviceParameters& parameters,
                                                        cudaStream_t stream);

}  // namespace reckon::cuda
