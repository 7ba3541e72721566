#include <algorithm>
#include <optional>
#include <utility>

#include "executor/comm/first_values.h"
#include "executor/comm/paged_buffer.h"
#include "executor/cuda/exchange/device_zero.h"
#include "executor/cuda/exchange/host_update.h"
#include "executor/cuda/exchange/offload.h"
#include "sim/base/check.h"

namespace reckon::cuda {
namespace {

/// What a rank has of the trained, or of the frozen elements of a block.
struct OffloadedPart {
  std::vector<std::vector<ParameterRange>> of_rank;  // whose elements they are, by rank
  std::vector<float> values;                         // of this one, on the host
  DeviceBuffer<std::byte> weights;                   // stage 3: of it, as layers read it
};

struct OffloadedBlock : DeviceBlock {
  OffloadedPart learned, constant;
  std::optional<FlatOptimizer> optimizer;  // of the trained part
  std::vector<float> gradients;            // of it; stages 2 and 3: over the step's passes
};

class OffloadedShardingExchange final : public DeviceZero<OffloadedBlock> {
 public:
  OffloadedShardingExchange(DeviceGroup& replicas, DeviceGroup* expert_replicas,
                            Communicator& hosts, ZeroOptions options, DeviceParameters& parameters,
                            Workers& workers, cudaStream_t stream);

  void start(ParameterView parameters) override;
  void take_block(std::size_t of_them) override;
  ExchangeTimes finish_step(std::int64_t step, double learning_rate) override;
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
    std::ranges::fill(blocks_[block].gradients, 0.0F);
  }
  void gather_updated(std::size_t block) override {
    DeviceBlock& b = blocks_[block];
    gather(b, b.trained.shards, blocks_[block].learned, part_.data());
  }
  OffloadedBlock make_block(const ZeroBlock& block, DeviceGroup& peers) const;
  OffloadedPart make_part(const CutRanges& cut, const DeviceGroup& peers) const;
  void gather(const DeviceBlock& block, const ShardedRanges& shards, const OffloadedPart& part,
              const float* own);
  void put(OffloadedPart& part);
  PieceMemory memory(const DeviceBlock& block, void* piece, std::size_t bytes) const {
    return {static_cast<std::byte*>(piece), parameters_.range(block.piece).first, bytes};
  }
  /// What a rank's part of so many weights travels as.
  std::size_t floats_of(std::size_t weights) const {
    return (weights * weight_bytes(parameters_.precision()) + sizeof(float) - 1) / sizeof(float);
  }
  void take_from_host(OffloadedBlock& block);
  Communicator& hosts_of(const DeviceBlock& block) const {
    return block.of_experts ? *options_.expert_replicas : hosts_;
  }

  Communicator& hosts_;
  Workers& workers_;
  PinnedBuffer<float> sums_;  // of gradients, on their way
  WeightUpload upload_;
  std::optional<ZeroSteps> steps_;  // last: its thread uses all others
};

OffloadedShardingExchange::OffloadedShardingExchange(DeviceGroup& replicas,
                                                     DeviceGroup* expert_replicas,
                                                     Communicator& hosts, ZeroOptions options,
                                                     DeviceParameters& parameters, Workers& workers,
                                                     cudaStream_t stream)
    : DeviceZero(replicas, std::move(options), parameters, stream),
      hosts_(hosts),
      workers_(workers),
      upload_(parameters.precision(), workers) {
  RECKON_CHECK(hosts.size() == replicas.size() && hosts.rank() == replicas.rank());
  make_blocks(expert_replicas, [this](const ZeroBlock& block, DeviceGroup& peers) {
    return make_block(block, peers);
  });
  sums_ = PinnedBuffer<float>(static_cast<std::size_t>(part_.size()));
  begin(steps_, hosts);
}

OffloadedBlock OffloadedShardingExchange::make_block(const ZeroBlock& b, DeviceGroup& peers) const {
  OffloadedBlock block{make_device_block(b, parameters_, peers)};
  block.learned = make_part(block.trained, peers);
  block.constant = make_part(block.frozen, peers);
  const ShardedRanges& shards = block.trained.shards;
  block.optimizer.emplace(options_.optimizer, shards.each(), shards.in_own(trained_));
  block.gradients.resize(shards.each());
  return block;
}

OffloadedPart OffloadedShardingExchange::make_part(const CutRanges& cut,
                                                   const DeviceGroup& peers) const {
  OffloadedPart part;
  for (int rank = 0; rank < peers.size(); ++rank)
    part.of_rank.push_back(ShardedRanges(cut.all, peers.size(), rank).own());
  part.values.resize(cut.shards.each());
  if (options_.stage >= 3)
    part.weights = DeviceBuffer<std::byte>(count_of(floats_of(cut.shards.each()) * sizeof(float)));
  return part;
}

void OffloadedShardingExchange::start(ParameterView parameters) {
  steps_->wait_for_all();
  RECKON_CHECK(parameters.values.size() == parameters_.layout().count);
  if (options_.stage >= 3) return;
  share_first_values(parameters.values, hosts_, blocks_of_experts(options_),
                     options_.expert_replicas);
  parameters_.to_device();
  for (OffloadedBlock& block : blocks_) take_from_host(block);
}

void OffloadedShardingExchange::take_block(std::size_t of_them) {
  OffloadedBlock& block = blocks_[of_them];
  take_from_host(block);
  put(block.learned);
  put(block.constant);
}

void OffloadedShardingExchange::take_from_host(OffloadedBlock& block) {
  const std::span<float> host = parameters_.host();
  const auto take = [&](const CutRanges& ranges, std::vector<float>& values) {
    auto to = values.begin();
    for (const ParameterRange& r : ranges.shards.own())
      to = std::ranges::copy(host.subspan(host_place(parameters_, r.first), r.count), to).out;
  };
  take(block.trained, block.learned.values);
  take(block.frozen, block.constant.values);
  release_pages(host.subspan(block.host.first, block.host.count));
}

/// Stage 3: what the device keeps of a part.
void OffloadedShardingExchange::put(OffloadedPart& part) {
  upload_.queue(part.values, part.weights.data(), copies_.get());
  wait_for_copies();
}

void OffloadedShardingExchange::reduce(std::size_t of_them) {
  OffloadedBlock& block = blocks_[of_them];
  const ShardedRanges& shards = block.trained.shards;
  const std::span<float> piece = parameters_.gradients(block.piece);
  const auto all = all_.span().first(shards.padded());
  const auto part = part_.span().first(shards.each());
  check(cudaStreamWaitEvent(copies_.get(), block.made->get(), 0), "gradients");
  queue_pack(memory(block, piece.data(), sizeof(float)), block.trained.all,
             std::as_writable_bytes(all), copies_.get());
  block.peers->queue_reduce_scatter(all, part, copies_.get());
  note_sent(block, shards.each());
  const auto sums = sums_.span().first(part.size());
  queue_to_host(std::as_writable_bytes(sums), part.data(), copies_.get(), "gradients");
  wait_for_copies();
  parameters_.drop_gradients(block.piece);
  if (options_.stage == 1) {
    std::ranges::copy(sums, block.gradients.begin());
    return;
  }
  add_on_host(workers_, block.gradients, sums);
}

double OffloadedShardingExchange::own_squares() {
  double squares = 0;
  for (const OffloadedBlock& block : blocks_)
    for (const TrainedRange& r : block.trained.shards.in_own(counted_))
      squares +=
          squared_norm_on_host(workers_, std::span(block.gradients).subspan(r.first, r.count));
  return squares;
}

/// The message of gather_updated(), or what stage 3 keeps, is behind it on the device.
void OffloadedShardingExchange::update(std::size_t of_them, std::int64_t updates,
                                       double learning_rate, double gradient_scale) {
  OffloadedBlock& block = blocks_[of_them];
  update_on_host(*block.optimizer, workers_, updates, learning_rate, gradient_scale,
                 block.learned.values, block.gradients);
  if (options_.stage >= 3) return put(block.learned);
  upload_.queue(block.learned.values, reinterpret_cast<std::byte*>(part_.data()), copies_.get());
  wait_for_copies();
}

/// Everybody's parts, into the whole weights. Bits of 16-bit weights travel as floats do.
void OffloadedShardingExchange::gather(const DeviceBlock& block, const ShardedRanges& shards,
                                       const OffloadedPart& part, const float* own) {
  if (shards.count() == 0) return;
  const std::size_t floats = floats_of(shards.each());
  const auto all = all_.span().first(floats * part.of_rank.size());
  block.peers->queue_all_gather({own, floats}, all, copies_.get());
  note_sent(block, floats);
  const PieceMemory piece =
      memory(block, parameters_.weights(block.piece).data(), weight_bytes(parameters_.precision()));
  for (std::size_t rank = 0; rank < part.of_rank.size(); ++rank)
    queue_unpack(std::as_bytes(all.subspan(rank * floats, floats)), part.of_rank[rank], piece,
                 copies_.get());
  wait_for_copies();
}

void OffloadedShardingExchange::gather_whole(std::size_t of_them) {
  OffloadedBlock& block = blocks_[of_them];
  const std::span<std::byte> piece = parameters_.take_weights(block.piece);
  // What fills slots up is zero, whoever had the memory before.
  check(cudaMemsetAsync(piece.data(), 0, piece.size(), copies_.get()), "a block's values");
  const auto kept = [](OffloadedPart& part) {
    return reinterpret_cast<const float*>(part.weights.data());
  };
  gather(block, block.trained.shards, block.learned, kept(block.learned));
  gather(block, block.frozen.shards, block.constant, kept(block.constant));
}

/// One rank waits for nobody: what it waits for is the way to the host.
ExchangeTimes OffloadedShardingExchange::finish_step(std::int64_t step, double learning_rate) {
  ExchangeTimes times = DeviceZero::finish_step(step, learning_rate);
  if (replicas_.size() > 1) return times;
  times.apply += std::exchange(times.exposed_communication, {});
  times.communication = times.gathering = {};
  return times;
}

std::vector<KeptPart> OffloadedShardingExchange::kept_parts() {
  std::vector<KeptPart> kept;
  for (OffloadedBlock& block : blocks_) {
    add_kept_parts(parameters_, block.trained, block.learned.values, block.optimizer->state(),
                   kept);
    add_kept_parts(parameters_, block.frozen, block.constant.values, {}, kept);
  }
  std::ranges::sort(kept, {}, [](const KeptPart& p) { return p.range.first; });
  return kept;
}

/// What was read is the host's already: the device gets its weights, of stages 1 and 2 everybody's.
void OffloadedShardingExchange::restore_optimizer_state() {
  for (OffloadedBlock& block : blocks_)
    for (const bool trained : {true, false}) {
      OffloadedPart& part = trained ? block.learned : block.constant;
      if (options_.stage >= 3) {
        put(part);
        continue;
      }
      upload_.queue(part.values, reinterpret_cast<std::byte*>(part_.data()), copies_.get());
      gather(block, (trained ? block.trained : block.frozen).shards, part, part_.data());
    }
}

/// The host has all weights of the optimizer then, which no device has in 16 bits.
void OffloadedShardingExchange::take_final_values() {
  steps_->wait_for_all();
  const std::span<float> host = parameters_.host();
  std::vector<float> all;
  for (const OffloadedBlock& block : blocks_)
    for (const OffloadedPart* part : {&block.learned, &block.constant}) {
      const std::size_t each = part->values.size();
      all.resize(each * part->of_rank.size());
      hosts_of(block).all_gather(part->values, all);
      for (std::size_t rank = 0; rank < part->of_rank.size(); ++rank) {
        auto from = all.cbegin() + std::ptrdiff_t(rank * each);
        for (const ParameterRange& r : part->of_rank[rank]) {
          std::copy_n(from, r.count,
                      host.begin() + std::ptrdiff_t(host_place(parameters_, r.first)));
          from += std::ptrdiff_t(r.count);
        }
      }
    }
}

Bytes OffloadedShardingExchange::held() const {
  std::int64_t bytes = (all_.size() + part_.size()) * std::int64_t{sizeof(float)};
  for (const OffloadedBlock& b : blocks_)
    bytes += b.learned.weights.size() + b.constant.weights.size();
  return Bytes{static_cast<double>(bytes)};
}

}  // namespace

std::unique_ptr<ZeroExchange> make_offloaded_zero_exchange(DeviceGroup& replicas,
                                                           DeviceGroup* expert_replicas,
                                                           Communicator& hosts, ZeroOptions options,
                                                           DeviceParameters& parameters,
                                                           Workers& workers, cudaStream_t stream) {
  return std::make_unique<OffloadedShardingExchange>(
      replicas, expert_replicas, hosts, std::move(options), parameters, workers, stream);
}

}  // namespace reckon::cuda
