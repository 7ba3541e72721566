#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "executor/comm/paged_buffer.h"
#include "executor/comm/zero_shards.h"
#include "executor/cuda/memory/buffers.h"
#include "executor/cuda/memory/streams.h"
#include "executor/cuda/precision.h"
#include "executor/train/parameters.h"

// A rank's parameters and their gradients in its device's memory, and the host's copy of them.
namespace reckon::cuda {

/// Parameters as a device has them, which is what an exchange there works on: every slot begins at
/// a multiple of 256 bytes, in float and in 16 bits, and is filled up with zeros, whose gradients
/// are zeros and which no optimizer moves. Matrices get rows of zeros up to a multiple of
/// kMatrixRows.
constexpr std::int64_t kMatrixRows = 8;
constexpr std::int64_t whole_rows(std::int64_t rows) {
  return (rows + kMatrixRows - 1) / kMatrixRows * kMatrixRows;
}
ParameterLayout device_layout(const ParameterLayout& layout);

/// Memory of a device that is used in turns: what one has given back another takes.
class MemoryPool {
 public:
  /// At least so many bytes. Waits for what was queued on the streams of whoever had them.
  DeviceBuffer<std::byte> take(std::size_t bytes);
  /// To be used again behind what `stream` has been asked to do so far; or at once.
  void give(DeviceBuffer<std::byte> memory, cudaStream_t stream);
  void give(DeviceBuffer<std::byte> memory);

 private:
  struct Free {
    DeviceBuffer<std::byte> memory;
    std::unique_ptr<Event> used;
  };
  std::mutex mutex_;
  std::vector<Free> free_;
};

/// The parameters lie in pieces. There is one of all, which stays; or, with ZeRO's stage 2 and 3,
/// one a block of the exchange (exchange_blocks()): the gradients of a block, and with stage 3 its
/// values, have memory from when they are asked for until they are dropped. Copies of other stages'
/// weights are a piece that stays.
class DeviceParameters {
 public:
  /// `blocks`: of `layout`, as the host has it. Zeros. Throws DeviceError.
  DeviceParameters(const ParameterLayout& layout, const std::vector<ZeroBlock>& blocks,
                   int zero_stage, DevicePrecision precision, cudaStream_t stream);

  const ParameterLayout& layout() const { return layout_; }  // the host's
  const ParameterLayout& padded() const { return padded_; }  // the device's
  /// What an exchange is given: all there is, of one piece; of several the host's values alone.
  ParameterView exchanged();

  std::size_t piece_of(std::size_t slot) const { return piece_of_[slot]; }
  std::size_t pieces() const { return pieces_.size(); }
  /// Of the padded layout.
  ParameterRange range(std::size_t piece) const { return pieces_[piece].range; }

  /// Values that are there.
  std::span<float> values(std::size_t piece) { return floats(pieces_[piece].values, piece); }
  /// The same, with memory for them, from whichever thread; they are to be filled in.
  std::span<float> take_values(std::size_t piece);
  /// Layers do not read them any more, behind what the stream has been asked for.
  void drop_values(std::size_t piece);
  /// With memory, of zeros, where there is none.
  std::span<float> gradients(std::size_t piece);
  /// Nothing that is queued reads them.
  void drop_gradients(std::size_t piece);

  /// As layers read it, in the precision: rounded where the values are newer. The value itself;
  /// where its gradient is added to.
  const void* weight(std::size_t slot);
  float* master(std::size_t slot) { return at_slot(pieces_[piece_of_[slot]].values, slot); }
  float* gradient(std::size_t slot) {
    gradients(piece_of_[slot]);
    return at_slot(pieces_[piece_of_[slot]].gradients, slot);
  }
  /// Values have changed.
  void changed();
  /// Of all gradients that stay; the others are zero when they come.
  void clear_gradients();

  /// Of layout(). What is not there stays as it is on the other side.
  std::span<float> host() { return host_.span(); }
  void to_host();
  void to_device();

 private:
  struct Piece {
    ParameterRange range;
    bool values_stay = true, gradients_stay = true, is_rounded = false;
    DeviceBuffer<std::byte> values, gradients, rounded;
  };
  template <class Copy>
  void for_slots(Copy copy);
  std::span<float> floats(DeviceBuffer<std::byte>& memory, std::size_t piece) const {
    return {reinterpret_cast<float*>(memory.data()), pieces_[piece].range.count};
  }
  float* at_slot(DeviceBuffer<std::byte>& memory, std::size_t slot) const {
    return reinterpret_cast<float*>(memory.data()) + offset(slot);
  }
  std::size_t offset(std::size_t slot) const {
    return padded_.slots[slot].first - pieces_[piece_of_[slot]].range.first;
  }

  const ParameterLayout layout_, padded_;
  const int zero_stage_;
  const DevicePrecision precision_;
  cudaStream_t stream_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> piece_of_;  // by slot
  MemoryPool pool_;
  PagedBuffer host_;
};

}  // namespace reckon::cuda
