#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <span>

#include "executor/comm/communicator.h"
#include "executor/cuda/exchange/reducer.h"

namespace reckon::cuda {

/// What goes to a rank, and room for what comes from it: as much as it has for this one.
struct DeviceSwap {
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

/// Collectives of the devices of some ranks, over numbers in their memory: behind what `stream` has
/// been asked to make so far, and in front of what it is asked for from then on. Every rank calls
/// the same functions in the same order, from one thread at a time.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Element-wise sum over all ranks, in place: the same bits on all of them.
  virtual void queue_all_reduce(std::span<float> values, cudaStream_t stream) = 0;
  /// As Communicator's of those names.
  virtual void queue_all_gather(std::span<const float> mine, std::span<float> all,
                                cudaStream_t stream) = 0;
  virtual void queue_reduce_scatter(std::span<const float> all, std::span<float> mine,
                                    cudaStream_t stream) = 0;
  /// All ranks get rank 0's.
  virtual void queue_broadcast(std::span<float> values, cudaStream_t stream) = 0;
  /// With each rank, in their order, itself among them. Nothing is sent where there is nothing.
  virtual void queue_swaps(std::span<const DeviceSwap> with, cudaStream_t stream) = 0;
};

/// A group that sums gradients behind a backward pass, too.
class ReducingGroup : public DeviceGroup, public DeviceReducer {
 public:
  int size() const override = 0;
};

/// Through pinned memory of the host and the hosts' communicator, where devices have no way to each
/// other: sums are those of `hosts` (its order, its bits). Calls return when they are done. `hosts`
/// must outlive it. Throws DeviceError, and what `hosts` throws.
std::unique_ptr<ReducingGroup> make_staged_group(Communicator& hosts);

}  // namespace reckon::cuda
