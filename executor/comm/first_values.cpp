#include "executor/comm/first_values.h"

#include <algorithm>
#include <vector>

#include "sim/base/check.h"

namespace reckon {

void share_first_values(std::span<float> values, Communicator& all,
                        std::span<const ParameterRange> of_experts, Communicator* replicas) {
  RECKON_CHECK(of_experts.empty() || replicas != nullptr);
  std::vector<std::vector<float>> own;  // rank 0 of all has others
  for (const ParameterRange& range : of_experts) {
    const auto of_range = values.subspan(range.first, range.count);
    own.emplace_back(of_range.begin(), of_range.end());
  }
  all.broadcast(std::as_writable_bytes(values), 0);
  for (std::size_t k = 0; k < of_experts.size(); ++k) {
    const auto of_range = values.subspan(of_experts[k].first, of_experts[k].count);
    std::ranges::copy(own[k], of_range.begin());
    replicas->broadcast(std::as_writable_bytes(of_range), 0);
  }
}

}  // namespace reckon
