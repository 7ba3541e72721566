#include "executor/cuda/exchange/zero_shard.h"

#include <algorithm>

namespace reckon::cuda {
namespace {

CutRanges cut_over(const DeviceGroup& replicas, const std::vector<ParameterRange>& of_host,
                   const DeviceParameters& parameters) {
  CutRanges ranges;
  const auto &here = parameters.layout().slots, &there = parameters.padded().slots;
  for (const ParameterRange& r : of_host)
    for (std::size_t s = 0; s < here.size(); ++s)
      if (here[s].first >= r.first && here[s].first < r.first + r.count)
        ranges.all.push_back({there[s].first, here[s].count});
  ranges.shards = ShardedRanges(ranges.all, replicas.size(), replicas.rank());
  return ranges;
}

}  // namespace

std::vector<DeviceBuffer<float>*> DeviceShard::state() {
  if (second.size() == 0) return {&first};
  return {&first, &second};
}

std::int64_t DeviceShard::held() const {
  return first.size() + second.size() + gradients.size() + values.size() + constant.size();
}

DeviceBlock make_device_block(const ZeroBlock& block, const DeviceParameters& parameters,
                              DeviceGroup& peers) {
  DeviceBlock cut;
  cut.peers = &peers;
  cut.of_experts = block.of_experts;
  cut.host = block.whole;
  cut.trained = cut_over(peers, block.trained, parameters);
  cut.frozen = cut_over(peers, without(block.whole, block.trained), parameters);
  const auto& slots = parameters.layout().slots;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].first < block.whole.first ||
        slots[s].first >= block.whole.first + block.whole.count)
      continue;
    cut.piece = parameters.piece_of(s);
    if (slots[s].trained) cut.to_reduce += parameters.padded().slots[s].count;
  }
  return cut;
}

DeviceShard make_device_shard(const ZeroBlock& block, const ZeroOptions& options,
                              const DeviceParameters& parameters, DeviceGroup& peers) {
  DeviceShard shard{make_device_block(block, parameters, peers)};
  const auto each = count_of(shard.trained.shards.each());
  shard.first = DeviceBuffer<float>(each);
  if (std::holds_alternative<AdamW>(options.optimizer)) shard.second = DeviceBuffer<float>(each);
  if (options.stage >= 2) shard.gradients = DeviceBuffer<float>(each);
  if (options.stage >= 3) {
    shard.values = DeviceBuffer<float>(each);
    shard.constant = DeviceBuffer<float>(count_of(shard.frozen.shards.each()));
  }
  return shard;
}

void share_first_values(DeviceGroup& replicas, const std::vector<DeviceShard>& blocks,
                        DeviceParameters& parameters, cudaStream_t stream) {
  std::vector<std::pair<DeviceGroup*, std::span<float>>> experts;
  for (const DeviceShard& block : blocks)
    for (const CutRanges* ranges : {&block.trained, &block.frozen})
      for (const ParameterRange& r : ranges->all) {
        if (!block.of_experts) continue;
        const std::size_t first = r.first - parameters.range(block.piece).first;
        experts.emplace_back(block.peers, parameters.values(block.piece).subspan(first, r.count));
      }
  std::vector<DeviceBuffer<float>> own;  // rank 0 has others
  const auto copy = [&](float* to, const float* from, std::size_t bytes) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "first values");
  };
  for (const auto& [peers, values] : experts) {
    own.emplace_back(count_of(values.size()));
    copy(own.back().data(), values.data(), values.size_bytes());
  }
  for (std::size_t piece = 0; piece < parameters.pieces(); ++piece)
    replicas.queue_broadcast(parameters.values(piece), stream);
  for (std::size_t k = 0; k < experts.size(); ++k) {
    const auto& [peers, values] = experts[k];
    copy(values.data(), own[k].data(), values.size_bytes());
    peers->queue_broadcast(values, stream);
  }
  check(cudaStreamSynchronize(stream), "first values");
}

std::vector<TrainedRange> in_padded(const DeviceParameters& parameters,
                                    const std::vector<TrainedRange>& of_host) {
  std::vector<TrainedRange> ranges;
  const auto &here = parameters.layout().slots, &there = parameters.padded().slots;
  for (const TrainedRange& r : of_host)
    for (std::size_t s = 0; s < here.size(); ++s)
      if (here[s].first >= r.first && here[s].first < r.first + r.count)
        ranges.push_back({there[s].first, here[s].count, r.decays});
  return ranges;
}

std::size_t host_place(const DeviceParameters& parameters, std::size_t padded) {
  const auto& there = parameters.padded().slots;
  const auto behind = std::ranges::upper_bound(there, padded, {}, &ParameterSlot::first);
  const auto s = static_cast<std::size_t>(behind - there.begin()) - 1;
  return parameters.layout().slots[s].first + (padded - there[s].first);
}

void add_kept_parts(const DeviceParameters& parameters, const CutRanges& ranges,
                    std::span<float> values, std::span<const std::span<float>> state,
                    std::vector<KeptPart>& kept) {
  std::size_t done = 0;
  for (const ParameterRange& r : ranges.shards.own()) {
    KeptPart part{.range = {host_place(parameters, r.first), r.count}};
    part.values = values.subspan(done, r.count);
    for (const std::span<float> s : state) part.optimizer.push_back(s.subspan(done, r.count));
    kept.push_back(std::move(part));
    done += r.count;
  }
}

void queue_pack(const PieceMemory& piece, const std::vector<ParameterRange>& ranges,
                std::span<std::byte> to, cudaStream_t stream) {
  for (const ParameterRange& r : ranges) {
    const std::size_t bytes = r.count * piece.bytes;
    check(cudaMemcpyAsync(to.data(), piece.data + (r.first - piece.first) * piece.bytes, bytes,
                          cudaMemcpyDeviceToDevice, stream),
          "a block's message");
    to = to.subspan(bytes);
  }
  if (!to.empty()) check(cudaMemsetAsync(to.data(), 0, to.size(), stream), "a block's message");
}

void queue_unpack(std::span<const std::byte> from, const std::vector<ParameterRange>& ranges,
                  const PieceMemory& piece, cudaStream_t stream) {
  for (const ParameterRange& r : ranges) {
    const std::size_t bytes = r.count * piece.bytes;
    check(cudaMemcpyAsync(piece.data + (r.first - piece.first) * piece.bytes, from.data(), bytes,
                          cudaMemcpyDeviceToDevice, stream),
          "a block's message");
    from = from.subspan(bytes);
  }
}

}  // namespace reckon::cuda
