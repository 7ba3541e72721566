#include "executor/train/layers/expert_traffic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Every rank meets every other once, in the same order of pairs on all: in round k ranks whose
/// numbers add up to k, modulo all. Of a pair the lower sends first, so that none waits for a rank
/// that waits for it. body(peer, sends_first); peer may be the rank itself.
template <class Body>
void meet_all(const Communicator& group, Body body) {
  const int ranks = group.size(), own = group.rank();
  for (int round = 0; round < ranks; ++round) {
    const int peer = (round - own + ranks) % ranks;
    body(peer, own < peer);
  }
}

void swap_with(Communicator& group, int peer, bool sends_first, std::span<const std::byte> out,
               std::span<std::byte> in) {
  for (const bool sending : {sends_first, !sends_first}) {
    if (sending && !out.empty()) group.send(out, peer);
    if (!sending && !in.empty()) group.receive(in, peer);
  }
}

}  // namespace

void ExpertTraffic::plan(Communicator& group, std::vector<std::vector<ExpertRow>> samples,
                         std::int64_t experts) {
  ranks_ = group.size();
  own_experts_ = experts / ranks_;
  chosen_.assign(static_cast<std::size_t>(experts), 0);
  for (const auto& rows : samples)
    for (const ExpertRow& row : rows) ++chosen_[static_cast<std::size_t>(row.expert)];
  std::vector<std::int64_t> next(chosen_.size());
  std::exclusive_scan(chosen_.begin(), chosen_.end(), next.begin(), std::int64_t{0});
  own_rows_ = std::accumulate(chosen_.begin(), chosen_.end(), std::int64_t{0});
  samples_.clear();
  for (auto& rows : samples) {
    SampleRows sample{.rows = std::move(rows), .at = {}};
    for (const ExpertRow& row : sample.rows)
      sample.at.push_back(next[static_cast<std::size_t>(row.expert)]++);
    samples_.push_back(std::move(sample));
  }
  arrived_.assign(static_cast<std::size_t>(own_experts_ * ranks_), 0);
  const auto own = static_cast<std::size_t>(own_experts_);
  std::vector<std::int64_t> theirs(own);
  meet_all(group, [&](int peer, bool sends_first) {
    const std::span<const std::int64_t> counts =
        std::span(chosen_).subspan(static_cast<std::size_t>(peer) * own, own);
    if (peer == group.rank())
      std::ranges::copy(counts, theirs.begin());
    else
      swap_with(group, peer, sends_first, std::as_bytes(counts),
                std::as_writable_bytes(std::span(theirs)));
    for (std::size_t e = 0; e < own; ++e) arrived(static_cast<std::int64_t>(e), peer) = theirs[e];
  });
}

std::int64_t ExpertTraffic::arrived_rows() const {
  return std::accumulate(arrived_.begin(), arrived_.end(), std::int64_t{0});
}
std::int64_t ExpertTraffic::arrived_rows(std::int64_t own_expert) const {
  const auto first = arrived_.begin() + own_expert * ranks_;
  return std::accumulate(first, first + ranks_, std::int64_t{0});
}
std::int64_t ExpertTraffic::sent_to(int peer) const {
  const auto first = chosen_.begin() + peer * own_experts_;
  return std::accumulate(first, first + own_experts_, std::int64_t{0});
}
std::int64_t ExpertTraffic::first_sent_to(int peer) const {
  return std::accumulate(chosen_.begin(), chosen_.begin() + peer * own_experts_, std::int64_t{0});
}
std::int64_t ExpertTraffic::arrived_from(int peer) const {
  std::int64_t rows = 0;
  for (std::int64_t e = 0; e < own_experts_; ++e)
    rows += arrived_[static_cast<std::size_t>(e * ranks_ + peer)];
  return rows;
}

template <class Body>
void ExpertTraffic::for_runs(int rank, Body body) const {
  std::int64_t place = 0, taken = 0;
  for (std::int64_t e = 0; e < own_experts_; ++e)
    for (int r = 0; r < ranks_; ++r) {
      const std::int64_t count = arrived_[static_cast<std::size_t>(e * ranks_ + r)];
      if (r == rank && count > 0) {
        body(place, taken, count);
        taken += count;
      }
      place += count;
    }
}

template <class T>
void ExpertTraffic::to_experts(Communicator& group, std::int64_t width, const T* own, T* arrived) {
  const auto row_bytes = static_cast<std::size_t>(width) * sizeof(T);
  meet_all(group, [&](int peer, bool sends_first) {
    const std::span<const std::byte> out(
        reinterpret_cast<const std::byte*>(own + first_sent_to(peer) * width),
        static_cast<std::size_t>(sent_to(peer)) * row_bytes);
    packed_.resize(static_cast<std::size_t>(arrived_from(peer)) * row_bytes);
    if (peer == group.rank())
      std::ranges::copy(out, packed_.begin());
    else
      swap_with(group, peer, sends_first, out, packed_);
    for_runs(peer, [&](std::int64_t place, std::int64_t from, std::int64_t count) {
      std::memcpy(arrived + place * width,
                  packed_.data() + static_cast<std::size_t>(from) * row_bytes,
                  static_cast<std::size_t>(count) * row_bytes);
    });
  });
}

template <class T>
void ExpertTraffic::from_experts(Communicator& group, std::int64_t width, const T* arrived,
                                 T* own) {
  const auto row_bytes = static_cast<std::size_t>(width) * sizeof(T);
  meet_all(group, [&](int peer, bool sends_first) {
    packed_.resize(static_cast<std::size_t>(arrived_from(peer)) * row_bytes);
    for_runs(peer, [&](std::int64_t place, std::int64_t from, std::int64_t count) {
      std::memcpy(packed_.data() + static_cast<std::size_t>(from) * row_bytes,
                  arrived + place * width, static_cast<std::size_t>(count) * row_bytes);
    });
    const std::span<std::byte> in(reinterpret_cast<std::byte*>(own + first_sent_to(peer) * width),
                                  static_cast<std::size_t>(sent_to(peer)) * row_bytes);
    if (peer == group.rank())
      std::ranges::copy(packed_, in.begin());
    else
      swap_with(group, peer, sends_first, packed_, in);
  });
}

template void ExpertTraffic::to_experts<float>(Communicator&, std::int64_t, const float*, float*);
template void ExpertTraffic::to_experts<double>(Communicator&, std::int64_t, const double*,
                                                double*);
template void ExpertTraffic::from_experts<float>(Communicator&, std::int64_t, const float*, float*);
template void ExpertTraffic::from_experts<double>(Communicator&, std::int64_t, const double*,
                                                  double*);

}  // namespace reckon
