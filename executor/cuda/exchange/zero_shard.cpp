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

DeviceShard make_device_shard(const ZeroBlock& block, const ZeroOptions& options,
                              const DeviceParameters& parameters, const DeviceGroup& replicas) {
  DeviceShard shard;
  shard.host = block.whole;
  shard.trained = cut_over(replicas, block.trained, parameters);
  shard.frozen = cut_over(replicas, without(block.whole, block.trained), parameters);
  const auto& slots = parameters.layout().slots;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].first < block.whole.first ||
        slots[s].first >= block.whole.first + block.whole.count)
      continue;
    shard.piece = parameters.piece_of(s);
    if (slots[s].trained) shard.to_reduce += parameters.padded().slots[s].count;
  }
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

std::size_t host_place(const DeviceParameters& parameters, std::size_t padded) {
  const auto& there = parameters.padded().slots;
  const auto behind = std::ranges::upper_bound(there, padded, {}, &ParameterSlot::first);
  const auto s = static_cast<std::size_t>(behind - there.begin()) - 1;
  return parameters.layout().slots[s].first + (padded - there[s].first);
}

void add_kept_parts(const DeviceParameters& parameters, const CutRanges& ranges,
                    std::vector<float>& values, std::span<std::vector<float>> state,
                    std::vector<KeptPart>& kept) {
  std::size_t done = 0;
  for (const ParameterRange& r : ranges.shards.own()) {
    KeptPart part{.range = {host_place(parameters, r.first), r.count}};
    part.values = std::span(values).subspan(done, r.count);
    for (std::vector<float>& s : state)
      part.optimizer.push_back(std::span(s).subspan(done, r.count));
    kept.push_back(std::move(part));
    done += r.count;
  }
}

}  // namespace reckon::cuda
