#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/zero_exchange.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/parameters.h"
#include "sim/base/check.h"

// What a rank keeps of each block of a ZeRO exchange, in its device's memory.
namespace reckon::cuda {

/// Elements of a block that are cut over ranks, by slot: ranges of the padded layout, without what
/// fills slots up.
struct CutRanges {
  std::vector<ParameterRange> all;
  ShardedRanges shards;
};

/// A block, and what of it is this rank's.
struct DeviceBlock {
  DeviceGroup* peers = nullptr;  // between which it is cut
  bool of_experts = false;
  std::size_t piece = 0;      // of the parameters
  std::size_t to_reduce = 0;  // trained elements of the block, with what fills slots up
  ParameterRange host;        // of the host's layout
  CutRanges trained, frozen;
  std::unique_ptr<Event> made = std::make_unique<Event>();  // its gradients of a pass
};
/// Of the rank's place in `peers`.
DeviceBlock make_device_block(const ZeroBlock& block, const DeviceParameters& parameters,
                              DeviceGroup& peers);

/// What a rank has of a block.
struct DeviceShard : DeviceBlock {
  DeviceBuffer<float> first, second;     // velocities, none; or moments: of the trained part
  DeviceBuffer<float> gradients;         // stages 2 and 3: of it, over the step's passes
  DeviceBuffer<float> values, constant;  // stage 3: parameters of the trained, the frozen part
  std::vector<std::vector<float>> here;  // the kept part as the host has it: values, state
  std::vector<float> constant_here;

  /// The optimizer's.
  std::vector<DeviceBuffer<float>*> state();
  /// Floats on the device.
  std::int64_t held() const;
};

/// Of the rank's place in `peers`, with memory for what options.stage and options.optimizer keep,
/// of zeros. Throws DeviceError.
DeviceShard make_device_shard(const ZeroBlock& block, const ZeroOptions& options,
                              const DeviceParameters& parameters, DeviceGroup& peers);

/// All parameters get the values of rank 0 of `replicas`, blocks of experts those of rank 0 of
/// their peers. Collective over all of them; waits.
void share_first_values(DeviceGroup& replicas, const std::vector<DeviceShard>& blocks,
                        DeviceParameters& parameters, cudaStream_t stream);

/// The same elements, slot by slot, in the padded layout.
std::vector<TrainedRange> in_padded(const DeviceParameters& parameters,
                                    const std::vector<TrainedRange>& of_host);
/// Where an element of the padded layout is on the host.
std::size_t host_place(const DeviceParameters& parameters, std::size_t padded);

/// Adds to `kept` this rank's part of the ranges, whose values and optimizer's state lie one behind
/// another in `values` and in each of `state`.
void add_kept_parts(const DeviceParameters& parameters, const CutRanges& ranges,
                    std::span<float> values, std::span<const std::span<float>> state,
                    std::vector<KeptPart>& kept);

/// Memory of a piece, as messages are made of it: elements [first, ...) of the padded layout, of
/// `bytes` each.
struct PieceMemory {
  std::byte* data = nullptr;
  std::size_t first = 0, bytes = sizeof(float);
};
/// The elements of the ranges one behind another, and zeros up to the end of `to`; and back,
/// without those zeros. Queued on the stream.
void queue_pack(const PieceMemory& piece, const std::vector<ParameterRange>& ranges,
                std::span<std::byte> to, cudaStream_t stream);
void queue_unpack(std::span<const std::byte> from, const std::vector<ParameterRange>& ranges,
                  const PieceMemory& piece, cudaStream_t stream);

/// Which of the blocks, ascending, has the range of the padded layout.
template <class Block>
std::size_t block_of(const std::vector<Block>& blocks, const DeviceParameters& parameters,
                     ParameterRange range) {
  const std::size_t first = host_place(parameters, range.first);
  const auto behind =
      std::ranges::upper_bound(blocks, first, {}, [](const Block& b) { return b.host.first; });
  RECKON_CHECK(behind != blocks.begin());
  const auto block = std::prev(behind);
  RECKON_CHECK(first < block->host.first + block->host.count);
  return static_cast<std::size_t>(block - blocks.begin());
}

/// body(first, count, where they begin in the own part, decays) for what of `among` this rank has
/// of the block.
template <class Body>
void for_own(const DeviceShard& block, const std::vector<TrainedRange>& among, Body body) {
  std::size_t done = 0;
  for (const ParameterRange& own : block.trained.shards.own()) {
    for (const TrainedRange& r : part_of(among, own.first, own.count))
      body(own.first + r.first, r.count, done + r.first, r.decays);
    done += own.count;
  }
}

}  // namespace reckon::cuda
