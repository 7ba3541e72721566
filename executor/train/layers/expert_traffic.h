#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/layers/expert_routing.h"

// Rows of tokens between the ranks that have them and the ranks that have their experts [Lepikhin
// et al. 2021, "GShard", arXiv:2006.16668, Sec. 3.2], as many as the tokens choose: none is
// dropped.
namespace reckon {

/// Of one mixture of experts in one pass. Own rows stand in the order of experts, then of samples,
/// then of tokens; arrived ones in that of experts, then of the ranks they come from, then as
/// there.
class ExpertTraffic {
 public:
  /// A sample's rows as route() has them, and which of this rank's own rows each is.
  struct SampleRows {
    std::vector<ExpertRow> rows;
    std::vector<std::int64_t> at;
  };

  /// Takes the routing of every sample and tells the other ranks how many rows come. Collective.
  void plan(Communicator& group, std::vector<std::vector<ExpertRow>> samples, std::int64_t experts);
  /// Of a rank that has all experts: its rows arrive as they stand.
  void plan_alone(std::vector<std::vector<ExpertRow>> samples, std::int64_t experts);

  const SampleRows& sample(std::int64_t b) const { return samples_[static_cast<std::size_t>(b)]; }
  std::int64_t own_rows() const { return own_rows_; }
  std::int64_t arrived_rows() const;
  /// Of each of this rank's experts, in their order.
  std::int64_t arrived_rows(std::int64_t own_expert) const;
  std::int64_t own_experts() const { return own_experts_; }
  int ranks() const { return ranks_; }
  /// Rows to and from rank `peer`; where the former begin among the own rows.
  std::int64_t sent_to(int peer) const;
  std::int64_t arrived_from(int peer) const;
  std::int64_t first_sent_to(int peer) const;
  /// Of arrived rows in the order of the ranks they come from, and of each as there: their places.
  std::vector<std::int32_t> places_by_rank() const;

  /// Rows of `width` numbers from where their tokens are to where their experts are. Collective.
  template <class T>
  void to_experts(Communicator& group, std::int64_t width, const T* own, T* arrived);
  /// And back.
  template <class T>
  void from_experts(Communicator& group, std::int64_t width, const T* arrived, T* own);

 private:
  void sort_own(int ranks, std::vector<std::vector<ExpertRow>> samples, std::int64_t experts);
  std::int64_t& arrived(std::int64_t own_expert, int rank) {
    return arrived_[static_cast<std::size_t>(own_expert * ranks_ + rank)];
  }
  /// body(place among the arrived rows, place among those of `rank`, how many), expert by expert.
  template <class Body>
  void for_runs(int rank, Body body) const;

  int ranks_ = 1;
  std::int64_t own_experts_ = 0, own_rows_ = 0;
  std::vector<SampleRows> samples_;
  std::vector<std::int64_t> chosen_;   // (experts): own rows that chose it
  std::vector<std::int64_t> arrived_;  // (own experts, ranks)
  std::vector<std::byte> packed_;      // rows from or to one rank, expert by expert
};

}  // namespace reckon
