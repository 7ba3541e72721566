#include <algorithm>
#include <optional>
#include <vector>

#include "sim/cluster/autoscaler.h"
#include "sim/cluster/autoscalers/disruption_budgets.h"
#include "sim/cluster/autoscalers/karpenter_choices.h"
#include "sim/cluster/never.h"

// Karpenter. Each rule has the page of karpenter.sh (v1) that states it, or the constant of
// kubernetes-sigs/karpenter where no page gives the number.
namespace reckon {
namespace {

using namespace std::chrono_literals;

/// "NodePools", "Capacity Type": an offering without capacity is not asked for again so long.
constexpr SimDuration kUnavailable = 3min;
/// registrationTimeout: a node that has not registered by then is given up.
constexpr SimDuration kRegistration = 15min;
/// pollingPeriod of the disruption controller, and commandValidationDelay: what was found is done
/// so much later, if it still holds.
constexpr SimDuration kPoll = 10s, kValidation = 15s;
/// A schedule of a budget changes at whole minutes.
constexpr SimDuration kMinute = 1min;
SimTime poll_at_or_after(SimTime t) {
  return SimTime{(t.time_since_epoch() + kPoll - SimDuration{1}) / kPoll * kPoll};
}

class Karpenter final : public Autoscaler {
 public:
  explicit Karpenter(const PlannedCluster& cluster)
      : rented_(cluster),
        rules_(*cluster.karpenter),
        idle_(clock_or_never(rules_.batch_idle)),
        longest_(clock_or_never(rules_.batch_max)),
        choices_(karpenter_choices(cluster)),
        unavailable_until_(cluster.pools.size(), SimTime::min()),
        going_(rules_.node_pools.size()) {}

  SimTime next_look(ScaledCluster& cluster) override;
  void look(ScaledCluster& cluster) override;
  SimTime gives_up_at(const Pool& /*pool*/, SimTime requested) const override {
    return requested + kRegistration;
  }
  void node_came(Pool& /*pool*/) override {}
  void gave_up(ScaledCluster& /*cluster*/, Pool& /*pool*/) override { replacing_.reset(); }
  bool leaves_fallbacks(ScaledCluster& /*cluster*/) override { return false; }
  SimTime deletes_at(ScaledCluster& cluster, const Node& node) override;
  void node_went(const Node& node, SimTime now) override;
  SimTime next_disruption(ScaledCluster& cluster) override;
  void disrupt(ScaledCluster& cluster) override;
  SimTime expires_at(const Node& node, SimTime now) const override;
  SimDuration drain_patience(const Node& node) const override;
  bool drains_at_notice(const Node& /*node*/) const override { return rules_.interruption_queue; }
  bool evicts() const override { return !rules_.do_not_disrupt; }

 private:
  struct Going {  // of a NodePool: nodes that went since
    SimTime since = SimTime::min();
    int nodes = 0;
  };

  const NodePoolSpec& node_pool_of(const Node& node) const {
    return rules_.node_pools[*rented_.pools[node.pool].node_pool];
  }
  std::uint32_t home_of(std::uint32_t pool) const {
    const auto& home = rented_.pools[pool].fallback_for;
    return home ? static_cast<std::uint32_t>(*home) : pool;
  }
  int missing_in_all(ScaledCluster& cluster) const;
  bool within_limits(ScaledCluster& cluster, const PlannedPool& one_more) const;
  bool has_capacity(ScaledCluster& cluster, std::uint32_t p);
  Pool* choose(ScaledCluster& cluster, std::uint32_t home);
  NodeCounts counts_of(ScaledCluster& cluster, std::size_t node_pool) const;
  std::optional<SimTime> allowed_at(ScaledCluster& cluster, std::size_t node_pool,
                                    DisruptionReason reason);
  std::vector<std::uint32_t> cheaper(const Node& node) const {
    return karpenter_replacements(rented_, choices_[home_of(node.pool)], node.pool);
  }
  std::optional<SimTime> stable_at(const Node& node) const;

  const PlannedCluster& rented_;
  const KarpenterSpec& rules_;
  const SimDuration idle_, longest_;
  const std::vector<std::vector<std::uint32_t>> choices_;  // by pool of pods: pools, best first
  std::vector<SimTime> unavailable_until_;                 // by pool
  std::vector<Going> going_;                               // by NodePool
  std::optional<SimTime> window_;                          // the batch began
  SimTime last_pod_ = SimTime::min();
  SimTime retry_ = SimTime::max();  // of pods that could not be served
  int known_ = 0;                   // pods without a node that it has seen
  bool limited_ = false;            // a limit kept it from a node
  SimTime disruption_planned_ = SimTime::max();
  std::optional<std::uint32_t> replacing_;  // the one node that is being replaced
};

int Karpenter::missing_in_all(ScaledCluster& cluster) const {
  int missing = 0;
  for (std::uint32_t p = 0; p < choices_.size(); ++p)
    if (!choices_[p].empty()) missing += std::max(0, cluster.missing(cluster.cluster().pools[p]));
  return missing;
}

/// "Settings", BATCH_IDLE_DURATION and BATCH_MAX_DURATION: a batch ends when no pod has come for
/// the one, and at the latest the other after its first pod.
SimTime Karpenter::next_look(ScaledCluster& cluster) {
  const int missing = missing_in_all(cluster);
  const SimTime now = cluster.now();
  if (missing > known_) {
    last_pod_ = now;
    if (!window_) window_ = now;
  }
  known_ = missing;
  if (missing == 0) window_.reset();
  if (window_) return std::max(now, std::min(last_pod_ + idle_, *window_ + longest_));
  return missing == 0 ? SimTime::max() : std::max(now, retry_);
}

void Karpenter::look(ScaledCluster& cluster) {
  window_.reset();
  limited_ = false;
  retry_ = SimTime::max();
  for (std::uint32_t p = 0; p < choices_.size(); ++p) {
    if (choices_[p].empty()) continue;
    int missing = cluster.missing(cluster.cluster().pools[p]);
    for (; missing > 0; --missing) {
      Pool* pool = choose(cluster, p);
      if (pool == nullptr) break;
      cluster.request_node(*pool);
    }
    if (missing <= 0) continue;
    for (const std::uint32_t c : choices_[p])
      if (unavailable_until_[c] > cluster.now()) retry_ = std::min(retry_, unavailable_until_[c]);
  }
  known_ = missing_in_all(cluster);
}

/// "NodePools", "spec.limits".
bool Karpenter::within_limits(ScaledCluster& cluster, const PlannedPool& one_more) const {
  const NodePoolLimits& limits = rules_.node_pools[*one_more.node_pool].limits;
  std::int64_t cpu = 0, nodes = 0, gpus = 0;
  double memory = 0;
  const auto add = [&](const PlannedPool& pool, int count) {
    cpu += std::int64_t{count} * pool.machine.vcpus;
    memory += count * pool.machine.memory.value.v;
    gpus += std::int64_t{count} * pool.accelerators_per_node;
    nodes += count;
  };
  for (const Pool& pool : cluster.cluster().pools)
    if (pool.plan->node_pool == one_more.node_pool)
      add(*pool.plan, pool.size(cluster.cluster().slots(pool)));
  add(one_more, 1);
  return (!limits.cpu || cpu <= *limits.cpu) && (!limits.nodes || nodes <= *limits.nodes) &&
         (!limits.gpus || gpus <= *limits.gpus) && (!limits.memory || memory <= limits.memory->v);
}

/// Does the provider give a node of the pool now? Karpenter learns it by asking.
bool Karpenter::has_capacity(ScaledCluster& cluster, std::uint32_t p) {
  Pool& pool = cluster.cluster().pools[p];
  const SimTime now = cluster.now();
  const auto& held = pool.plan->reservation;
  const bool reserved = pool.plan->pricing == CapacityType::reserved;
  const auto ends = held && held->goes() ? held->goes() : held ? held->until : std::nullopt;
  if (reserved && (!held || (ends && now >= SimTime{} + clock_or_never(*ends)))) return false;
  if (pool.empty.empty() || (reserved && int(pool.empty.first()) >= held->nodes)) {
    limited_ = true;
    return false;
  }
  if (reserved) {
    const SimTime from = SimTime{} + clock_or_never(held->from);
    if (from > now) retry_ = std::min(retry_, from);
    return from <= now;
  }
  if (!pool.reclaimable || cluster.cluster().given_from(pool, now) <= now) return true;
  unavailable_until_[p] = now + kUnavailable;
  return false;
}

/// "NodePools", "Capacity Type": one that has no capacity is passed over at once, for a lower
/// capacity type where the higher has none.
Pool* Karpenter::choose(ScaledCluster& cluster, std::uint32_t home) {
  for (const std::uint32_t p : choices_[home]) {
    if (unavailable_until_[p] > cluster.now()) continue;
    if (!within_limits(cluster, rented_.pools[p])) {
      limited_ = true;
      continue;
    }
    if (has_capacity(cluster, p)) return &cluster.cluster().pools[p];
  }
  return nullptr;
}

NodeCounts Karpenter::counts_of(ScaledCluster& cluster, std::size_t node_pool) const {
  NodeCounts counts;
  Cluster& state = cluster.cluster();
  for (const Pool& pool : state.pools) {
    if (pool.plan->node_pool != node_pool) continue;
    for (int s = 0; s < state.slots(pool); ++s) {
      const Node& node = state.nodes[pool.first_node + std::uint32_t(s)];
      if (node.state != NodeState::ready) continue;
      ++counts.total;
      if (node.draining || (node.replaced && node.held)) ++counts.disrupting;
    }
  }
  const Going& going = going_[node_pool];
  if (cluster.now() < going.since + kPoll) {
    counts.total += going.nodes;
    counts.disrupting += going.nodes;
  }
  return counts;
}

/// When the budgets allow a disruption: now, at a later look, or never (nullopt).
std::optional<SimTime> Karpenter::allowed_at(ScaledCluster& cluster, std::size_t node_pool,
                                             DisruptionReason reason) {
  const std::vector<DisruptionBudget>& budgets = rules_.node_pools[node_pool].budgets;
  const NodeCounts counts = counts_of(cluster, node_pool);
  const SimTime now = cluster.now();
  const auto allowed = [&](const std::vector<DisruptionBudget>& some, NodeCounts nodes) {
    return allowed_disruptions(some, nodes, reason, rented_.begins, now) > 0;
  };
  if (allowed(budgets, counts)) return now;
  if (allowed(budgets, {counts.total, 0})) return now + kPoll;
  std::vector<DisruptionBudget> always;
  std::ranges::copy_if(budgets, std::back_inserter(always),
                       [](const DisruptionBudget& b) { return b.schedule.empty(); });
  if (!always.empty() && !allowed(always, {counts.total, 0})) return std::nullopt;
  return now + kMinute;
}

/// "Disruption", "Consolidation": an empty node goes `consolidateAfter` after its last pod, if the
/// budgets allow it and no pod is about to come.
SimTime Karpenter::deletes_at(ScaledCluster& cluster, const Node& node) {
  const NodePoolSpec& spec = node_pool_of(node);
  const SimTime now = cluster.now();
  if (node.draining) return now;
  if (!spec.consolidate_after) return SimTime::max();
  const SimTime due =
      poll_at_or_after(node.free_since + clock_or_never(*spec.consolidate_after)) + kValidation;
  if (due > now) return due;
  if (cluster.missing(cluster.cluster().pools[home_of(node.pool)]) >= 0)
    return poll_at_or_after(now + SimDuration{1}) + kValidation;
  return allowed_at(cluster, *rented_.pools[node.pool].node_pool, DisruptionReason::Empty)
      .value_or(SimTime::max());
}

void Karpenter::node_went(const Node& node, SimTime now) {
  const auto& node_pool = rented_.pools[node.pool].node_pool;
  if (!node_pool) return;
  if (node.replaced) replacing_.reset();
  if (limited_) retry_ = SimTime::min();
  Going& going = going_[*node_pool];
  going = now < going.since + kPoll ? Going{going.since, going.nodes + 1} : Going{now, 1};
}

/// From when on a node with pods may be looked at; nullopt: it is not.
std::optional<SimTime> Karpenter::stable_at(const Node& node) const {
  if (!node.held || node.state != NodeState::ready || node.draining || node.replaced)
    return std::nullopt;
  if (!rented_.pools[node.pool].node_pool) return std::nullopt;
  const NodePoolSpec& spec = node_pool_of(node);
  if (spec.consolidation_policy != ConsolidationPolicy::WhenEmptyOrUnderutilized ||
      !spec.consolidate_after)
    return std::nullopt;
  return node.state_since + clock_or_never(*spec.consolidate_after);
}

/// "Disruption", "Disruption Controller": one at a time. A node that no choice undercuts, or whose
/// cheaper choices have no capacity now, is looked at again when they have.
SimTime Karpenter::next_disruption(ScaledCluster& cluster) {
  if (rules_.do_not_disrupt || replacing_) return SimTime::max();
  const SimTime now = cluster.now();
  for (const Node& node : cluster.cluster().nodes) {
    const auto stable = stable_at(node);
    if (!stable) continue;
    SimTime given = SimTime::max();
    for (const std::uint32_t p : cheaper(node))
      given = std::min(given, cluster.cluster().given_from(cluster.cluster().pools[p], now));
    if (given == SimTime::max()) continue;
    const auto allowed =
        allowed_at(cluster, *rented_.pools[node.pool].node_pool, DisruptionReason::Underutilized);
    if (!allowed) continue;
    const SimTime at = poll_at_or_after(std::max({now, *stable, given, *allowed})) + kValidation;
    disruption_planned_ = std::min(disruption_planned_, at);
  }
  return disruption_planned_;
}

void Karpenter::disrupt(ScaledCluster& cluster) {
  disruption_planned_ = SimTime::max();
  if (replacing_) return;
  const SimTime now = cluster.now();
  for (Node& node : cluster.cluster().nodes) {
    const auto stable = stable_at(node);
    if (!stable || *stable > now) continue;
    const std::size_t node_pool = *rented_.pools[node.pool].node_pool;
    if (allowed_at(cluster, node_pool, DisruptionReason::Underutilized) != now) continue;
    for (const std::uint32_t p : cheaper(node)) {
      if (!within_limits(cluster, rented_.pools[p]) || !has_capacity(cluster, p)) continue;
      replacing_ = cluster.cluster().index_of(node);
      return cluster.replace_node(node, cluster.cluster().pools[p]);
    }
  }
}

/// "Disruption", "Expiration".
SimTime Karpenter::expires_at(const Node& node, SimTime now) const {
  const NodePoolSpec& spec = node_pool_of(node);
  if (!spec.expire_after) return SimTime::max();
  return std::max(now, node.requested + clock_or_never(*spec.expire_after));
}

/// "Disruption", "TerminationGracePeriod".
SimDuration Karpenter::drain_patience(const Node& node) const {
  const auto& period = node_pool_of(node).termination_grace_period;
  return period ? clock_or_never(*period) : SimDuration::max();
}

}  // namespace

std::unique_ptr<Autoscaler> make_karpenter(const PlannedCluster& cluster,
                                           const LifeOptions& /*options*/) {
  return std::make_unique<Karpenter>(cluster);
}

}  // namespace reckon
