#include "sim/queue/multifactor/fair_share.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace reckon {
namespace {

/// Of users and all accounts above them.
std::vector<double> summed_up(const ShareTree& tree, std::span<const double> usage) {
  std::vector<double> sums(usage.begin(), usage.end());
  for (std::size_t n = tree.nodes.size(); n-- > 1;)
    sums[static_cast<std::size_t>(tree.nodes[n].parent)] += sums[n];
  return sums;
}

/// By node, the shares of all children.
std::vector<double> shares_of_children(const ShareTree& tree) {
  std::vector<double> sums(tree.nodes.size());
  for (std::size_t n = 1; n < tree.nodes.size(); ++n)
    sums[static_cast<std::size_t>(tree.nodes[n].parent)] += tree.nodes[n].shares;
  return sums;
}

class FairTree {
 public:
  FairTree(const ShareTree& tree, std::span<const double> usage)
      : tree_(tree), children_(tree.nodes.size()), level_(tree.nodes.size()) {
    const std::vector<double> used = summed_up(tree, usage), shares = shares_of_children(tree);
    for (std::size_t n = 1; n < tree.nodes.size(); ++n) {
      const auto parent = static_cast<std::size_t>(tree.nodes[n].parent);
      children_[parent].push_back(n);
      const double share = shares[parent] > 0 ? tree.nodes[n].shares / shares[parent] : 0;
      if (used[n] > 0)
        level_[n] = share * used[parent] / used[n];
      else
        level_[n] = share > 0 ? std::numeric_limits<double>::infinity() : 0;
      users_ += tree.nodes[n].is_user ? 1 : 0;
    }
    rank_ = next_rank_ = users_;
  }

  std::vector<double> factors() {
    factors_.assign(tree_.nodes.size(), 0);
    visit(children_[0], false);
    return std::move(factors_);
  }

 private:
  /// `tied`: the best of them are as good as the user that got the last rank.
  void visit(std::vector<std::size_t> siblings, bool tied) {
    std::stable_sort(siblings.begin(), siblings.end(),
                     [&](std::size_t a, std::size_t b) { return level_[a] > level_[b]; });
    for (auto from = siblings.begin(); from != siblings.end();) {
      const auto to = std::find_if(from, siblings.end(),
                                   [&](std::size_t n) { return level_[n] != level_[*from]; });
      if (!tied) rank_ = next_rank_;
      std::vector<std::size_t> below;
      for (auto at = from; at != to; ++at) {
        if (tree_.nodes[*at].is_user) {
          factors_[*at] = rank_ / users_;
          --next_rank_;
          tied = true;
        } else {
          below.insert(below.end(), children_[*at].begin(), children_[*at].end());
        }
      }
      if (!below.empty()) visit(std::move(below), tied);
      tied = false;
      from = to;
    }
  }

  const ShareTree& tree_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<double> level_, factors_;
  double users_ = 0, rank_ = 0, next_rank_ = 0;
};

}  // namespace

std::vector<double> fair_tree_factors(const ShareTree& tree, std::span<const double> usage) {
  return FairTree(tree, usage).factors();
}

std::vector<double> classic_factors(const ShareTree& tree,
                                    std::span<const double> normalized_usage) {
  const std::vector<double> used = summed_up(tree, normalized_usage);
  const std::vector<double> all = shares_of_children(tree);
  std::vector<double> share(tree.nodes.size(), 1), effective = used, factors(tree.nodes.size(), 0);
  for (std::size_t n = 1; n < tree.nodes.size(); ++n) {
    const auto parent = static_cast<std::size_t>(tree.nodes[n].parent);
    const double part = all[parent] > 0 ? tree.nodes[n].shares / all[parent] : 0;
    share[n] = share[parent] * part;
    if (parent != 0) effective[n] = used[n] + (effective[parent] - used[n]) * part;
    factors[n] = share[n] > 0 ? std::exp2(-effective[n] / share[n]) : 0;
  }
  return factors;
}

double DecayedUsage::at(SimTime now, Seconds half_life) const {
  const double rate = std::numbers::ln2 / half_life.count();
  const double passed = to_seconds(now - since_).count();
  // expm1, as most times between two looks are short against the half-life.
  return usage_ + (gpus_ / rate - usage_) * -std::expm1(-rate * passed);
}

void DecayedUsage::add_gpus(int gpus, SimTime now, Seconds half_life) {
  usage_ = at(now, half_life);
  since_ = now;
  gpus_ += gpus;
}

}  // namespace reckon
