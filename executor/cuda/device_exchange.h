#pragma once
#include <memory>
#include <span>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/cuda/device_memory.h"
#include "executor/train/parameters.h"

// The optimizer on a device, and between devices the sum of gradients.
namespace reckon::cuda {

/// Sums over the devices of a job, queued behind the work that made the gradients and in front of
/// the work that reads them, while the backward pass goes on. NCCL is one.
class DeviceReducer {
 public:
  virtual ~DeviceReducer() = default;
  virtual int size() const = 0;
  /// All ranks get rank 0's; returns when it is done.
  virtual void broadcast_values(std::span<float> values) = 0;
  /// Element-wise sums, in place, of what `stream` has been asked to make so far.
  virtual void queue_sums(std::span<const std::span<float>> ranges, cudaStream_t stream) = 0;
  /// What is queued on `stream` from now on sees the sums.
  virtual void join(cudaStream_t stream) = 0;
};

/// As make_all_reduce_exchange(), over parameters in the device's memory, device_layout(layout);
/// options.trained, and where it is given options.counted, are made from `layout`.
/// optimizer_state() is a copy on the host in the order of `layout`, so checkpoints do not depend
/// on the device. `reducer` may be null: one device. finish_step() returns when the device has done
/// the step.
std::unique_ptr<GradientExchange> make_device_exchange(DeviceReducer* reducer,
                                                       AllReduceOptions options,
                                                       const ParameterLayout& layout,
                                                       cudaStream_t stream);

}  // namespace reckon::cuda
