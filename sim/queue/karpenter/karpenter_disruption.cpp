#include <algorithm>
#include <map>

#include "sim/cluster/autoscalers/disruption_budgets.h"
#include "sim/cluster/never.h"
#include "sim/queue/karpenter/karpenter_life.h"

// The disruption loop ["Disruption", "Disruption Controller"]: one command at a time.
namespace reckon::karpenter {
namespace {

using namespace std::chrono_literals;

/// pollingPeriod of the disruption controller, and consolidationTTL.
constexpr SimDuration kPoll = 10s, kValidation = 15s;
/// A schedule of a budget changes at whole minutes.
constexpr SimDuration kMinute = 1min;

SimTime poll_at_or_after(SimTime t) {
  return SimTime{(t.time_since_epoch() + kPoll - SimDuration{1}) / kPoll * kPoll};
}

}  // namespace

/// Nodes that consolidation may look at, now or later.
bool Life::may_go(const Node& node, bool empty) const {
  if (!node.ready || node.gone || node.tainted || node.pods.empty() != empty) return false;
  const NodePoolSpec& spec = node_pool_of(node);
  if (empty) return spec.consolidate_after.has_value();
  return spec.consolidate_after &&
         spec.consolidation_policy == ConsolidationPolicy::WhenEmptyOrUnderutilized &&
         !is_protected(node);
}

/// Drifted nodes that may be replaced, now or later: of empty ones Karpenter thinks that a budget
/// keeps them, and of those with pods that may not be evicted the grace period ends the drain.
bool Life::has_drifted(const Node& node) const {
  return node.drifted && node.ready && !node.gone && !node.tainted && !node.pods.empty() &&
         (node_pool_of(node).termination_grace_period || !is_protected(node));
}

/// A look that found nothing is not repeated before something changes, a node becomes
/// consolidatable, or a budget with a schedule may.
void Life::plan_poll() {
  if (found_ || executing_) return;
  SimTime next = SimTime::max();
  // Where an offering had no capacity, a node may be replaced when it has.
  const SimTime again = available_after(looked_);
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    if (has_drifted(node)) next = std::min(next, changed_ ? now_ : again);
    if (!may_go(node, node.pods.empty())) continue;
    const SimTime at = consolidatable_at(node, node_pool_of(node));
    if (changed_ || at > looked_) next = std::min(next, at);
    if (!node.pods.empty() && again < SimTime::max()) next = std::min(next, std::max(at, again));
  }
  if (budget_bound_) next = std::min(next, looked_ + kMinute);
  if (next == SimTime::max()) return;
  const SimTime at = poll_at_or_after(std::max({next, now_, looked_ + SimDuration{1}}));
  if (at == poll_at_) return;
  poll_at_ = at;
  schedule(at, Kind::poll);
}

void Life::poll() {
  poll_at_ = SimTime::max();
  if (found_ || executing_) return;
  looked_ = now_;
  changed_ = budget_bound_ = false;
  found_ = find_command();
  if (found_) {
    changed_ = true;
    if (found_->kind == ConsolidationKind::drift) return validate();
    return schedule(now_ + kValidation, Kind::validate);
  }
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    const NodePoolSpec& spec = node_pool_of(node);
    if (has_drifted(node) ||
        (may_go(node, node.pods.empty()) && consolidatable_at(node, spec) <= now_))
      budget_bound_ = budget_bound_ || std::ranges::any_of(spec.budgets, [](const auto& b) {
                        return !b.schedule.empty();
                      });
  }
}

int Life::allowed(std::size_t node_pool, DisruptionReason reason) const {
  NodeCounts counts;
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    if (!node.ready || offering_of(node).node_pool != node_pool) continue;
    ++counts.total;
    if (node.tainted) ++counts.disrupting;
  }
  return allowed_disruptions(market_.spec.node_pools[node_pool].budgets, counts, reason,
                             market_.begins, now_);
}

/// "Empty Node Consolidation": as many as the budgets let go.
std::vector<std::size_t> Life::empty_nodes() const {
  std::vector<std::size_t> found;
  std::map<std::size_t, int> left;  // by NodePool
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    if (!may_go(node, true) || consolidatable_at(node, node_pool_of(node)) > now_) continue;
    const std::size_t pool = offering_of(node).node_pool;
    const auto [at, added] = left.try_emplace(pool, 0);
    if (added) at->second = allowed(pool, DisruptionReason::Empty);
    if (at->second-- > 0) found.push_back(n);
  }
  return found;
}

Candidate Life::candidate(std::size_t n) const {
  const Node& node = nodes_[n];
  Candidate out{.node = n, .offering = node.offering, .disruption_cost = 0, .pods = {}};
  std::vector<int> priorities;
  for (const std::size_t p : node.pods) {
    out.pods.push_back({p, pods_[p].asks});
    priorities.push_back(priority_of(p));
  }
  out.disruption_cost =
      disruption_cost_of(priorities, lifetime_left(node, node_pool_of(node), now_));
  return out;
}

/// Nodes with pods, in order of their disruption cost.
std::vector<Candidate> Life::candidates() const {
  std::vector<Candidate> found;
  for (const std::size_t n : alive_) {
    const Node& node = nodes_[n];
    if (may_go(node, false) && consolidatable_at(node, node_pool_of(node)) <= now_)
      found.push_back(candidate(n));
  }
  std::ranges::stable_sort(found, {}, &Candidate::disruption_cost);
  return found;
}

std::vector<Candidate> Life::within_budgets(std::vector<Candidate> all) const {
  std::map<std::size_t, int> left;  // by NodePool
  std::erase_if(all, [&](const Candidate& c) {
    const std::size_t pool = market_.offerings[c.offering].node_pool;
    const auto [at, added] = left.try_emplace(pool, 0);
    if (added) at->second = allowed(pool, DisruptionReason::Underutilized);
    return at->second-- <= 0;
  });
  return all;
}

ConsolidationView Life::view(const std::vector<RoomOfNode>& rooms,
                             const std::vector<PackedPod>& pending) const {
  return {market_.offerings, market_.spec.node_pools, rooms,
          pending,           limits_left(),           market_.spec.spot_to_spot_consolidation,
          unavailable()};
}

/// "Drift": a new image, or another change that all nodes until now do not have.
void Life::drift() {
  for (const std::size_t n : alive_)
    if (!nodes_[n].drifted) nodes_[n].drifted = now_;
  changed_ = true;
}

/// One at a time, the first that drifted first.
std::optional<Life::Command> Life::find_drifted(const ConsolidationView& seen) const {
  std::vector<std::size_t> drifted;
  for (const std::size_t n : alive_)
    if (has_drifted(nodes_[n])) drifted.push_back(n);
  std::ranges::stable_sort(drifted, {}, [&](std::size_t n) { return *nodes_[n].drifted; });
  for (const std::size_t n : drifted) {
    if (allowed(offering_of(nodes_[n]).node_pool, DisruptionReason::Drifted) <= 0) continue;
    if (auto claims = replacements_of(seen, candidate(n)))
      return Command{ConsolidationKind::drift, {n}, {}, std::move(*claims)};
  }
  return std::nullopt;
}

std::optional<Life::Command> Life::find_command() {
  if (auto empty = empty_nodes(); !empty.empty())
    return Command{ConsolidationKind::empty, std::move(empty), {}};
  const std::vector<Candidate> all = candidates();
  const bool drifted =
      std::ranges::any_of(alive_, [&](std::size_t n) { return has_drifted(nodes_[n]); });
  if (all.empty() && !drifted) return std::nullopt;
  const auto rooms_now = rooms();
  const auto pending_now = pending_pods();
  const ConsolidationView seen = view(rooms_now, pending_now);
  if (auto one = find_drifted(seen)) return one;
  if (auto several = consolidate_several(seen, within_budgets(all)))
    return Command{ConsolidationKind::several, std::move(several->nodes), {}};
  for (const Candidate& c : all) {
    if (allowed(market_.offerings[c.offering].node_pool, DisruptionReason::Underutilized) <= 0)
      continue;
    if (auto one = consolidate(seen, std::span(&c, 1)))
      return Command{ConsolidationKind::single, std::move(one->nodes), {}};
  }
  return std::nullopt;
}

/// What was found 15 s ago must still hold: of empty nodes, those that still are; of others all
/// must still be candidates, and may still go together. What drift found is done at once.
void Life::validate() {
  Command command = std::move(*found_);
  found_.reset();
  if (command.kind == ConsolidationKind::drift) {
    for (const NodeClaim& claim : command.claims) {
      const auto made = launch(claim);
      if (!made) return;  // those that were made stay, and serve the pods if they come
      command.replacements.push_back(*made);
    }
    executing_ = std::move(command);
    return execute();
  }
  if (command.kind == ConsolidationKind::empty) {
    const std::vector<std::size_t> still = empty_nodes();
    std::erase_if(command.nodes,
                  [&](std::size_t n) { return std::ranges::find(still, n) == still.end(); });
    if (command.nodes.empty()) return;
    executing_ = std::move(command);
    return execute();
  }
  std::vector<Candidate> same;
  for (const std::size_t n : command.nodes) {
    const Node& node = nodes_[n];
    if (!may_go(node, false) || consolidatable_at(node, node_pool_of(node)) > now_) return;
    same.push_back(candidate(n));
  }
  if (within_budgets(same).size() != same.size()) return;
  const auto rooms_now = rooms();
  const auto pending_now = pending_pods();
  const auto again = consolidate(view(rooms_now, pending_now), same);
  if (!again) return;
  if (again->replacement) {
    const auto made = launch(*again->replacement);
    if (!made) return;
    command.replacements = {*made};
  }
  executing_ = std::move(command);
  execute();
}

void Life::execute() {
  ConsolidationCount& count = out_.consolidations[std::size_t(executing_->kind)];
  ++count.commands;
  count.nodes += static_cast<std::int64_t>(executing_->nodes.size());
  count.replacements += static_cast<std::int64_t>(executing_->replacements.size());
  for (const std::size_t n : executing_->nodes) nodes_[n].tainted = true;
  if (executing_->replacements.empty()) finish_command();
}

/// The replacement never came: the nodes take pods again ["Disruption", "Disruption Controller",
/// step 4].
void Life::give_up_command() {
  for (const std::size_t n : executing_->nodes) {
    Node& node = nodes_[n];
    if (!node.draining) node.tainted = node.gone;
  }
  executing_.reset();
  changed_ = true;
}

/// The replacements are ready, or none was needed.
void Life::finish_command() {
  const Command command = std::move(*executing_);
  for (const std::size_t n : command.nodes) {
    if (nodes_[n].gone) continue;
    drain(n);
    const auto& period = node_pool_of(nodes_[n]).termination_grace_period;
    if (!nodes_[n].gone && period) schedule(now_ + clock_or_never(*period), Kind::grace_over, n);
  }
  executing_.reset();
  changed_ = true;
}

}  // namespace reckon::karpenter
