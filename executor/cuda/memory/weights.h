#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "executor/cuda/memory/streams.h"
#include "executor/cuda/precision.h"
#include "executor/train/workers.h"

// Weights that the host has, as a device's layers read them.
namespace reckon::cuda {

/// Of an element.
constexpr std::size_t weight_bytes(DevicePrecision precision) {
  return precision == DevicePrecision::fp32 ? 4 : 2;
}

/// Elements of the host's memory that a thread works on at a time.
constexpr std::int64_t kHostPiece = std::int64_t{1} << 15;

/// from.size() elements to the nearest, ties to even, as gpu::round_to() does; in fp32 the same
/// bits. And back, which is exact.
void round_weights(DevicePrecision precision, std::span<const float> from, std::span<std::byte> to);
void widen_weights(DevicePrecision precision, std::span<const std::byte> from, std::span<float> to);

/// The way to the device: a part is rounded, by all of the rank's threads, while the one before it
/// travels. `workers` must outlive it.
class WeightUpload {
 public:
  WeightUpload(DevicePrecision precision, Workers& workers)
      : precision_(precision), workers_(workers) {}
  /// Queued behind what `stream` has been asked for; `from` may be changed when it returns. Throws
  /// DeviceError.
  void queue(std::span<const float> from, std::byte* to, cudaStream_t stream);

 private:
  static constexpr std::size_t kAtOnce = std::size_t{1} << 20;  // elements
  struct Part {
    PinnedBuffer<std::byte> memory;
    Event sent;
  };
  const DevicePrecision precision_;
  Workers& workers_;
  std::array<Part, 2> parts_;
  std::size_t next_ = 0;
};

}  // namespace reckon::cuda
