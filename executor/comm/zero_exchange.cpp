#include "executor/comm/zero_exchange.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/comm/gradient_scaling.h"
#include "executor/comm/paged_buffer.h"
#include "executor/comm/work_queue.h"
#include "sim/base/check.h"

namespace reckon {

namespace {

/// What a rank has of a block.
struct BlockShard {
  Communicator* peers = nullptr;  // over which it is cut
  ParameterRange whole;
  std::size_t to_reduce = 0;  // trained elements
  ShardedRanges trained, frozen;
  std::optional<FlatOptimizer> optimizer;
  std::vector<float> gradients;  // stages 2 and 3: of the trained part, over the step's passes
  std::vector<float> values, constant;  // stage 3: parameters of the trained and the frozen part
  std::size_t ready = 0;                // of its gradients, in this pass
  std::int64_t gather = 0;              // the work queue's ticket
};

class ShardingExchange final : public ZeroExchange {
 public:
  ShardingExchange(Communicator& communicator, ZeroOptions options);

  void start(ParameterView parameters) override;
  std::vector<ParameterRange> blocks_to_take() override;
  void take_block(std::size_t of_them) override;
  bool exchanges_every_pass() const override { return options_.stage >= 2; }
  void scaled_by(double scale, std::int64_t skipped) override { scaling_ = {scale, skipped}; }
  void begin_backward() override;
  Seconds take_waited() override { return std::exchange(waited_, {}); }
  void gradient_ready(ParameterRange range) override;
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override;
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  void restore_optimizer_state() override;
  bool keeps_parts() const override { return true; }
  std::vector<KeptPart> kept_parts() override;
  void take_final_values() override;

  void prefetch(std::size_t block) override;
  void wait_for(std::size_t block) override;
  void release(std::size_t block) override;
  Bytes held() const override;

 private:
  BlockShard& block_of(ParameterRange range);
  void reduce(BlockShard& block);
  void gather(const BlockShard& block, const ShardedRanges& ranges, std::span<const float> own);
  void gather_whole(const BlockShard& block);
  std::optional<double> clip() const;
  double own_squares() const;
  void update(BlockShard& block, std::int64_t step, double learning_rate, double scale);
  void note_sent(const BlockShard& block, std::size_t each) {
    sent_ += Bytes{double(std::size_t(block.peers->size() - 1) * each * sizeof(float))};
  }

  Communicator& communicator_;
  const ZeroOptions options_;
  GradientScaling scaling_;
  ParameterView view_;
  std::vector<BlockShard> blocks_;
  std::vector<BlockShard*> waiting_;  // without overlap: for the end of the backward pass
  std::vector<float> all_, part_;     // a message: of all ranks' parts, of this one's
  std::int64_t reduction_ = 0;        // the last one's ticket
  Seconds waited_{};
  Bytes sent_{};     // the work queue's, until it is waited for
  WorkQueue queue_;  // last: it uses all others
};

ShardingExchange::ShardingExchange(Communicator& communicator, ZeroOptions options)
    : communicator_(communicator), options_(std::move(options)) {
  RECKON_CHECK(options_.stage >= 1 && options_.stage <= 3);
  std::size_t largest = 0, largest_of_all = 0, end = 0, trained = 0;
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
    block.to_reduce = block.trained.count();
    trained += block.to_reduce;
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
}

void ShardingExchange::start(ParameterView parameters) {
  RECKON_CHECK(parameters.values.size() == parameters.gradients.size());
  view_ = parameters;
  if (options_.stage >= 3) return;
  std::vector<std::vector<float>> experts;  // rank 0 has others
  const auto values_of = [&](std::size_t k) {
    return view_.values.subspan(blocks_[k].whole.first, blocks_[k].whole.count);
  };
  for (std::size_t k = 0; k < blocks_.size(); ++k)
    if (options_.blocks[k].of_experts)
      experts.emplace_back(values_of(k).begin(), values_of(k).end());
  communicator_.broadcast(std::as_writable_bytes(view_.values), 0);
  for (std::size_t k = 0, next = 0; k < blocks_.size(); ++k) {
    if (!options_.blocks[k].of_experts) continue;
    std::ranges::copy(experts[next++], values_of(k).begin());
    blocks_[k].peers->broadcast(std::as_writable_bytes(values_of(k)), 0);
  }
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

BlockShard& ShardingExchange::block_of(ParameterRange range) {
  const auto behind = std::ranges::upper_bound(blocks_, range.first, {},
                                               [](const BlockShard& b) { return b.whole.first; });
  RECKON_CHECK(behind != blocks_.begin());
  BlockShard& block = *std::prev(behind);
  RECKON_CHECK(range.first + range.count <= block.whole.first + block.whole.count);
  return block;
}

void ShardingExchange::begin_backward() {
  if (options_.stage >= 2) waited_ += queue_.wait_for_all();
}

void ShardingExchange::gradient_ready(ParameterRange range) {
  if (range.count == 0) return;
  BlockShard& block = block_of(range);
  block.ready += range.count;
  RECKON_CHECK(block.ready <= block.to_reduce);
  if (block.ready < block.to_reduce) return;
  block.ready = 0;
  if (options_.stage == 1 && !options_.overlap) {
    waiting_.push_back(&block);
    return;
  }
  const std::int64_t ticket = queue_.push([this, &block] { reduce(block); });
  // Who keeps no whole gradients has no more than two blocks' of them.
  if (options_.stage >= 2) waited_ += queue_.wait(std::exchange(reduction_, ticket));
}

/// Stage 1: into this rank's part of the whole gradients; 2 and 3: onto its part of the step's.
void ShardingExchange::reduce(BlockShard& block) {
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

double ShardingExchange::own_squares() const {
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

/// nullopt: a gradient of some rank is not finite, and nothing is to be updated.
std::optional<double> ShardingExchange::clip() const {
  if (options_.clip_norm <= 0 && !scaling_.on()) return 1;
  double squares = own_squares();
  communicator_.all_reduce(std::span(&squares, 1));
  if (options_.squares_of_all) squares = options_.squares_of_all(squares);
  if (scaling_.overflowed(squares)) return std::nullopt;
  return scaling_.gradient_scale(squares, options_.clip_norm);
}

void ShardingExchange::update(BlockShard& block, std::int64_t step, double learning_rate,
                              double scale) {
  const ShardedRanges& ranges = block.trained;
  if (options_.stage >= 3) {
    block.optimizer->update(step, learning_rate, scale, block.values, block.gradients);
    std::ranges::fill(block.gradients, 0.0F);
    return;
  }
  const auto values = std::span(part_).first(ranges.each());
  ranges.pack_own(view_.values, values);
  if (options_.stage == 2) {
    block.optimizer->update(step, learning_rate, scale, values, block.gradients);
    std::ranges::fill(block.gradients, 0.0F);
  } else {
    const auto gradients = std::span(all_).first(ranges.each());
    ranges.pack_own(view_.gradients, gradients);
    block.optimizer->update(step, learning_rate, scale, values, gradients);
  }
}

ExchangeTimes ShardingExchange::finish_step(std::int64_t step, double learning_rate) {
  using Clock = std::chrono::steady_clock;
  ExchangeTimes times;
  times.next_step = step + 1;
  const auto backward_end = Clock::now();
  for (BlockShard* block : std::exchange(waiting_, {}))
    queue_.push([this, block] { reduce(*block); });
  queue_.wait_for_all();
  const auto reduced = Clock::now();
  const std::optional<double> scale = clip();
  Seconds gathering = Clock::now() - reduced;  // the norm's sum
  for (BlockShard& block : blocks_) {
    RECKON_CHECK(block.ready == 0);  // every gradient was named
    if (block.trained.count() == 0) continue;
    if (!scale) {
      std::ranges::fill(block.gradients, 0.0F);
      continue;
    }
    const auto begin = Clock::now();
    update(block, scaling_.updates_of(step), learning_rate, *scale);
    const auto updated = Clock::now();
    times.apply += updated - begin;
    if (options_.stage >= 3) continue;
    gather(block, block.trained, std::span(part_).first(block.trained.each()));
    gathering += Clock::now() - updated;
  }
  times.skipped = !scale;
  times.communication = queue_.take_busy() + gathering;
  times.exposed_communication = (reduced - backward_end) + gathering;
  times.sent = std::exchange(sent_, {});
  return times;
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

void ShardingExchange::gather_whole(const BlockShard& block) {
  gather(block, block.trained, block.values);
  gather(block, block.frozen, block.constant);
}

void ShardingExchange::prefetch(std::size_t block) {
  BlockShard& b = blocks_[block];
  b.gather = queue_.push([this, &b] { gather_whole(b); });
}

void ShardingExchange::wait_for(std::size_t block) {
  waited_ += queue_.wait(blocks_[block].gather);
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
  queue_.wait_for_all();
  for (const BlockShard& block : blocks_) gather_whole(block);
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

std::unique_ptr<ZeroExchange> make_zero_exchange(Communicator& communicator, ZeroOptions options) {
  return std::make_unique<ShardingExchange>(communicator, std::move(options));
}

}  // namespace reckon
