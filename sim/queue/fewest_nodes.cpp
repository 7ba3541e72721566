#include "sim/queue/fewest_nodes.h"

#include <algorithm>

namespace reckon {
namespace {

/// Jobs that no empty cluster can run, or that Karpenter's limits keep from nodes to the end.
double unserved(const TraceResult& result) {
  return double(result.never) + (result.karpenter ? result.karpenter->starved : 0);
}

class NodeSearch {
 public:
  NodeSearch(FewestNodes& found, const std::function<Expected<TraceResult>(int)>& answer)
      : found_(found), answer_(answer) {}

  Expected<void> search() {
    int low = 0, high = 0;  // does not hold with low, 0 nodes never do; holds with high
    int nodes = std::max(1, found_.now);
    while (high == 0 || low == 0) {
      const auto holds = try_with(nodes);
      if (!holds) return tl::unexpected(holds.error());
      if (*holds) {
        high = nodes;
        if (nodes == 1 || low > 0) break;
        nodes /= 2;
      } else {
        low = nodes;
        if (high > 0) break;
        if (nodes >= kMostNodesTried || stands_still()) return {};
        nodes = std::min(2 * nodes, kMostNodesTried);
      }
    }
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      const auto holds = try_with(middle);
      if (!holds) return tl::unexpected(holds.error());
      (*holds ? high : low) = middle;
    }
    found_.fewest = high;
    return {};
  }

 private:
  Expected<bool> try_with(int nodes) {
    auto result = answer_(nodes);
    if (!result) return tl::unexpected(std::move(result.error()));
    NodesTried tried{nodes, std::move(*result), {}, false};
    if (unserved(tried.result) > 0 && !never_) {
      const auto most = answer_(kMostNodesTried);
      if (!most) return tl::unexpected(most.error());
      never_ = unserved(*most);
    }
    tried.value = value_of(found_.limit, tried.result);
    tried.holds = tried.value && unserved(tried.result) <= never_.value_or(0) &&
                  holds(*tried.value, found_.limit.comparison, found_.limit.value);
    values_.push_back(tried.value.value_or(-1));
    const auto at = std::find_if(found_.tried.begin(), found_.tried.end(),
                                 [&](const NodesTried& t) { return t.nodes > nodes; });
    const bool held = tried.holds;
    found_.tried.insert(at, std::move(tried));
    return held;
  }
  /// Twice as many nodes, twice in a row, gave the same.
  bool stands_still() const {
    const std::size_t n = values_.size();
    return n > 2 && values_[n - 1] == values_[n - 2] && values_[n - 2] == values_[n - 3];
  }

  FewestNodes& found_;
  const std::function<Expected<TraceResult>(int)>& answer_;
  std::vector<double> values_;
  std::optional<double> never_;  // jobs that no number of nodes lets run; nullopt: unknown
};

}  // namespace

bool is_limit_of_nodes(const Expectation& limit) {
  const bool upper = limit.comparison == Comparison::le || limit.comparison == Comparison::lt;
  return upper && (limit.metric == Metric::wait || limit.metric == Metric::jct ||
                   limit.metric == Metric::slowdown || limit.metric == Metric::makespan);
}

Expected<FewestNodes> fewest_nodes(std::string pool, int now, const Expectation& limit,
                                   const std::function<Expected<TraceResult>(int)>& answer) {
  FewestNodes found{.pool = std::move(pool), .limit = limit, .now = now};
  if (auto done = NodeSearch(found, answer).search(); !done)
    return tl::unexpected(std::move(done.error()));
  return found;
}

}  // namespace reckon
