#include "sim/step/network/fluid_flows.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

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

void FlowSystem::reset(const Network& network) {
  flows_.clear();
  transfers_.clear();
  ends_.clear();
  free_slots_.clear();
  flow_count_ = new_flow_count_ = 0;
  slowest_ended_ = kNever;
  const auto capacities = network.links();
  links_.assign(capacities.size(), Link{});
  for (std::size_t l = 0; l < capacities.size(); ++l) links_[l].capacity = capacities[l].v;
  if (members_.size() < links_.size()) {
    members_.resize(links_.size());
    capped_.resize(links_.size());
  }
  used_links_.clear();
  dirty_links_.clear();
  solve_ = 0;
  whole_solves_left_ = 0;
  dates_.clear();
  dates_valid_ = false;
  next_end_ = kNever;
}

std::uint32_t FlowSystem::new_slot() {
  if (!free_slots_.empty()) {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  flows_.emplace_back();
  transfers_.emplace_back();
  ends_.push_back(kNever);
  return std::uint32_t(flows_.size() - 1);
}

void FlowSystem::touch(std::uint32_t link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_links_.push_back(link);
}

void FlowSystem::add_member(std::uint32_t link, Member member, double cap) {
  std::vector<Member>& members = members_[link];
  std::vector<CappedMember>& capped = capped_[link];
  if (links_[link].weight == 0) {  // all that is left is stale
    members.clear();
    capped.clear();
  }
  if (members.size() == members.capacity()) {
    std::erase_if(members, [this](Member m) { return !alive(m); });
    if (members.size() > members.capacity() / 2) members.reserve(2 * members.capacity());
  }
  members.push_back(member);
  if (cap == kNever) return;
  if (capped.size() == capped.capacity()) {
    std::erase_if(capped, [this](const CappedMember& m) { return !alive(m.member); });
    if (capped.size() > capped.capacity() / 2) capped.reserve(2 * capped.capacity());
  }
  const auto at =
      std::upper_bound(capped.begin(), capped.end(), cap,
                       [](double c, const CappedMember& other) { return c < other.cap; });
  capped.insert(at, {cap, member});
}

std::uint32_t FlowSystem::start(double now, std::span<const LinkId> path, double size, double cap,
                                double multiplicity, std::uint32_t owner) {
  const std::uint32_t slot = new_slot();
  flows_[slot] = {0, multiplicity, owner, 0};
  transfers_[slot] = {size, now, cap, path.data(), std::uint32_t(path.size())};
  ++flow_count_;
  ++new_flow_count_;
  for (const LinkId id : path) {
    Link& link = links_[index(id)];
    add_member(std::uint32_t(index(id)), {slot, owner}, cap);
    link.weight += multiplicity;
    link.has_new_flows = true;
    if (!link.in_use) {
      link.in_use = true;
      used_links_.push_back(std::uint32_t(index(id)));
    }
    touch(std::uint32_t(index(id)));
  }
  return slot;
}

bool FlowSystem::is_twin(std::uint32_t slot, double now, std::span<const LinkId> path, double size,
                         double cap) const {
  const Transfer& transfer = transfers_[slot];
  const bool fresh =
      flows_[slot].owner != kNobody && flows_[slot].rate == 0 && transfer.settled == now;
  return fresh && transfer.path == path.data() && transfer.remaining == size && transfer.cap == cap;
}

void FlowSystem::join(std::uint32_t slot, double multiplicity) {
  flows_[slot].multiplicity += multiplicity;
  for (const LinkId id : path(slot)) links_[index(id)].weight += multiplicity;
}

void FlowSystem::end(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  for (const LinkId id : path(slot)) {
    links_[index(id)].weight -= flow.multiplicity;
    touch(std::uint32_t(index(id)));
  }
  slowest_ended_ = std::min(slowest_ended_, flow.rate);
  flow.owner = kNobody;
  ends_[slot] = kNever;
  free_slots_.push_back(slot);
  --flow_count_;
}

void FlowSystem::end_due(double horizon, std::vector<std::uint32_t>& owners) {
  if (next_end_ > horizon) return;
  if (!dates_valid_) {
    for (std::uint32_t slot = 0; slot < ends_.size(); ++slot) {
      if (ends_[slot] > horizon) continue;
      owners.push_back(flows_[slot].owner);
      end(slot);
    }
    return;
  }
  for (; !dates_.empty() && dates_.top().key <= horizon; dates_.pop()) {
    const Keyed due = dates_.top();
    if (flows_[due.id].owner != due.owner || ends_[due.id] != due.key) continue;
    owners.push_back(due.owner);
    end(due.id);
  }
}

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
