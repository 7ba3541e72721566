#include "executor/train/layers/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/train/products/vector_math.h"

namespace reckon {
namespace {

/// Whether score a goes before b: the larger first, of equals the lower number, and a NaN before
/// all, so that it is chosen and seen, as torch.topk does.
template <class T>
bool before(const T* score, std::int64_t a, std::int64_t b) {
  const bool a_is_nan = std::isnan(score[a]), b_is_nan = std::isnan(score[b]);
  if (a_is_nan || b_is_nan) return a_is_nan != b_is_nan ? a_is_nan : a < b;
  return score[a] != score[b] ? score[a] > score[b] : a < b;
}

}  // namespace

template <class T>
void route(const T* scores, std::int64_t tokens, std::int64_t experts, std::int64_t top_k,
           std::vector<ExpertRow>& rows) {
  rows.clear();
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const T* score = scores + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + top_k, order.end(),
                      [&](std::int64_t a, std::int64_t b) { return before(score, a, b); });
    for (std::int64_t k = 0; k < top_k; ++k)
      rows.push_back({t, order[static_cast<std::size_t>(k)]});
  }
  std::ranges::stable_sort(rows, {}, &ExpertRow::expert);
}
template void route<float>(const float*, std::int64_t, std::int64_t, std::int64_t,
                           std::vector<ExpertRow>&);
template void route<double>(const double*, std::int64_t, std::int64_t, std::int64_t,
                            std::vector<ExpertRow>&);

template <class T>
ExpertWeights<T>::ExpertWeights(const T* scores, std::int64_t tokens, std::int64_t experts,
                                bool normalize, const std::vector<ExpertRow>& rows)
    : tokens_(tokens),
      experts_(experts),
      all_(static_cast<std::size_t>(tokens * experts)),
      slopes_(all_.size()) {
  std::vector<char> counts(all_.size(), normalize ? 0 : 1);
  for (const ExpertRow& row : rows) counts[at(row)] = 1;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const T* score = scores + t * experts;
    const T largest = *std::max_element(score, score + experts);  // always chosen
    T sum{};
    for (std::int64_t e = 0; e < experts; ++e) {
      const auto i = static_cast<std::size_t>(t * experts + e);
      all_[i] = counts[i] != 0 ? exp_of(score[e] - largest) : T{0};
      sum += all_[i];
    }
    for (std::int64_t e = 0; e < experts; ++e)
      all_[static_cast<std::size_t>(t * experts + e)] /= sum;
  }
}

template <class T>
void ExpertWeights<T>::backward(T* gradient) const {
  for (std::int64_t t = 0; t < tokens_; ++t) {
    const auto first = static_cast<std::size_t>(t * experts_);
    const auto last = first + static_cast<std::size_t>(experts_);
    T along{};
    for (std::size_t i = first; i < last; ++i) along += all_[i] * slopes_[i];
    for (std::size_t i = first; i < last; ++i) gradient[i] += all_[i] * (slopes_[i] - along);
  }
}

template class ExpertWeights<float>;
template class ExpertWeights<double>;

}  // namespace reckon
