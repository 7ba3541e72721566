#include "sim/queue/packing/pod_scheduler.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

PodScheduler::PodScheduler(std::span<const GpuNode> nodes, const GpuModels& models,
                           std::span<const int> ranks, std::span<const PodRequest> requests,
                           const Fragmentation& fragmentation,
                           std::unique_ptr<PlacementPolicy> policy, RandomStream luck)
    : fragmentation_(fragmentation),
      requests_(requests),
      policy_(std::move(policy)),
      luck_(luck),
      node_at_(nodes.size()),
      states_(nodes.size()),
      versions_(nodes.size(), 1),
      scores_(requests.size()) {
  RECKON_CHECK(ranks.size() == nodes.size());
  GpuModels known = models;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto rank = static_cast<std::size_t>(ranks[n]);
    node_at_[rank] = static_cast<int>(n);
    GpuNodeState& state = states_[rank];
    state = empty_state(nodes[n], known.add(nodes[n].model));
    state.fragmented = fragmentation.amount(state);
    fragmented_ += state.fragmented;
    gpu_milli_ += std::int64_t{state.gpus} * kWholeGpu;
  }
  for (const PodRequest& request : requests) allowed_.push_back(models.allowed(request.models));
}

void PodScheduler::score_again(std::size_t request) {
  Scores& scores = scores_[request];
  if (scores.versions.empty()) {
    scores.versions.assign(states_.size(), 0);
    scores.by_place.assign(states_.size(), kNoFit);
  }
  const PodRequest& pod = requests_[request];
  for (std::size_t k = 0; k < states_.size(); ++k) {
    if (scores.versions[k] == versions_[k]) continue;
    scores.versions[k] = versions_[k];
    const bool fit = fits(states_[k], pod, allowed_[request]);
    scores.by_place[k] = fit ? policy_->score(states_[k], pod) : kNoFit;
  }
}

/// Where it fits best, or, of a policy that takes any, anywhere; the number of nodes: nowhere.
std::size_t PodScheduler::choose(const Scores& scores) {
  const auto& by_place = scores.by_place;
  if (!policy_->any_node()) {
    const auto best = std::max_element(by_place.begin(), by_place.end());  // the first of equals
    return *best == kNoFit ? by_place.size() : static_cast<std::size_t>(best - by_place.begin());
  }
  const auto fitting = by_place.size() - static_cast<std::size_t>(
                                             std::count(by_place.begin(), by_place.end(), kNoFit));
  if (fitting == 0) return by_place.size();
  auto skip = static_cast<std::size_t>(luck_.uniform() * double(fitting));
  std::size_t k = 0;
  while (by_place[k] == kNoFit || skip-- > 0) ++k;
  return k;
}

std::optional<PlacedPod> PodScheduler::place(std::size_t request) {
  if (states_.empty()) return std::nullopt;
  score_again(request);
  const std::size_t k = choose(scores_[request]);
  if (k == states_.size()) return std::nullopt;
  const PodRequest& pod = requests_[request];
  GpuNodeState& state = states_[k];
  const int gpu = pod.shares_a_gpu() ? policy_->gpu_to_share(state, pod, luck_) : -1;
  take(state, pod, gpu);
  ++versions_[k];
  used_ += pod.gpu_milli_in_all();
  fragmented_ -= state.fragmented;
  state.fragmented = fragmentation_.amount(state);
  fragmented_ += state.fragmented;
  return PlacedPod{node_at_[k], gpu};
}

}  // namespace reckon
