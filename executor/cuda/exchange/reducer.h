#pragma once
#include <cuda_runtime.h>

#include <span>

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
  /// Behind a wait for sums: throws CommError where a rank is lost, and they may be none.
  virtual void check_peers(const char* /*what*/) {}
};

}  // namespace reckon::cuda
