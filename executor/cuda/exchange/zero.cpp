#include "executor/cuda/exchange/zero.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "executor/comm/paged_buffer.h"
#include "executor/cuda/exchange/device_zero.h"
#include "executor/cuda/exchange/optimizer.h"
#include "kernels/elementwise.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

class DeviceShardingExchange final : public DeviceZero<DeviceShard> {
 public:
  DeviceShardingExchange(DeviceGroup& replicas, DeviceGroup* expert_replicas, Communicator& hosts,
                         ZeroOptions options, DeviceParameters& parameters, cudaStream_t stream);

  void start(ParameterView parameters) override;
  void take_block(std::size_t of_them) override;
  void restore_optimizer_state() override;
  std::vector<KeptPart> kept_parts() override;
  void take_final_values() override;
  Bytes held() const override;

 private:
  ZeroSteps& steps() override { return *steps_; }
  void reduce(std::size_t block) override;
  void gather_whole(std::size_t block) override;
  double own_squares() override;
  void update(std::size_t block, std::int64_t updates, double learning_rate,
              double gradient_scale) override;
  void clear_gradients(std::size_t block) override {
    const std::span<float> gradients = blocks_[block].gradients.span();
    check(cudaMemsetAsync(gradients.data(), 0, gradients.size_bytes(), stream_),
          "clearing gradients");
  }
  void gather_updated(std::size_t block) override {
    DeviceShard& b = blocks_[block];
    gather(b, b.trained, own_values(b, b.trained, b.values));
  }
  float* at(std::span<float> piece, const DeviceShard& block, std::size_t element) const {
    return piece.data() + (element - parameters_.range(block.piece).first);
  }
  PieceMemory memory(const DeviceShard& block, std::span<float> piece) const {
    return {.data = std::as_writable_bytes(piece).data(),
            .first = parameters_.range(block.piece).first};
  }
  void pack(const DeviceShard& block, const std::vector<ParameterRange>& ranges,
            std::span<float> piece, std::span<float> to) {
    queue_pack(memory(block, piece), ranges, std::as_writable_bytes(to), copies_.get());
  }
  void unpack(const DeviceShard& block, const std::vector<ParameterRange>& ranges,
              std::span<const float> from, std::span<float> piece) {
    queue_unpack(std::as_bytes(from), ranges, memory(block, piece), copies_.get());
  }
  void gather(DeviceShard& block, const CutRanges& ranges, std::span<const float> own);
  std::span<float> own_values(DeviceShard& block, const CutRanges& ranges,
                              DeviceBuffer<float>& kept);

  std::span<float> host_;  // stage 3: its values
  DeviceBuffer<double> squares_{gpu::kNormScratch + 1};
  std::optional<ZeroSteps> steps_;  // last: its thread uses all others
};

DeviceShardingExchange::DeviceShardingExchange(DeviceGroup& replicas, DeviceGroup* expert_replicas,
                                               Communicator& hosts, ZeroOptions options,
                                               DeviceParameters& parameters, cudaStream_t stream)
    : DeviceZero(replicas, std::move(options), parameters, stream) {
  make_blocks(expert_replicas, [&](const ZeroBlock& block, DeviceGroup& peers) {
    return make_device_shard(block, options_, parameters_, peers);
  });
  begin(steps_, hosts);
}

void DeviceShardingExchange::start(ParameterView parameters) {
  steps_->wait_for_all();
  if (options_.stage >= 3) {
    host_ = parameters.values;
    return;
  }
  share_first_values(replicas_, blocks_, parameters_, stream_);
  parameters_.changed();
}

void DeviceShardingExchange::take_block(std::size_t of_them) {
  DeviceShard& block = blocks_[of_them];
  const auto take = [&](const CutRanges& ranges, DeviceBuffer<float>& kept) {
    std::size_t to = 0;
    for (const ParameterRange& r : ranges.shards.own()) {
      copy_to_device(kept.data() + to, host_.data() + host_place(parameters_, r.first),
                     r.count * sizeof(float));
      to += r.count;
    }
  };
  take(block.trained, block.values);
  take(block.frozen, block.constant);
  release_pages(host_.subspan(block.host.first, block.host.count));
}

void DeviceShardingExchange::reduce(std::size_t of_them) {
  DeviceShard& block = blocks_[of_them];
  const ShardedRanges& shards = block.trained.shards;
  const std::span<float> piece = parameters_.gradients(block.piece);
  const auto all = all_.span().first(shards.padded());
  const auto part = part_.span().first(shards.each());
  check(cudaStreamWaitEvent(copies_.get(), block.made->get(), 0), "gradients");
  pack(block, block.trained.all, piece, all);
  block.peers->queue_reduce_scatter(all, part, copies_.get());
  note_sent(block, shards.each());
  if (options_.stage == 1) {
    unpack(block, shards.own(), part, piece);
    return wait_for_copies();
  }
  check(gpu::add<float>(block.gradients.data(), part.data(), block.gradients.data(),
                        count_of(part.size()), copies_.get()),
        "sum of gradients");
  wait_for_copies();
  parameters_.drop_gradients(block.piece);
}

double DeviceShardingExchange::own_squares() {
  double squares = 0;
  for (DeviceShard& block : blocks_)
    for_own(block, counted_, [&](std::size_t first, std::size_t count, std::size_t part, bool) {
      const float* gradients = options_.stage >= 2
                                   ? block.gradients.data() + part
                                   : at(parameters_.gradients(block.piece), block, first);
      squares += squared_norm_on_device(gradients, count, squares_, stream_);
    });
  return squares;
}

void DeviceShardingExchange::update(std::size_t of_them, std::int64_t updates, double learning_rate,
                                    double gradient_scale) {
  DeviceShard& block = blocks_[of_them];
  for_own(block, trained_,
          [&](std::size_t first, std::size_t count, std::size_t part, bool decays) {
            const bool in_place = options_.stage < 3, whole = options_.stage < 2;
            update_on_device(
                options_.optimizer,
                {.values = in_place ? at(parameters_.values(block.piece), block, first)
                                    : block.values.data() + part,
                 .gradients = whole ? at(parameters_.gradients(block.piece), block, first)
                                    : block.gradients.data() + part,
                 .first = block.first.data() + part,
                 .second = block.second.size() > 0 ? block.second.data() + part : nullptr,
                 .count = count_of(count),
                 .decays = decays},
                {.step = updates, .learning_rate = learning_rate, .gradient_scale = gradient_scale},
                stream_);
          });
  check(cudaStreamSynchronize(stream_), "optimizer");
}

/// This rank's part, as a message of it: stage 3 keeps it as one.
std::span<float> DeviceShardingExchange::own_values(DeviceShard& block, const CutRanges& ranges,
                                                    DeviceBuffer<float>& kept) {
  if (options_.stage >= 3) return kept.span();
  const auto own = part_.span().first(ranges.shards.each());
  pack(block, ranges.shards.own(), parameters_.values(block.piece), own);
  return own;
}

/// Everybody's parts of the ranges, into the whole values.
void DeviceShardingExchange::gather(DeviceShard& block, const CutRanges& ranges,
                                    std::span<const float> own) {
  if (ranges.shards.count() == 0) return;
  const auto all = all_.span().first(ranges.shards.padded());
  block.peers->queue_all_gather(own, all, copies_.get());
  note_sent(block, ranges.shards.each());
  unpack(block, ranges.all, all, parameters_.values(block.piece));
  wait_for_copies();
}

void DeviceShardingExchange::gather_whole(std::size_t of_them) {
  DeviceShard& block = blocks_[of_them];
  const std::span<float> piece = parameters_.take_values(block.piece);
  // What fills slots up is zero, whoever had the memory before.
  check(cudaMemsetAsync(piece.data(), 0, piece.size_bytes(), copies_.get()), "a block's values");
  gather(block, block.trained, block.values.span());
  gather(block, block.frozen, block.constant.span());
}

std::vector<KeptPart> DeviceShardingExchange::kept_parts() {
  std::vector<KeptPart> kept;
  const auto fetch = [&](std::vector<float>& here, std::span<const float> there) {
    here.resize(there.size());
    wait_for_copies();
    copy_to_host(here.data(), there.data(), there.size_bytes());
  };
  for (DeviceShard& block : blocks_) {
    block.here.resize(1 + block.state().size());
    fetch(block.here[0], own_values(block, block.trained, block.values));
    for (std::size_t k = 0; k < block.state().size(); ++k)
      fetch(block.here[1 + k], block.state()[k]->span());
    fetch(block.constant_here, own_values(block, block.frozen, block.constant));
    const std::vector<std::span<float>> state(block.here.begin() + 1, block.here.end());
    add_kept_parts(parameters_, block.trained, block.here[0], state, kept);
    add_kept_parts(parameters_, block.frozen, block.constant_here, {}, kept);
  }
  std::ranges::sort(kept, {}, [](const KeptPart& p) { return p.range.first; });
  return kept;
}

/// Of stages 1 and 2 everybody gets the others' values, too.
void DeviceShardingExchange::restore_optimizer_state() {
  const auto put = [](DeviceBuffer<float>& there, const std::vector<float>& here) {
    copy_to_device(there.data(), here.data(), here.size() * sizeof(float));
  };
  for (DeviceShard& block : blocks_) {
    RECKON_CHECK(block.here.size() == 1 + block.state().size());
    for (std::size_t k = 0; k < block.state().size(); ++k)
      put(*block.state()[k], block.here[1 + k]);
    if (options_.stage >= 3) {
      put(block.values, block.here[0]);
      put(block.constant, block.constant_here);
      continue;
    }
    put(part_, block.here[0]);
    gather(block, block.trained, part_.span().first(block.trained.shards.each()));
    put(part_, block.constant_here);
    gather(block, block.frozen, part_.span().first(block.frozen.shards.each()));
  }
  parameters_.changed();
}

void DeviceShardingExchange::take_final_values() {
  if (options_.stage < 3) return;
  steps_->wait_for_all();
  for (std::size_t k = 0; k < blocks_.size(); ++k) {
    DeviceShard& block = blocks_[k];
    gather_whole(k);
    const std::span<float> piece = parameters_.values(block.piece);
    for (const CutRanges* ranges : {&block.trained, &block.frozen})
      for (const ParameterRange& r : ranges->all)
        copy_to_host(host_.data() + host_place(parameters_, r.first), at(piece, block, r.first),
                     r.count * sizeof(float));
    parameters_.drop_values(block.piece);
  }
}

Bytes DeviceShardingExchange::held() const {
  std::int64_t floats = all_.size() + part_.size();
  for (const DeviceShard& b : blocks_) floats += b.held();
  return Bytes{static_cast<double>(floats) * sizeof(float)};
}

}  // namespace

std::unique_ptr<ZeroExchange> make_device_zero_exchange(DeviceGroup& replicas,
                                                        DeviceGroup* expert_replicas,
                                                        Communicator& hosts, ZeroOptions options,
                                                        DeviceParameters& parameters,
                                                        cudaStream_t stream) {
  return std::make_unique<DeviceShardingExchange>(replicas, expert_replicas, hosts,
                                                  std::move(options), parameters, stream);
}

}  // namespace reckon::cuda
