#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "executor/comm/stepped_zero.h"
#include "executor/cuda/exchange/zero_shard.h"
#include "executor/train/recipe/recipe.h"

namespace reckon::cuda {

/// What ZeRO's exchanges of gradients in a device's memory have alike, wherever the optimizer is.
/// Block: a DeviceBlock, and what a rank has of it.
template <class Block>
class DeviceZero : public SteppedZero {
 public:
  std::vector<ParameterRange> blocks_to_take() override {
    std::vector<ParameterRange> ranges;
    if (options_.stage >= 3)
      for (const Block& block : blocks_) ranges.push_back(block.host);
    return ranges;
  }
  void gradient_ready(ParameterRange range) override {
    if (range.count == 0) return;
    const std::size_t k = block_of(blocks_, parameters_, range);
    if (!steps().gradients_ready(k, range.count)) return;
    check(cudaEventRecord(blocks_[k].made->get(), stream_), "gradients");
    steps().all_ready(k);
  }
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override {
    check(cudaStreamSynchronize(stream_), "backward pass");
    return SteppedZero::finish_step(step, learning_rate);
  }
  void release(std::size_t block) override { parameters_.drop_values(blocks_[block].piece); }

 protected:
  DeviceZero(DeviceGroup& replicas, ZeroOptions options, DeviceParameters& parameters,
             cudaStream_t stream)
      : SteppedZero(std::move(options)),
        replicas_(replicas),
        parameters_(parameters),
        stream_(stream),
        trained_(trained_ranges(parameters.padded())),
        counted_(options_.counted ? in_padded(parameters, *options_.counted) : trained_) {}

  /// make(block, the devices between which it is cut) of each, and memory for their messages.
  template <class Make>
  void make_blocks(DeviceGroup* expert_replicas, Make make) {
    std::size_t largest = 0, largest_of_all = 0;
    for (const ZeroBlock& b : options_.blocks) {
      RECKON_CHECK(!b.of_experts || expert_replicas != nullptr);
      blocks_.push_back(make(b, b.of_experts ? *expert_replicas : replicas_));
      for (const CutRanges* c : {&blocks_.back().trained, &blocks_.back().frozen}) {
        largest = std::max(largest, c->shards.each());
        largest_of_all = std::max(largest_of_all, c->shards.padded());
      }
    }
    all_ = DeviceBuffer<float>(count_of(largest_of_all));
    part_ = DeviceBuffer<float>(count_of(largest));
  }
  /// Behind make_blocks(): what steps() is. Its thread uses this thread's device.
  void begin(std::optional<ZeroSteps>& steps, Communicator& hosts) {
    std::vector<std::size_t> to_reduce;
    for (const Block& block : blocks_) to_reduce.push_back(block.to_reduce);
    int device = 0;
    check(cudaGetDevice(&device), "the device");
    steps.emplace(static_cast<ZeroParts&>(*this), options_, hosts, std::move(to_reduce));
    steps->run([device] { check(cudaSetDevice(device), "choosing a device"); });
  }
  void wait_for_copies() { check(cudaStreamSynchronize(copies_.get()), "exchange of a block"); }
  /// To each of the block's other ranks, so many numbers.
  void note_sent(const DeviceBlock& block, std::size_t floats) {
    steps().note_sent(Bytes{double(std::size_t(block.peers->size() - 1) * floats * sizeof(float))});
  }

  DeviceGroup& replicas_;
  DeviceParameters& parameters_;
  cudaStream_t stream_;
  const std::vector<TrainedRange> trained_, counted_;  // of the padded layout
  std::vector<Block> blocks_;
  DeviceBuffer<float> all_, part_;  // a message: of all ranks' parts, of this one's
  OwnStream copies_;                // of the steps' thread, and of what comes when it rests
};

}  // namespace reckon::cuda
