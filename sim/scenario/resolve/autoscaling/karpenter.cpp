#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/scenario/resolve/autoscaling/karpenter_offers.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"

// Which machines Karpenter may choose from for the pods of a pool. A pod asks for what the pool's
// machine can give: its accelerators, vCPUs and memory, as `reckon export` writes it, and for a
// node to itself. Each machine and capacity type that has that, meets a NodePool's requirements and
// has a price becomes a fallback pool of the first.
namespace reckon::planning {
namespace {

/// In the order in which Karpenter prefers them [karpenter.sh, "NodePools", "Capacity Type"].
constexpr std::array kCapacityOrder{CapacityType::reserved, CapacityType::spot,
                                    CapacityType::on_demand};
constexpr std::size_t kMostChoices = 500;  // of a pool; EC2 has some 900 machines

class Choices {
 public:
  Choices(Draft& draft, const KarpenterSpec& spec)
      : draft_(draft), spec_(spec), prefix_(draft.plan.service.karpenter_labels) {
    for (std::size_t k = 0; k < spec.node_pools.size(); ++k) order_.push_back(k);
    std::ranges::stable_sort(order_, std::greater<>{},
                             [&](std::size_t k) { return spec.node_pools[k].weight; });
  }

  /// The pool becomes the first that admits its machine; the others follow at the end.
  void add(std::size_t home) {
    const std::size_t before = draft_.plan.pools.size();
    find_inflexible(home);
    if (!take_own_machine(home)) return;
    for (const Machine& machine : draft_.catalog.machines) {
      if (!serves(machine, draft_.plan.pools[home])) continue;
      for (const std::size_t k : order_)
        for (const CapacityType capacity : kCapacityOrder)
          if (is_open(machine, capacity, k)) add_fallback(home, machine, capacity, k);
    }
    if (draft_.plan.pools.size() - before > kMostChoices)
      draft_.error("cluster.karpenter.nodePools",
                   fmt::format("{} machines and capacity types may serve pool '{}', of at most {}",
                               draft_.plan.pools.size() - before, draft_.plan.pools[home].name,
                               kMostChoices),
                   "narrower requirements");
  }

 private:
  /// Has the machine what a pod asks for?
  bool serves(const Machine& machine, const PlannedPool& pool) const {
    if (machine.provider != draft_.plan.provider || !machine.offered_under(draft_.plan.service.id))
      return false;
    if (machine.vcpus < pool.machine.vcpus || machine.memory.value < pool.machine.memory.value)
      return false;
    if (!pool.accelerator) return machine.accelerator.empty();
    const Accelerator* own = draft_.catalog.find_accelerator(machine.accelerator);
    return own != nullptr && own->name == pool.accelerator->name &&
           machine.accelerator_count == pool.accelerators_per_node;
  }

  /// NodePools whose minValues the machines that hold a pod do not meet serve no pod of the pool.
  void find_inflexible(std::size_t home) {
    inflexible_.assign(spec_.node_pools.size(), nullptr);
    for (const std::size_t k : order_) {
      std::vector<NodeChoice> open;
      for (const Machine& machine : draft_.catalog.machines) {
        if (!serves(machine, draft_.plan.pools[home])) continue;
        for (const CapacityType capacity : kCapacityOrder)
          if (is_open(machine, capacity, k)) open.push_back(node_choice(draft_, machine, capacity));
      }
      inflexible_[k] = too_few_values(spec_.node_pools[k].requirements, open, prefix_);
    }
  }

  bool is_open(const Machine& machine, CapacityType capacity, std::size_t k) const {
    if (inflexible_[k] != nullptr) return false;
    const NodeChoice choice = node_choice(draft_, machine, capacity);
    return unmet(spec_.node_pools[k].requirements, choice, prefix_) == nullptr &&
           is_sold(draft_, machine, capacity);
  }

  bool take_own_machine(std::size_t home) {
    PlannedPool& pool = draft_.plan.pools[home];
    for (const std::size_t k : order_)
      for (const CapacityType capacity : kCapacityOrder)
        if (is_open(pool.machine, capacity, k)) {
          pool.node_pool = k;
          pool.pricing = capacity;
          return true;
        }
    std::string why;
    for (const std::size_t k : order_) {
      const NodePoolSpec& node_pool = spec_.node_pools[k];
      const NodeRequirement* first =
          unmet(node_pool.requirements, node_choice(draft_, pool.machine, CapacityType::on_demand),
                prefix_);
      if (!why.empty()) why += "\n";
      if (inflexible_[k] != nullptr) {
        why += fmt::format(
            "NodePool '{}' wants {} values of {}, and the machines that hold a pod "
            "have fewer",
            node_pool.name, *inflexible_[k]->min_values, inflexible_[k]->key);
        continue;
      }
      why += first == nullptr
                 ? fmt::format("NodePool '{}' admits it, but no price is known in {}",
                               node_pool.name, draft_.plan.region)
                 : fmt::format("NodePool '{}' requires {}", node_pool.name, to_text(*first));
    }
    draft_.error(
        draft_.path(pool, "machine"),
        fmt::format("machine {} says what a pod asks for, and no NodePool makes such nodes",
                    pool.machine.name),
        why);
    return false;
  }

  void add_fallback(std::size_t home, const Machine& machine, CapacityType capacity,
                    std::size_t k) {
    const PlannedPool& own = draft_.plan.pools[home];
    if (machine.name == own.machine.name && capacity == own.pricing && k == *own.node_pool) return;
    PlannedPool other = own;
    std::string type = machine.name;
    std::ranges::replace(type, '.', '-');  // keys of assumptions are parted by dots
    other.name = fmt::format("{}-{}-{}", own.name, type, to_text(capacity));
    if (spec_.node_pools.size() > 1) other.name += "-" + spec_.node_pools[k].name;
    other.machine = machine;
    other.pricing = capacity;
    other.node_pool = k;
    other.fallback_for = home;
    draft_.plan.pools.push_back(std::move(other));
  }

  Draft& draft_;
  const KarpenterSpec& spec_;
  const std::string& prefix_;
  std::vector<std::size_t> order_;
  std::vector<const NodeRequirement*> inflexible_;  // by NodePool: minValues that are not met
};

bool check_karpenter_pool(Draft& draft, const PlannedPool& pool) {
  const PoolSpec& spec = draft.spec(pool);
  const std::size_t before = draft.errors.size();
  if (std::holds_alternative<MachineInline>(spec.machine))
    draft.error(draft.path(pool, "machine"),
                "Karpenter chooses among machines of the catalog, and this is not one",
                "machine: the smallest machine that can hold a pod");
  if (pool.nodes_initial > 0 || pool.nodes_min > 0)
    draft.error(draft.path(pool, "nodes"),
                fmt::format("Karpenter keeps no nodes without pods, and pool '{}' has a minimum",
                            pool.name),
                fmt::format("nodes: {{initial: 0, min: 0, max: {}}}", pool.nodes_max));
  return draft.errors.size() == before;
}

}  // namespace

void resolve_karpenter(Draft& draft) {
  const ClusterSpec& cluster = draft.scenario().cluster;
  if (cluster.autoscaler != AutoscalerKind::karpenter) return;
  Plan& plan = draft.plan;
  if (!check_karpenter(draft)) return;
  const bool any = std::ranges::any_of(plan.pools, &PlannedPool::autoscaling);
  if (!any)
    return draft.error("cluster.autoscaler", "no pool is scaled",
                       "autoscaling: true, with nodes: {initial: 0, min: 0, max: 4}");
  plan.karpenter = cluster.karpenter;
  plan.begins = plan.start;
  if (!check_karpenter_keys(draft, *plan.karpenter)) return;
  Choices choices(draft, *cluster.karpenter);
  for (std::size_t p = 0, own = plan.pools.size(); p < own; ++p) {
    if (!plan.pools[p].autoscaling || !draft.resolved[index(plan.pools[p].id)]) continue;
    if (plan.pools[p].fallback_for) continue;  // of the cluster-autoscaler: it has no nodes here
    if (check_karpenter_pool(draft, plan.pools[p])) choices.add(p);
  }
}

}  // namespace reckon::planning
