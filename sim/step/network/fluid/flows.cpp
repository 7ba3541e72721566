#include "sim/step/network/fluid/flows.h"

#include <algorithm>

namespace reckon {

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

}  // namespace reckon
