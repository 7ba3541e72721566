#pragma once
#include <cuda_runtime.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/cuda/exchange/reducer.h"
#include "executor/train/parameters.h"
#include "sim/step/buckets.h"

// Which gradients of a device are added up over which ranks, bucket by bucket, where every rank has
// all state.
namespace reckon::cuda {

/// Gradients that the same ranks add up, and the bucket of them that is being filled.
class OpenSums {
 public:
  /// nullptr: this rank alone.
  explicit OpenSums(DeviceReducer* reducer) : reducer_(reducer) {}

  int ranks() const { return reducer_ == nullptr ? 1 : reducer_->size(); }
  bool empty() const { return open_.empty(); }
  /// True: the bucket is full.
  bool add(ParameterRange range);
  /// Asks for the sums of the bucket, where there are other ranks, behind what `stream` makes;
  /// returns what it had. `gradients`: all of the device's.
  std::vector<ParameterRange> send(std::span<float> gradients, cudaStream_t stream);
  /// What is queued on `stream` from now on sees the sums.
  void join(cudaStream_t stream);
  /// Once what was joined is done: throws CommError where a rank is lost, and the sums are none.
  void check_peers() const;
  /// At the end of a step: what this rank has sent in it.
  Bytes take_sent();

 private:
  DeviceReducer* reducer_;
  std::vector<ParameterRange> open_;
  BucketRule rule_;
  Bytes bytes_{};
};

/// Those of all ranks, and those of the ranks that have the same experts.
class GradientSums {
 public:
  /// `padded`: the device's layout. `expert_replicas` is null where ranks do not share experts out.
  GradientSums(DeviceReducer* all, DeviceReducer* expert_replicas, const ParameterLayout& padded);

  /// Of that range of the layout: a slot, or a part of one.
  OpenSums& of(ParameterRange range);
  OpenSums& all() { return all_; }
  OpenSums& experts() { return experts_; }
  std::array<OpenSums*, 2> both() { return {&all_, &experts_}; }

 private:
  std::vector<ParameterRange> of_experts_;
  OpenSums all_, experts_;
};

}  // namespace reckon::cuda
