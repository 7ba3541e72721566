#pragma once
#include <cstdint>
#include <vector>

// Which expert gets which token, and with which weight: one rule for all layers of a mixture of
// experts.
namespace reckon {

/// One row (T * top_k of them, sorted by expert, then by token).
struct ExpertRow {
  std::int64_t token = 0, expert = 0;
};

/// Each token goes to the top_k experts with its highest scores; of equals the lower index
/// [Shazeer 2017, arXiv:1701.06538, eq. 5]. scores: (tokens, experts).
template <class T>
void route(const T* scores, std::int64_t tokens, std::int64_t experts, std::int64_t top_k,
           std::vector<ExpertRow>& rows);

/// With which weights a sample's rows are added up: the softmax of its scores, (tokens, experts),
/// over the chosen experts (normalize), or over all.
template <class T>
class ExpertWeights {
 public:
  ExpertWeights(const T* scores, std::int64_t tokens, std::int64_t experts, bool normalize,
                const std::vector<ExpertRow>& rows);
  T of(const ExpertRow& row) const { return all_[at(row)]; }
  /// The gradient of a chosen row's weight.
  void set_slope(const ExpertRow& row, T slope) { slopes_[at(row)] = slope; }
  /// gradient (tokens, experts) += that of the scores: p (g - p . g) of a softmax p with the
  /// gradient g, zero for experts not chosen.
  void backward(T* gradient) const;

 private:
  std::size_t at(const ExpertRow& row) const {
    return static_cast<std::size_t>(row.token * experts_ + row.expert);
  }
  std::int64_t tokens_, experts_;
  std::vector<T> all_, slopes_;
};

}  // namespace reckon
