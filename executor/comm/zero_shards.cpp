#include "executor/comm/zero_shards.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {
namespace {

void pack_ranges(std::span<const ParameterRange> ranges, std::span<const float> flat,
                 std::span<float> to) {
  auto at = to.begin();
  for (const ParameterRange& r : ranges)
    at = std::ranges::copy(flat.subspan(r.first, r.count), at).out;
  std::fill(at, to.end(), 0.0F);
}

void unpack_ranges(std::span<const ParameterRange> ranges, std::span<const float> from,
                   std::span<float> flat) {
  for (const ParameterRange& r : ranges) {
    std::ranges::copy(from.first(r.count), flat.begin() + std::ptrdiff_t(r.first));
    from = from.subspan(r.count);
  }
}

}  // namespace

ShardedRanges::ShardedRanges(std::vector<ParameterRange> ranges, int ranks, int rank)
    : ranges_(std::move(ranges)), ranks_(std::size_t(ranks)) {
  RECKON_CHECK(rank >= 0 && rank < ranks);
  for (const ParameterRange& r : ranges_) count_ += r.count;
  each_ = (count_ + ranks_ - 1) / ranks_;
  const std::size_t begin = std::size_t(rank) * each_, end = std::min(begin + each_, count_);
  std::size_t at = 0;  // the range's first element among all
  for (const ParameterRange& r : ranges_) {
    const std::size_t from = std::max(begin, at), to = std::min(end, at + r.count);
    if (from < to) own_.push_back({r.first + (from - at), to - from});
    at += r.count;
  }
}

void ShardedRanges::pack(std::span<const float> flat, std::span<float> all) const {
  RECKON_CHECK(all.size() == padded());
  pack_ranges(ranges_, flat, all);
}

void ShardedRanges::unpack(std::span<const float> all, std::span<float> flat) const {
  RECKON_CHECK(all.size() == padded());
  unpack_ranges(ranges_, all, flat);
}

void ShardedRanges::pack_own(std::span<const float> flat, std::span<float> part) const {
  RECKON_CHECK(part.size() == each_);
  pack_ranges(own_, flat, part);
}

void ShardedRanges::unpack_own(std::span<const float> part, std::span<float> flat) const {
  RECKON_CHECK(part.size() == each_);
  unpack_ranges(own_, part, flat);
}

std::vector<TrainedRange> ShardedRanges::in_own(std::span<const TrainedRange> trained) const {
  std::vector<TrainedRange> found;
  std::size_t at = 0;
  for (const ParameterRange& r : own_) {
    for (TrainedRange part : part_of(trained, r.first, r.count)) {
      part.first += at;
      found.push_back(part);
    }
    at += r.count;
  }
  return found;
}

std::vector<ParameterRange> without(ParameterRange whole, std::span<const ParameterRange> ranges) {
  std::vector<ParameterRange> rest;
  std::size_t at = whole.first;
  const auto add = [&](std::size_t end) {
    if (end > at) rest.push_back({at, end - at});
  };
  for (const ParameterRange& r : ranges) {
    add(r.first);
    at = r.first + r.count;
  }
  add(whole.first + whole.count);
  return rest;
}

}  // namespace reckon
