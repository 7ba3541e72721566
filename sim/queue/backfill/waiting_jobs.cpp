#include "sim/queue/backfill/waiting_jobs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace reckon {

SimDuration longest_time(const JobRequest& job) {
  const auto& fixed = std::get<FixedTime>(job.work);
  return fixed.limit.value_or(fixed.time);
}

WaitingJobs::WaitingJobs(std::span<const JobRequest> jobs, QueueRules& rules)
    : jobs_(jobs), rules_(rules), depth_(rules.depth()), order_(jobs.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].submit < jobs[b].submit; });
  by_rank_ = order_;
  std::stable_sort(by_rank_.begin(), by_rank_.end(),
                   [&](std::size_t a, std::size_t b) { return rules_.tie(a) < rules_.tie(b); });
  rank_.resize(jobs.size());
  for (std::size_t k = 0; k < by_rank_.size(); ++k) rank_[by_rank_[k]] = k;
  make_lanes(jobs);
}

void WaitingJobs::make_lanes(std::span<const JobRequest> jobs) {
  std::map<std::tuple<std::size_t, CellSet, int>, std::uint32_t> known;
  std::vector<std::size_t> sizes;
  std::size_t groups = 0;
  lane_.resize(jobs.size());
  place_.resize(jobs.size());
  for (const std::size_t j : by_rank_) {
    const std::size_t group = rules_.group(j);
    groups = std::max(groups, group + 1);
    const auto [at, added] = known.try_emplace({group, rules_.nodes_of(j), jobs[j].gpus()},
                                               static_cast<std::uint32_t>(sizes.size()));
    if (added) sizes.push_back(0);
    lane_[j] = at->second;
    place_[j] = static_cast<std::uint32_t>(sizes[at->second]++);
  }
  std::vector<Lane> alike(sizes.size());
  for (const auto& [key, lane] : known) alike[lane] = {std::get<1>(key), std::get<2>(key)};
  std::size_t first = 0;
  for (std::size_t l = 0; l < sizes.size(); ++l) {
    lanes_.push_back({alike[l], first, FirstBelow(sizes[l]), false, {}, 0});
    first += sizes[l];
  }
  by_lane_.resize(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) by_lane_[lanes_[lane_[j]].first + place_[j]] = j;
  if (!bounded()) return;
  groups_.resize(groups);
  for (OfGroup& group : groups_) group.next = group.ranks.end();
}

WaitingJobs::Ordered WaitingJobs::ordered(std::size_t job) const {
  return {rules_.priority(job, std::max(recalculated_, jobs_[job].submit)), rank_[job]};
}

void WaitingJobs::show(std::size_t job) {
  OfLane& lane = lanes_[lane_[job]];
  lane.limits.set(place_[job], longest_time(jobs_[job]).count());
  if (place_[job] < lane.head.place) lane.known = 0;
  if (!lane.active) active_.push_back(lane_[job]);
  lane.active = true;
}

void WaitingJobs::hide(std::size_t job) {
  OfLane& lane = lanes_[lane_[job]];
  lane.limits.clear(place_[job]);
  if (place_[job] <= lane.head.place) lane.known = 0;
}

void WaitingJobs::add(std::size_t job) {
  fill();
  ++waiting_;
  if (!bounded()) return show(job);
  OfGroup& group = groups_[rules_.group(job)];
  const auto at = group.ranks.insert(rank_[job]).first;
  // Behind one of its group that is not within the depth it is not either.
  if (group.next != group.ranks.end() && *group.next < *at) return;
  const Ordered own = ordered(job);
  if (within_.size() >= depth_ && !(own < *within_.rbegin())) {
    group.next = at;
    return;
  }
  within_.insert(own);
  show(job);
  if (within_.size() <= depth_) return;
  const std::size_t last = std::prev(within_.end())->rank;
  within_.erase(std::prev(within_.end()));
  hide(by_rank_[last]);
  OfGroup& of_last = groups_[rules_.group(by_rank_[last])];
  of_last.next = of_last.ranks.find(last);
}

void WaitingJobs::remove(const Candidate& c) {
  --waiting_;
  hide(c.job);
  if (!bounded()) return;
  within_.erase({c.priority, c.rank});
  groups_[rules_.group(c.job)].ranks.erase(c.rank);
}

void WaitingJobs::take_out(std::size_t job) {
  --waiting_;
  if (!bounded()) return hide(job);
  OfGroup& group = groups_[rules_.group(job)];
  const auto at = group.ranks.find(rank_[job]);
  if (within_.erase(ordered(job)) > 0)
    hide(job);
  else if (group.next == at)
    ++group.next;
  group.ranks.erase(at);
}

/// Removed jobs leave room within the depth.
void WaitingJobs::fill() {
  while (bounded() && within_.size() < std::min(depth_, waiting_)) admit_next();
}

/// The first of those that are not within the depth.
void WaitingJobs::admit_next() {
  OfGroup* best = nullptr;
  Ordered first;
  for (OfGroup& group : groups_) {
    if (group.next == group.ranks.end()) continue;
    const Ordered own = ordered(by_rank_[*group.next]);
    if (best != nullptr && !(own < first)) continue;
    best = &group;
    first = own;
  }
  within_.insert(first);
  show(by_rank_[first.rank]);
  ++best->next;
}

void WaitingJobs::recalculate(SimTime at) {
  recalculated_ = std::max(recalculated_, at);
  ++priorities_;
  if (!bounded()) return;
  for (const Ordered& w : within_) hide(by_rank_[w.rank]);
  within_.clear();
  using Head = std::pair<Ordered, std::size_t>;  // of a group
  const auto later = [](const Head& a, const Head& b) { return b.first < a.first; };
  std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
  const auto push = [&](std::size_t g) {
    if (groups_[g].next != groups_[g].ranks.end())
      heads.push({ordered(by_rank_[*groups_[g].next]), g});
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].next = groups_[g].ranks.begin();
    push(g);
  }
  while (!heads.empty() && within_.size() < depth_) {
    const auto [own, g] = heads.top();
    heads.pop();
    within_.insert(within_.end(), own);
    show(by_rank_[own.rank]);
    ++groups_[g].next;
    push(g);
  }
}

WaitingJobs::Candidate WaitingJobs::candidate(std::size_t job) const {
  const Ordered own = ordered(job);
  return {own.priority, own.rank, job, lane_[job], place_[job]};
}

void WaitingJobs::begin_look(std::vector<Candidate>& firsts) {
  fill();
  firsts.clear();
  for (std::size_t k = active_.size(); k-- > 0;) {
    OfLane& lane = lanes_[active_[k]];
    if (lane.limits.empty()) {
      lane.active = false;
      active_[k] = active_.back();
      active_.pop_back();
      continue;
    }
    if (lane.known != priorities_) {
      lane.head = candidate(by_lane_[lane.first + lane.limits.find(0)]);
      lane.known = priorities_;
    }
    firsts.push_back(lane.head);
  }
}

bool WaitingJobs::next(Candidate& c, std::int64_t limit) const {
  const OfLane& lane = lanes_[c.lane];
  const std::size_t place = lane.limits.find(c.place + 1, limit);
  if (place == FirstBelow::kNowhere) return false;
  c = candidate(by_lane_[lane.first + place]);
  return true;
}

}  // namespace reckon
