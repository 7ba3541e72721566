#pragma once
#include <cstdint>
#include <vector>

// Which expert gets which token: one rule for the three layers of a mixture of experts.
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

}  // namespace reckon
