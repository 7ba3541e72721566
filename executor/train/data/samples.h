#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "executor/train/graph_runtime.h"
#include "executor/train/products/aligned_buffer.h"
#include "sim/model/graph.h"

// What one sample holds for a model: the seam between data and network.
namespace reckon {

/// Elements [first, first + count) are whole numbers in [0, below): ids or classes, as
/// record_number() makes them (kernels/record_id.h).
struct IdRange {
  std::int64_t first = 0, count = 0, below = 0;
};
struct SampleField {
  Shape shape;
  std::vector<IdRange> ids;  // all other elements are real numbers
};
struct SampleFormat {
  std::vector<SampleField> inputs;   // one an InputLayer, in the order of the layers
  std::vector<SampleField> targets;  // one a loss
  std::int64_t masked = 0;           // positions of SelectTokens{masked}; 0: none
};
SampleFormat sample_format(const ModelGraph& model);

/// Memory for a batch of samples.
class SampleBatch {
 public:
  SampleBatch() = default;
  SampleBatch(const SampleFormat& format, std::int64_t batch);
  BatchView view() const;
  std::span<float> input(std::size_t k, std::int64_t sample) { return part(inputs_[k], sample); }
  std::span<float> target(std::size_t k, std::int64_t sample) { return part(targets_[k], sample); }
  std::span<std::int32_t> masked(std::int64_t sample);
  std::span<float> inputs(std::size_t k) { return inputs_[k].span(); }
  std::int64_t size() const { return batch_; }

 private:
  std::span<float> part(AlignedBuffer<float>& all, std::int64_t sample) const;
  std::int64_t batch_ = 0;
  std::vector<AlignedBuffer<float>> inputs_, targets_;
  std::vector<std::int32_t> masked_;
};

/// Random numbers of the right kind: ids and classes uniform, reals with mean 0 and deviation 1
/// (nearly normal: sums of four uniform numbers). Sample `index` of a data set under `seed`,
/// written to position `at` of the batch. There is nothing to learn in it. Value k is a function of
/// (seed, index, k) in whole numbers, so the same on every machine; one takes about a nanosecond.
void fill_synthetic(const SampleFormat& format, std::uint64_t seed, std::int64_t index,
                    SampleBatch& batch, std::int64_t at);

}  // namespace reckon
