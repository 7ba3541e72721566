#include "executor/comm/zero_exchange.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "executor/comm/first_values.h"
#include "executor/comm/paged_buffer.h"
#include "executor/comm/stepped_zero.h"
#include "sim/base/check.h"

namespace reckon {

namespace {

/// What a rank has of a block.
struct BlockShard {
  Communicator* peers = nullptr;  // over which it is cut
  ParameterRange whole;
  ShardedRanges trained, frozen;
  std::optional<FlatOptimizer> optimizer;
  std::vector<float> gradients;  // stages 2 and 3: of the trained part, over the step's passes
  std::vector<float> values, constant;  // stage 3: parameters of the trained and the frozen part
};

class ShardingExchange final : public SteppedZero {
 public:
  ShardingExchange(Communicator& communicator, ZeroOptions options);

  void start(ParameterView parameters) override;
  std::vector<ParameterRange> blocks_to_take() override;
  void take_block(std::size_t of_them) override;
  void gradient_ready(ParameterRange range) override;
  void restore_optimizer_state() override;
  std::vector<KeptPart> kept_parts() override;
  void take_final_values() override;

  void release(std::size_t block) override;
  Bytes held() const override;

 private:
  ZeroSteps& steps() override { return *steps_; }
  void reduce(std::size_t block) override;
  void gather_whole(std::size_t block) override;
  double own_squares() override;
  void update(std::size_t block, std::int64_t updates, double learning_rate,
              double gradient_scale) override;
  void clear_gradients(std::size_t block) override {
    std::ranges::fill(blocks_[block].gradients, 0.0F);
  }
  void gather_updated(std::size_t block) override {
    const ShardedRanges& ranges = blocks_[block].trained;
    gather(blocks_[block], ranges, std::span(part_).first(ranges.each()));
  }
  void gather(const BlockShard& block, const ShardedRanges& ranges, std::span<const float> own);
  void note_sent(const BlockShard& block, std::size_t each) {
    steps_->note_sent(Bytes{double(std::size_t(block.peers->size() - 1) * each * sizeof(float))});
  }

  Communicator& communicator_;
  ParameterView view_;
  std::vector<BlockShard> blocks_;
  std::vector<float> all_, part_;   // a message: of all ranks' parts, of this one's
  std::optional<ZeroSteps> steps_;  // last: its thread uses all others
};

ShardingExchange::ShardingExchange(Communicator& communicator, ZeroOptions options)
    : SteppedZero(std::move(options)), communicator_(communicator) {
  std::size_t largest = 0, largest_of_all = 0, end = 0, trained = 0;
  std::vector<std::size_t> to_reduce;
  for (const ZeroBlock& b : options_.blocks) {
    RECKON_CHECK(b.whole.first >= end);
    end = b.whole.first + b.whole.count;
    Communicator* const peers = b.of_experts ? options_.expert_replicas : &communicator;
    RECKON_CHECK(peers != nullptr);
    const int n = peers->size(), r = peers->rank();
    BlockShard block{.peers = peers,
                     .whole = b.whole,
                     .trained = {b.trained, n, r},
                     .frozen = {without(b.whole, b.trained), n, r}};
    to_reduce.push_back(block.trained.count());
    trained += to_reduce.back();
    block.optimizer.emplace(options_.optimizer, block.trained.each(),
                            block.trained.in_own(options_.trained));
    if (options_.stage >= 2) block.gradients.resize(block.trained.each());
    if (options_.stage >= 3) {
      block.values.resize(block.trained.each());
      block.constant.resize(block.frozen.each());
    }
    largest = std::max({largest, block.trained.each(), block.frozen.each()});
    largest_of_all = std::max({largest_of_all, block.trained.padded(), block.frozen.padded()});
    blocks_.push_back(std::move(block));
  }
  for (const TrainedRange& range : options_.trained) trained -= range.count;
  RECKON_CHECK(trained == 0);
  all_.resize(largest_of_all);
  part_.resize(largest);
  steps_.emplace(static_cast<ZeroParts&>(*this), options_, communicator, std::move(to_reduce));
}

void ShardingExchange::start(ParameterView parameters) {
  RECKON_CHECK(parameters.values.size() == parameters.gradients.size());
  view_ = parameters;
  if (options_.stage >= 3) return;
  share_first_values(view_.values, communicator_, blocks_of_experts(options_),
                     options_.expert_replicas);
}

std::vector<ParameterRange> ShardingExchange::blocks_to_take() {
  std::vector<ParameterRange> ranges;
  if (options_.stage >= 3)
    for (const BlockShard& block : blocks_) ranges.push_back(block.whole);
  return ranges;
}

void ShardingExchange::take_block(std::size_t of_them) {
  BlockShard& block = blocks_[of_them];
  block.trained.pack_own(view_.values, block.values);
  block.frozen.pack_own(view_.values, block.constant);
  release(of_them);
}

void ShardingExchange::gradient_ready(ParameterRange range) {
  if (range.count == 0) return;
  const auto behind = std::ranges::upper_bound(blocks_, range.first, {},
                                               [](const BlockShard& b) { return b.whole.first; });
  RECKON_CHECK(behind != blocks_.begin());
  const auto block = std::prev(behind);
  RECKON_CHECK(range.first + range.count <= block->whole.first + block->whole.count);
  const auto k = static_cast<std::size_t>(block - blocks_.begin());
  if (steps_->gradients_ready(k, range.count)) steps_->all_ready(k);
}

void ShardingExchange::reduce(std::size_t of_them) {
  BlockShard& block = blocks_[of_them];
  const ShardedRanges& ranges = block.trained;
  const auto all = std::span(all_).first(ranges.padded());
  const auto part = std::span(part_).first(ranges.each());
  ranges.pack(view_.gradients, all);
  block.peers->reduce_scatter(all, part);
  note_sent(block, ranges.each());
  if (options_.stage == 1) return ranges.unpack_own(part, view_.gradients);
  for (std::size_t i = 0; i < part.size(); ++i) block.gradients[i] += part[i];
  release_pages(view_.gradients.subspan(block.whole.first, block.whole.count));
}

double ShardingExchange::own_squares() {
  double squares = 0;
  const std::vector<TrainedRange> counted = options_.counted.value_or(options_.trained);
  for (const BlockShard& block : blocks_) {
    if (options_.stage >= 2) {
      for (const TrainedRange& range : block.trained.in_own(counted))
        squares += squared_norm(std::span(block.gradients).subspan(range.first, range.count));
      continue;
    }
    for (const ParameterRange& own : block.trained.own())
      for (const TrainedRange& range : part_of(counted, own.first, own.count))
        squares += squared_norm(view_.gradients.subspan(own.first + range.first, range.count));
  }
  return squares;
}

void ShardingExchange::update(std::size_t of_them, std::int64_t updates, double learning_rate,
                              double gradient_scale) {
  BlockShard& block = blocks_[of_them];
  const ShardedRanges& ranges = block.trained;
  const auto update = [&](std::span<float> values, std::span<const float> gradients) {
    block.optimizer->update(updates, learning_rate, gradient_scale, values, gradients);
  };
  if (options_.stage >= 3) return update(block.values, block.gradients);
  const auto values = std::span(part_).first(ranges.each());
  ranges.pack_own(view_.values, values);
  if (options_.stage == 2) return update(values, block.gradients);
  const auto gradients = std::span(all_).first(ranges.each());
  ranges.pack_own(view_.gradients, gradients);
  update(values, gradients);
}

/// Everybody's parts of the ranges, into the whole values.
void ShardingExchange::gather(const BlockShard& block, const ShardedRanges& ranges,
                              std::span<const float> own) {
  if (ranges.count() == 0) return;
  const auto all = std::span(all_).first(ranges.padded());
  block.peers->all_gather(own, all);
  note_sent(block, ranges.each());
  ranges.unpack(all, view_.values);
}

void ShardingExchange::gather_whole(std::size_t block) {
  gather(blocks_[block], blocks_[block].trained, blocks_[block].values);
  gather(blocks_[block], blocks_[block].frozen, blocks_[block].constant);
}

void ShardingExchange::release(std::size_t block) {
  const ParameterRange& whole = blocks_[block].whole;
  release_pages(view_.values.subspan(whole.first, whole.count));
}

std::vector<KeptPart> ShardingExchange::kept_parts() {
  std::vector<KeptPart> kept;
  const auto add = [&](const ShardedRanges& ranges, std::span<float> values,
                       FlatOptimizer* optimizer) {
    std::size_t at = 0;
    for (const ParameterRange& r : ranges.own()) {
      KeptPart part{.range = r};
      part.values =
          values.empty() ? view_.values.subspan(r.first, r.count) : values.subspan(at, r.count);
      if (optimizer != nullptr)
        for (const std::span<float> state : optimizer->state())
          part.optimizer.push_back(state.subspan(at, r.count));
      kept.push_back(std::move(part));
      at += r.count;
    }
  };
  for (BlockShard& block : blocks_) {
    add(block.trained, block.values, &*block.optimizer);
    add(block.frozen, block.constant, nullptr);
  }
  std::ranges::sort(kept, {}, [](const KeptPart& p) { return p.range.first; });
  return kept;
}

/// Of stages 1 and 2 the own parts of the whole values were read: everybody gets the others'.
void ShardingExchange::restore_optimizer_state() {
  if (options_.stage >= 3) return;
  for (const BlockShard& block : blocks_)
    for (const ShardedRanges* ranges : {&block.trained, &block.frozen}) {
      const auto own = std::span(part_).first(ranges->each());
      ranges->pack_own(view_.values, own);
      gather(block, *ranges, own);
    }
}

void ShardingExchange::take_final_values() {
  if (options_.stage < 3) return;
  steps_->wait_for_all();
  for (std::size_t block = 0; block < blocks_.size(); ++block) gather_whole(block);
}

Bytes ShardingExchange::held() const {
  std::size_t floats = all_.size() + part_.size();
  for (const BlockShard& block : blocks_) {
    const std::size_t buffers = std::holds_alternative<AdamW>(options_.optimizer) ? 2 : 1;
    floats += buffers * block.trained.each() + block.gradients.size() + block.values.size() +
              block.constant.size();
  }
  return Bytes{double(floats * sizeof(float))};
}
}  // namespace

std::vector<ParameterRange> blocks_of_experts(const ZeroOptions& options) {
  std::vector<ParameterRange> ranges;
  for (const ZeroBlock& block : options.blocks)
    if (block.of_experts) ranges.push_back(block.whole);
  return ranges;
}

std::unique_ptr<ZeroExchange> make_zero_exchange(Communicator& communicator, ZeroOptions options) {
  return std::make_unique<ShardingExchange>(communicator, std::move(options));
}

}  // namespace reckon
