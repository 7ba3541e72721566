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
#include "executor/cuda/memory/weights.h"
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
///
/// Where the optimizer is offloaded (Layout::offload_optimizer) the exchange has the weights that
/// the optimizer changes in the host's memory, and the device those that layers read, in the
/// precision: weights(). In fp32 they are the values below, in 16 bits there are no such values.
class DeviceParameters {
 public:
  /// `blocks`: of `layout`, as the host has it. Zeros. Throws DeviceError.
  DeviceParameters(const ParameterLayout& layout, const std::vector<ZeroBlock>& blocks,
                   int zero_stage, DevicePrecision precision, cudaStream_t stream,
                   bool offloaded = false);

  const ParameterLayout& layout() const { return layout_; }  // the host's
  const ParameterLayout& padded() const { return padded_; }  // the device's
  DevicePrecision precision() const { return precision_; }
  /// What an exchange is given: all there is, of one piece; of several, and where the optimizer is
  /// offloaded, the host's values alone.
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
  /// Where the optimizer is offloaded: the weights of a piece that are there, and with memory for
  /// them, as values() and take_values(); of a slot. An element has weight_bytes(precision()).
  std::span<std::byte> weights(std::size_t piece);
  std::span<std::byte> take_weights(std::size_t piece);
  std::byte* weights_of(std::size_t slot);
  /// With memory, of zeros, where there is none.
  std::span<float> gradients(std::size_t piece);
  /// Nothing that is queued reads them.
  void drop_gradients(std::size_t piece);

  /// As layers read it, in the precision: rounded where the values are newer. The value itself,
  /// where the device has it; where its gradient is added to.
  const void* weight(std::size_t slot);
  float* master(std::size_t slot) { return at_slot(pieces_[piece_of_[slot]].values, slot); }
  float* gradient(std::size_t slot) {
    gradients(piece_of_[slot]);
    return at_slot(pieces_[piece_of_[slot]].gradients, slot);
  }
  /// A slot's value, or what its layers read of it; and another, in place of it. Not queued.
  void fetch(std::size_t slot, std::span<float> value);
  void set(std::size_t slot, std::span<const float> value);
  /// Values have changed.
  void changed();
  /// Of all gradients that stay; the others are zero when they come.
  void clear_gradients();

  /// What the device holds of values, weights and gradients now, without what waits to be used.
  Bytes held() const;

  /// Of layout(). What is not there stays as it is on the other side. Where the optimizer is
  /// offloaded, to_host() leaves what the exchange has there: of stage 0, and in 16 bits, all.
  std::span<float> host() { return host_.span(); }
  void to_host();
  void to_device();

 private:
  struct Piece {
    ParameterRange range;
    bool values_stay = true, gradients_stay = true, is_rounded = false;
    DeviceBuffer<std::byte> values, gradients, rounded;
  };
  /// The device has weights in 16 bits, and no values.
  bool rounded_alone() const { return offloaded_ && precision_ != DevicePrecision::fp32; }
  DeviceBuffer<std::byte>& weights_in(Piece& piece) {
    return rounded_alone() ? piece.rounded : piece.values;
  }
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
  const bool offloaded_;
  cudaStream_t stream_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> piece_of_;  // by slot
  MemoryPool pool_;
  PagedBuffer host_;
};

}  // namespace reckon::cuda
