#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "executor/train/checkpoint/checkpoint_shard.h"

namespace reckon {

/// The state of a rank as it was at one moment, while training goes on.
class StateCopy {
 public:
  explicit StateCopy(std::span<const StateTensor> state) {
    std::size_t total = 0;
    for (const StateTensor& tensor : state) {
      slices_.push_back(tensor.slice);
      total += tensor.bytes.size();
    }
    bytes_.reserve(total);
    for (const StateTensor& tensor : state)
      bytes_.insert(bytes_.end(), tensor.bytes.begin(), tensor.bytes.end());
  }

  /// Valid as long as the copy is.
  std::vector<StateTensor> tensors() const {
    std::vector<StateTensor> tensors;
    std::size_t first = 0;
    for (const TensorSlice& slice : slices_) {
      tensors.push_back({slice, std::span(bytes_).subspan(first, bytes_of(slice))});
      first += tensors.back().bytes.size();
    }
    return tensors;
  }

 private:
  std::vector<TensorSlice> slices_;
  std::vector<std::byte> bytes_;  // of the slices, one behind the other
};

}  // namespace reckon
