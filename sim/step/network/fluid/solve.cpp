#include <algorithm>

#include "sim/base/check.h"
#include "sim/step/network/fluid/flows.h"

// FlowSystem::solve: which flows a change concerns, their new rates, and the next end.
namespace reckon {
namespace {

// Levels of links that fill together by symmetry differ by the rounding of their sums; taken as
// equal, their flows get equal rates to the last bit and end in one event. 1e-13 is some hundred
// roundings and far below the 1e-9 that the model promises.
constexpr double kSameLevel = 1 + 1e-13;

// Only flows that are slower than the first changed level by more than rounding keep their rates.
constexpr double kClearlyBelow = 1 - 1e-12;

// A search that met kNearlyAll of the flows that do not keep their rates, and kMany of all flows,
// is followed by so many solves without a search; where it met kSearchIsVain of all flows, these do
// not look for flows that keep theirs either.
constexpr double kNearlyAll = 0.75;
constexpr double kMany = 0.3;
constexpr double kSearchIsVain = 0.9;
constexpr int kWholeSolves = 32;

// The next end is found by a scan over all dates, or in a heap, which pays where a solve changes
// few of many dates.
constexpr std::size_t kScanRatio = 32;

}  // namespace

void FlowSystem::solve(double now) {
  if (dirty_links_.empty()) return;
  ++solve_;
  const bool mostly_new = 2 * new_flow_count_ > flow_count_;
  whole_ = mostly_new || whole_solves_left_ > 0;
  kept_below_ =
      mostly_new || (whole_ && !some_keep_rates_) ? 0 : first_changed_level() * kClearlyBelow;
  if (whole_) {
    take_everything();
    if (whole_solves_left_ > 0) --whole_solves_left_;
  } else {
    find_affected();
    if (everything_is_affected()) whole_solves_left_ = kWholeSolves;
  }
  for (const std::uint32_t link : dirty_links_)
    links_[link].dirty = links_[link].has_new_flows = false;
  dirty_links_.clear();
  slowest_ended_ = kNever;
  new_flow_count_ = 0;
  fill(now);
  forecast(now);
}

/// A lower bound, close in most cases, of the level at which the link fills with all its old flows
/// at no more than their old rates and its new ones at that level.
double FlowSystem::level_with_new_flows(const Link& link, std::span<const Member> members) const {
  double level = link.capacity / link.weight;
  for (int pass = 0; pass < 2; ++pass) {  // each pass raises the bound
    double unused = link.capacity, weight = link.weight;
    for (const Member m : members) {
      const Flow& flow = flows_[m.slot];
      if (!(flow.rate < level) || flow.rate == 0 || !alive(m)) continue;
      unused -= flow.rate * flow.multiplicity;
      weight -= flow.multiplicity;
    }
    level = std::max(level, unused / weight);
  }
  return level;
}

/// Below this level nothing changes (see the class); 0 where most flows are new and it would not
/// help.
double FlowSystem::first_changed_level() const {
  if (2 * new_flow_count_ > flow_count_) return 0;
  double level = slowest_ended_;
  for (const std::uint32_t link : dirty_links_) {
    if (links_[link].has_new_flows)
      level = std::min(level, level_with_new_flows(links_[link], members_[link]));
  }
  return level;
}

void FlowSystem::take_everything() {
  std::erase_if(used_links_, [this](std::uint32_t id) {
    Link& link = links_[id];
    link.unused = link.capacity;
    link.rising = link.weight;
    link.next_cap = 0;
    link.in_use = link.weight > 0;
    return !link.in_use;
  });
  rising_count_ = flow_count_;
  if (kept_below_ == 0) return;
  for (std::uint32_t slot = 0; slot < flows_.size(); ++slot) {
    Flow& flow = flows_[slot];
    if (flow.owner == kNobody || !keeps_rate(flow)) continue;
    flow.mark = 2 * solve_ + 1;
    --rising_count_;
    for (const LinkId id : path(slot)) {
      links_[index(id)].unused -= flow.rate * flow.multiplicity;
      links_[index(id)].rising -= flow.multiplicity;
    }
  }
}

/// Collects the flows to be solved again and the links that they share, ready for filling.
void FlowSystem::find_affected() {
  affected_links_.clear();
  affected_flows_.clear();
  for (const std::uint32_t link : dirty_links_) reach(link);
  for (std::size_t i = 0; i < affected_links_.size(); ++i) gather(affected_links_[i]);
  rising_count_ = affected_flows_.size();
}

void FlowSystem::reach(std::uint32_t link) {
  if (links_[link].reached == solve_ || links_[link].weight == 0) return;
  links_[link].reached = solve_;
  affected_links_.push_back(link);
}

/// Puts the link's flows into the solve, but for those that keep their rates.
void FlowSystem::gather(std::uint32_t id) {
  double unused = links_[id].capacity, rising = 0;
  for (const Member m : members_[id]) {
    if (!alive(m)) continue;
    Flow& flow = flows_[m.slot];
    if (keeps_rate(flow)) {
      unused -= flow.rate * flow.multiplicity;
      flow.mark = 2 * solve_ + 1;
      continue;
    }
    rising += flow.multiplicity;
    if (flow.mark == 2 * solve_) continue;
    flow.mark = 2 * solve_;
    affected_flows_.push_back(m.slot);
    for (const LinkId other : path(m.slot)) reach(std::uint32_t(index(other)));
  }
  links_[id].unused = unused;
  links_[id].rising = rising;
  links_[id].next_cap = 0;
}

/// After a search: whether the next ones are better left out.
bool FlowSystem::everything_is_affected() {
  some_keep_rates_ = double(rising_count_) < kSearchIsVain * double(flow_count_);
  if (double(rising_count_) < kMany * double(flow_count_)) return false;
  std::size_t could_be = 0;
  for (const Flow& flow : flows_) could_be += flow.owner != kNobody && !keeps_rate(flow);
  return double(rising_count_) >= kNearlyAll * double(could_be);
}

/// Progressive filling of the affected links.
void FlowSystem::fill(double now) {
  levels_.clear();
  for (const std::uint32_t id : whole_ ? used_links_ : affected_links_) {
    if (links_[id].rising > 0) levels_.append({links_[id].unused / links_[id].rising, id, 0});
  }
  levels_.heapify();
  double water = kept_below_;  // no level is lower
  for (std::size_t rising = rising_count_; rising > 0;) {
    RECKON_CHECK(!levels_.empty());
    const Keyed top = levels_.top();
    const Link& link = links_[top.id];
    if (link.rising == 0) {
      levels_.pop();
      continue;
    }
    double level = link.unused / link.rising;
    if (level <= water * kSameLevel) level = water;
    if (level > top.key * kSameLevel) {
      levels_.raise_top(level);
      continue;
    }
    if (const std::size_t fixed = fix_capped(top.id, level, now)) {
      rising -= fixed;
      continue;
    }
    water = level;
    rising -= fix_all(top.id, level, now);
    levels_.pop();
  }
}

/// Gives the link's rising flows whose cap is not above `level` their cap.
std::size_t FlowSystem::fix_capped(std::uint32_t link, double level, double now) {
  const std::vector<CappedMember>& capped = capped_[link];
  std::uint32_t& next = links_[link].next_cap;
  std::size_t fixed = 0;
  for (; next < capped.size() && capped[next].cap <= level; ++next) {
    const Member m = capped[next].member;
    if (!alive(m) || has_rate(m.slot)) continue;
    fix(m.slot, capped[next].cap, now);
    ++fixed;
  }
  return fixed;
}

/// Gives all rising flows of the link `level`.
std::size_t FlowSystem::fix_all(std::uint32_t link, double level, double now) {
  std::vector<Member>& members = members_[link];
  std::size_t fixed = 0, kept = 0;
  for (const Member m : members) {
    if (!alive(m)) continue;
    members[kept++] = m;
    if (has_rate(m.slot)) continue;
    fix(m.slot, level, now);
    ++fixed;
  }
  members.resize(kept);
  return fixed;
}

void FlowSystem::fix(std::uint32_t slot, double rate, double now) {
  Flow& flow = flows_[slot];
  flow.mark = 2 * solve_ + 1;
  const double taken = rate * flow.multiplicity;
  for (const LinkId id : path(slot)) {
    links_[index(id)].unused -= taken;
    links_[index(id)].rising -= flow.multiplicity;
  }
  if (rate == flow.rate) return;
  Transfer& transfer = transfers_[slot];
  transfer.remaining = std::max(0.0, transfer.remaining - flow.rate * (now - transfer.settled));
  transfer.settled = now;
  flow.rate = rate;
  ends_[slot] = now + transfer.remaining / rate;
}

/// Finds the next end among all flows.
void FlowSystem::forecast(double now) {
  if (whole_ || affected_flows_.size() * kScanRatio >= ends_.size()) {
    dates_valid_ = false;
    next_end_ = kNever;
    for (const double end : ends_) next_end_ = std::min(next_end_, end);
    return;
  }
  if (!dates_valid_ || dates_.size() > 2 * ends_.size() + 64) {
    rebuild_dates();
  } else {
    for (const std::uint32_t slot : affected_flows_) {
      if (transfers_[slot].settled == now) dates_.push({ends_[slot], slot, flows_[slot].owner});
    }
  }
  const auto stale = [this](const Keyed& k) {
    return flows_[k.id].owner != k.owner || ends_[k.id] != k.key;
  };
  while (!dates_.empty() && stale(dates_.top())) dates_.pop();
  next_end_ = dates_.empty() ? kNever : dates_.top().key;
}

void FlowSystem::rebuild_dates() {
  dates_.clear();
  for (std::uint32_t slot = 0; slot < ends_.size(); ++slot) {
    if (ends_[slot] < kNever) dates_.append({ends_[slot], slot, flows_[slot].owner});
  }
  dates_.heapify();
  dates_valid_ = true;
}

}  // namespace reckon
