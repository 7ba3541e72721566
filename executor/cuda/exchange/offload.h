#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/zero_exchange.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/parameters.h"
#include "executor/train/workers.h"

// Layout::offload_optimizer on a device [Ren et al. 2021, "ZeRO-Offload", Sec. 4]: the weights that
// the optimizer changes and its state are in the host's memory, sums of gradients come there behind
// the backward pass, the CPU updates (kernels/optimizer/optimizer.h), and what layers read of the
// new weights goes back. The device has neither (sim/step/memory/layout_memory.h: "optimizer ...
// offloaded: 0"). A step has the bits of the device's own optimizer, whose kernels round as the
// CPU's do; clipped to a norm it has them up to the order of the norm's sum.
//
// ExchangeTimes::apply is the CPU's update and the way back. Of one rank, which waits for nobody
// else, it has what is waited for of the way to the host, too (the forecast's `update`); of several
// that is among their communication.
namespace reckon::cuda {

/// make_device_exchange() of such a layout: every rank has all state. `options` is of
/// parameters.layout(); `hosts`: the same ranks as `reducer`'s, for first values;
/// options.expert_replicas: the same as those of `expert_replicas`, which is null where ranks do
/// not share experts out. `workers`: the rank's threads, all of which update. All must outlive it.
/// Throws DeviceError, and what `reducer` and `hosts` throw.
std::unique_ptr<GradientExchange> make_offloaded_exchange(
    DeviceReducer& reducer, DeviceReducer* expert_replicas, Communicator& hosts,
    AllReduceOptions options, DeviceParameters& parameters, Workers& workers, cudaStream_t stream);

/// make_device_zero_exchange() of such a layout, of one rank too: a rank has its shards of state in
/// the host's memory. With stages 2 and 3 the sums of every pass leave the device block by block
/// (gradients_leave(), sim/step/offload.h). held() is on the device. kept_parts() is what the host
/// has. start() takes the host's values, and gives their pages back. `expert_replicas` and
/// `workers` as above.
std::unique_ptr<ZeroExchange> make_offloaded_zero_exchange(DeviceGroup& replicas,
                                                           DeviceGroup* expert_replicas,
                                                           Communicator& hosts, ZeroOptions options,
                                                           DeviceParameters& parameters,
                                                           Workers& workers, cudaStream_t stream);

}  // namespace reckon::cuda
