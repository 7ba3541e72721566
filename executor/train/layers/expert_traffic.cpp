#include "executor/train/layers/expert_traffic.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "executor/comm/pairwise.h"

namespace reckon {

void ExpertTraffic::sort_own(int ranks, std::vector<std::vector<ExpertRow>> samples,
                             std::int64_t experts) {
  ranks_ = ranks;
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
}

void ExpertTraffic::plan_alone(std::vector<std::vector<ExpertRow>> samples, std::int64_t experts) {
  sort_own(1, std::move(samples), experts);
  arrived_ = chosen_;
}

void ExpertTraffic::plan(Communicator& group, std::vector<std::vector<ExpertRow>> samples,
                         std::int64_t experts) {
  sort_own(group.size(), std::move(samples), experts);
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

std::vector<std::int32_t> ExpertTraffic::places_by_rank() const {
  std::vector<std::int32_t> places;
  for (int rank = 0; rank < ranks_; ++rank)
    for_runs(rank, [&](std::int64_t place, std::int64_t, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
        places.push_back(static_cast<std::int32_t>(place + i));
    });
  return places;
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
