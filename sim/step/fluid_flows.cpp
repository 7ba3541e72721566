#include "sim/step/fluid_flows.h"

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

// A search that reaches this share of all flows is given up for solving everything ...
constexpr double kNearlyEverything = 0.75;
// ... and so many solves later the component is looked at again.
constexpr int kWholeSolves = 32;

}  // namespace

void FlowSystem::reset(const Network& network) {
  flows_.clear();
  ends_.clear();
  free_slots_.clear();
  flow_count_ = 0;
  const auto capacities = network.links();
  links_.assign(capacities.size(), Link{});
  for (std::size_t l = 0; l < capacities.size(); ++l) links_[l].capacity = capacities[l].v;
  if (members_.size() < links_.size()) members_.resize(links_.size());
  active_links_.clear();
  dirty_links_.clear();
  solve_ = 0;
  whole_solves_left_ = 0;
  levels_.clear();
  dates_.clear();
  dates_valid_ = false;
  next_end_ = kNever;
}

void FlowSystem::touch(std::uint32_t link) {
  if (links_[link].dirty) return;
  links_[link].dirty = true;
  dirty_links_.push_back(link);
}

void FlowSystem::drop_stale(std::vector<Member>& members) {
  std::erase_if(members, [this](Member m) { return !alive(m); });
}

std::uint32_t FlowSystem::start(double now, std::span<const LinkId> path, double size, double cap,
                                double multiplicity, std::uint32_t owner) {
  std::uint32_t slot;
  if (free_slots_.empty()) {
    slot = std::uint32_t(flows_.size());
    flows_.emplace_back();
    ends_.push_back(kNever);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  flows_[slot] =
      Flow{0, size, now, cap, multiplicity, path.data(), std::uint32_t(path.size()), owner, 0, 0};
  ++flow_count_;
  for (const LinkId id : path) {
    Link& link = links_[index(id)];
    std::vector<Member>& members = members_[index(id)];
    if (link.weight == 0) members.clear();
    if (members.size() == members.capacity() && !members.empty()) drop_stale(members);
    members.push_back({slot, owner});
    link.weight += multiplicity;
    link.capped += cap < kNever;
    if (!link.listed) {
      link.listed = true;
      active_links_.push_back(std::uint32_t(index(id)));
    }
    touch(std::uint32_t(index(id)));
  }
  return slot;
}

bool FlowSystem::is_twin(std::uint32_t slot, double now, std::span<const LinkId> path, double size,
                         double cap) const {
  const Flow& flow = flows_[slot];
  const bool fresh =
      flow.owner != kNobody && flow.rate == 0 && flow.settled == now;  // without a rate yet
  return fresh && flow.path == path.data() && flow.remaining == size && flow.cap == cap;
}

void FlowSystem::join(std::uint32_t slot, double multiplicity) {
  Flow& flow = flows_[slot];
  flow.multiplicity += multiplicity;
  for (const LinkId id : std::span(flow.path, flow.path_size))
    links_[index(id)].weight += multiplicity;
}

void FlowSystem::end(std::uint32_t slot) {
  Flow& flow = flows_[slot];
  for (const LinkId id : std::span(flow.path, flow.path_size)) {
    Link& link = links_[index(id)];
    link.weight -= flow.multiplicity;
    link.capped -= flow.cap < kNever;
    touch(std::uint32_t(index(id)));
  }
  flow.owner = kNobody;
  ends_[slot] = kNever;
  free_slots_.push_back(slot);
  --flow_count_;
}

void FlowSystem::end_due(double horizon, std::vector<std::uint32_t>& owners) {
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
  if (flow_count_ == 0) {
    next_end_ = kNever;
    return;
  }
  ++solve_;
  partial_ = false;
  if (whole_solves_left_ > 0) {
    --whole_solves_left_;
  } else {
    partial_ = find_component();
    if (!partial_) whole_solves_left_ = kWholeSolves;
  }
  for (const std::uint32_t link : dirty_links_) links_[link].dirty = false;
  dirty_links_.clear();
  if (!partial_) take_everything();
  fill(now, partial_ ? component_flows_.size() : flow_count_);
  partial_ ? forecast_after_partial(now) : forecast_after_whole();
}

/// The flows and links connected to the dirty links. False (and unfinished) if that is nearly
/// everything.
bool FlowSystem::find_component() {
  component_links_.clear();
  component_flows_.clear();
  const auto limit = std::size_t(kNearlyEverything * double(flow_count_));
  const auto reach = [this](std::uint32_t link) {
    if (links_[link].seen == solve_ || links_[link].weight == 0) return;
    links_[link].seen = solve_;
    component_links_.push_back(link);
  };
  for (const std::uint32_t link : dirty_links_) reach(link);
  for (std::size_t i = 0; i < component_links_.size(); ++i) {
    std::vector<Member>& members = members_[component_links_[i]];
    drop_stale(members);
    for (const Member m : members) {
      Flow& flow = flows_[m.slot];
      if (flow.seen == solve_) continue;
      flow.seen = solve_;
      component_flows_.push_back(m.slot);
      for (const LinkId id : std::span(flow.path, flow.path_size)) reach(std::uint32_t(index(id)));
    }
    if (component_flows_.size() > limit) return false;
  }
  return true;
}

void FlowSystem::take_everything() {
  std::erase_if(active_links_, [this](std::uint32_t link) {
    const bool unused = links_[link].weight == 0;
    if (unused) links_[link].listed = false;
    return unused;
  });
}

/// Progressive filling over the component's links, or over all. `rising` counts the flows to give a
/// rate.
void FlowSystem::fill(double now, std::size_t rising) {
  levels_.clear();
  for (const std::uint32_t id : partial_ ? component_links_ : active_links_) {
    Link& link = links_[id];
    link.unused = link.capacity;
    link.rising = link.weight;
    levels_.append({link.capacity / link.weight, id, 0});
  }
  levels_.heapify();
  double water = 0;
  while (rising > 0) {
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
    if (link.capped > 0) {
      if (const std::size_t fixed = fix_members(top.id, level, true, now)) {
        rising -= fixed;
        continue;
      }
    }
    water = level;
    rising -= fix_members(top.id, level, false, now);
    levels_.pop();
  }
}

/// Gives the flows of `link` that have no rate yet `level`; or those of them whose cap is not above
/// it their cap.
std::size_t FlowSystem::fix_members(std::uint32_t link, double level, bool only_capped,
                                    double now) {
  std::vector<Member>& members = members_[link];
  std::size_t fixed = 0, kept = 0;
  for (const Member m : members) {
    if (!alive(m)) continue;
    members[kept++] = m;
    const Flow& flow = flows_[m.slot];
    if (flow.fixed == solve_ || (only_capped && flow.cap > level)) continue;
    fix(m.slot, only_capped ? flow.cap : level, now);
    ++fixed;
  }
  members.resize(kept);
  return fixed;
}

void FlowSystem::fix(std::uint32_t slot, double rate, double now) {
  Flow& flow = flows_[slot];
  flow.fixed = solve_;
  const double taken = rate * flow.multiplicity;
  for (const LinkId id : std::span(flow.path, flow.path_size)) {
    links_[index(id)].unused -= taken;
    links_[index(id)].rising -= flow.multiplicity;
  }
  if (rate == flow.rate) return;
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now - flow.settled));
  flow.settled = now;
  flow.rate = rate;
  ends_[slot] = now + flow.remaining / rate;
}

void FlowSystem::forecast_after_whole() {
  dates_valid_ = false;
  next_end_ = kNever;
  for (const double end : ends_) next_end_ = std::min(next_end_, end);
}

void FlowSystem::forecast_after_partial(double now) {
  if (!dates_valid_ || dates_.size() > 2 * flow_count_ + 64) {
    dates_.clear();
    for (std::uint32_t slot = 0; slot < ends_.size(); ++slot) {
      if (ends_[slot] < kNever) dates_.append({ends_[slot], slot, flows_[slot].owner});
    }
    dates_.heapify();
    dates_valid_ = true;
  } else {
    for (const std::uint32_t slot : component_flows_) {
      if (flows_[slot].settled == now) dates_.push({ends_[slot], slot, flows_[slot].owner});
    }
  }
  const auto stale = [this](const Keyed& k) {
    return flows_[k.id].owner != k.owner || ends_[k.id] != k.key;
  };
  while (!dates_.empty() && stale(dates_.top())) dates_.pop();
  next_end_ = dates_.empty() ? kNever : dates_.top().key;
}

}  // namespace reckon
