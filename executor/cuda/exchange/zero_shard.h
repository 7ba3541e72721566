#pragma once
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/zero_exchange.h"
#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/parameters.h"

// What a rank keeps of each block of a ZeRO exchange, in its device's memory.
namespace reckon::cuda {

/// Elements of a block that are cut over ranks, by slot: ranges of the padded layout, without what
/// fills slots up.
struct CutRanges {
  std::vector<ParameterRange> all;
  ShardedRanges shards;
};

/// What a rank has of a block.
struct DeviceShard {
  DeviceGroup* peers = nullptr;  // between which it is cut
  bool of_experts = false;
  std::size_t piece = 0;      // of the parameters
  std::size_t to_reduce = 0;  // trained elements of the block, with what fills slots up
  ParameterRange host;        // of the host's layout
  CutRanges trained, frozen;
  DeviceBuffer<float> first, second;     // velocities, none; or moments: of the trained part
  DeviceBuffer<float> gradients;         // stages 2 and 3: of it, over the step's passes
  DeviceBuffer<float> values, constant;  // stage 3: parameters of the trained, the frozen part
  std::vector<std::vector<float>> here;  // the kept part as the host has it: values, state
  std::vector<float> constant_here;
  std::unique_ptr<Event> made = std::make_unique<Event>();

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
                    std::vector<float>& values, std::span<std::vector<float>> state,
                    std::vector<KeptPart>& kept);

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
