#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "sim/catalog/catalog_lookup.h"
#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/pricing.h"

// Which node pools GKE may make for the pods of a pool. A pod asks for what the pool's machine can
// give and for a node to itself. Each rule of the ComputeClass has the smallest machines that do;
// each becomes a fallback pool of the first.
namespace reckon::planning {
namespace {

constexpr std::size_t kOfRule = 8;  // machines, smallest first
/// "About node pool auto-creation", "Machine families": where nothing is asked for.
constexpr std::string_view kDefaultFamily = "e2";

std::string family_of(const Machine& machine) {
  return machine.name.substr(0, machine.name.find('-'));
}

class ProvisioningRules {
 public:
  ProvisioningRules(Draft& draft, const NodeAutoProvisioningSpec& spec) : draft_(draft) {
    if (!spec.compute_class) {
      rows_.push_back({});
      return;
    }
    rows_ = spec.compute_class->priorities;
    anyway_ = spec.compute_class->when_unsatisfiable == WhenUnsatisfiable::ScaleUpAnyway;
    of_class_ = true;
  }

  void add(std::size_t home) {
    std::vector<Choice> choices;
    for (std::size_t k = 0; k < rows_.size(); ++k) add_of(rows_[k], int(k), home, choices);
    // "whenUnsatisfiable": nodes of the default machines; for accelerators, of the pods' own.
    if (anyway_) add_of({}, int(rows_.size()), home, choices);
    const PlannedPool& pool = draft_.plan.pools[home];
    const auto own = std::ranges::find_if(
        choices, [&](const Choice& c) { return c.machine->name == pool.machine.name; });
    if (own == choices.end()) return refuse(pool, choices);
    make(draft_.plan.pools[home], *own);
    choices.erase(own);
    for (const Choice& choice : choices) add_fallback(home, choice);
  }

 private:
  struct Choice {
    const Machine* machine;
    CapacityType pricing;
    const ComputeClassRule* rule;  // nullptr: of none
    int rank;
  };

  bool serves(const Machine& machine, const PlannedPool& pool) const {
    if (machine.provider != draft_.plan.provider || !machine.offered_under(draft_.plan.service.id))
      return false;
    if (machine.vcpus < pool.machine.vcpus || machine.memory.value.v < pool.machine.memory.value.v)
      return false;
    if (!pool.accelerator) return machine.accelerator.empty();
    if (machine.accelerator.empty()) {
      if (!pool.machine.accelerator.empty()) return false;
      const std::vector<int> counts = draft_.catalog.allowed_counts(
          draft_.plan.service.id, machine.name, pool.accelerator->name, draft_.plan.zone);
      return std::ranges::find(counts, pool.accelerators_per_node) != counts.end();
    }
    const Accelerator* own = draft_.catalog.find_accelerator(machine.accelerator);
    return own != nullptr && own->name == pool.accelerator->name &&
           machine.accelerator_count == pool.accelerators_per_node;
  }

  bool is_sold(const Machine& machine, const PlannedPool& pool, CapacityType capacity) const {
    const Plan& plan = draft_.plan;
    const auto& prices = draft_.scenario().prices;
    if (prices && prices->rates.contains(machine.name)) return true;
    const PriceQuestion question{plan.provider, plan.region, plan.zone, capacity,
                                 prices && prices->suspect};
    const auto known = [&](const std::string& item, Offering::Covers covers) {
      return find_price(draft_.catalog, question, item, covers).has_value();
    };
    using Covers = Offering::Covers;
    if (!machine.accelerator.empty() && known(machine.name, Covers::machine_with_accelerators))
      return true;
    return known(machine.name, Covers::machine) &&
           (!pool.accelerator || known(pool.accelerator->name, Covers::accelerator));
  }

  bool admits(const ComputeClassRule& rule, const Machine& machine, const PlannedPool& pool) const {
    if (!rule.machine_type.empty()) return machine.name == rule.machine_type;
    if (!rule.machine_family.empty() && family_of(machine) != rule.machine_family) return false;
    if (rule.machine_family.empty() && !pool.accelerator && family_of(machine) != kDefaultFamily)
      return false;
    if (rule.min_cores && machine.vcpus < *rule.min_cores) return false;
    return !rule.min_memory_gb || machine.memory.value.v >= *rule.min_memory_gb * 1e9;
  }

  void add_of(const ComputeClassRule& rule, int rank, std::size_t home,
              std::vector<Choice>& choices) const {
    const PlannedPool& pool = draft_.plan.pools[home];
    // Without a ComputeClass the pods say by their selector whether they take spot nodes.
    const CapacityType pricing = of_class_
                                     ? (rule.spot ? CapacityType::spot : CapacityType::on_demand)
                                     : draft_.spec(pool).pricing;
    std::vector<Choice> found;
    for (const Machine& machine : draft_.catalog.machines)
      if (serves(machine, pool) && admits(rule, machine, pool) && is_sold(machine, pool, pricing))
        found.push_back({&machine, pricing,
                         rank < int(rows_.size()) ? &rows_[std::size_t(rank)] : nullptr, rank});
    std::ranges::stable_sort(found, {}, [](const Choice& c) {
      return std::tuple(c.machine->vcpus, c.machine->memory.value.v);
    });
    if (found.size() > kOfRule) found.resize(kOfRule);
    const auto known = [&](const Choice& c) {
      const bool flex = c.rule != nullptr && c.rule->flex_start;
      return std::ranges::any_of(choices, [&](const Choice& o) {
        return o.machine == c.machine && o.pricing == c.pricing &&
               (o.rule != nullptr && o.rule->flex_start) == flex;
      });
    };
    for (const Choice& c : found)
      if (!known(c)) choices.push_back(c);
  }

  void refuse(const PlannedPool& pool, const std::vector<Choice>& choices) const {
    std::vector<std::string> names;
    for (const Choice& c : choices)
      if (std::ranges::find(names, c.machine->name) == names.end())
        names.push_back(c.machine->name);
    draft_.error(
        draft_.path(pool, "machine"),
        fmt::format("machine {} says what a pod asks for, and {} makes no such nodes",
                    pool.machine.name, of_class_ ? "the ComputeClass" : "node auto-provisioning"),
        names.empty() ? std::string("a ComputeClass with its machineFamily")
                      : fmt::format("machine: {}", join(names, " or ")));
  }

  void make(PlannedPool& pool, const Choice& choice) const {
    pool.machine = *choice.machine;
    pool.pricing = choice.pricing;
    pool.rank = choice.rank;
    pool.pool_creation = seconds_fact(draft_.catalog.operations.at(keys::kPoolCreation));
    if (choice.rule == nullptr) return;
    pool.max_run_duration = choice.rule->max_run_duration;
    if (!choice.rule->flex_start) return;
    pool.provisioning_model = ProvisioningModel::flex_start;
    make_flex_start(draft_, pool, choice.rule->max_run_duration, std::nullopt);
  }

  void add_fallback(std::size_t home, const Choice& choice) const {
    PlannedPool other = draft_.plan.pools[home];
    other.provisioning_model = ProvisioningModel::standard;
    other.max_run_duration.reset();
    other.capacity_wait = {};
    const bool flex = choice.rule != nullptr && choice.rule->flex_start;
    const auto bought = flex ? std::string_view("flex_start") : to_text(choice.pricing);
    other.name =
        fmt::format("{}-{}-{}", draft_.plan.pools[home].name, choice.machine->name, bought);
    make(other, choice);
    other.fallback_for = home;
    draft_.plan.pools.push_back(std::move(other));
  }

  Draft& draft_;
  std::vector<ComputeClassRule> rows_;
  bool anyway_ = false, of_class_ = false;
};

void check_limits(Draft& draft, NodeAutoProvisioningSpec& spec) {
  for (std::size_t i = 0; i < spec.resource_limits.size(); ++i) {
    std::string& type = spec.resource_limits[i].resource_type;
    if (type == "cpu" || type == "memory") continue;
    if (const Accelerator* a = draft.catalog.find_accelerator(type))
      type = a->name;
    else
      draft.error(fmt::format("cluster.node_auto_provisioning.resourceLimits.{}.resourceType", i),
                  fmt::format("unknown resource '{}'", type),
                  "cpu, memory (in GB) or an accelerator: reckon catalog list accelerators");
  }
  const std::string& zone = draft.plan.zone;
  if (!spec.locations.empty() && std::ranges::find(spec.locations, zone) == spec.locations.end())
    draft.error("cluster.node_auto_provisioning.autoprovisioningLocations",
                zone.empty() ? std::string("the scenario does not say in which of the zones")
                             : fmt::format("zone {} is not one", zone),
                fmt::format("cluster: {{zone: {}}}", join(spec.locations, " or ")));
}

}  // namespace

void resolve_node_auto_provisioning(Draft& draft) {
  const ClusterSpec& cluster = draft.scenario().cluster;
  if (cluster.autoscaler != AutoscalerKind::node_auto_provisioning) return;
  Plan& plan = draft.plan;
  if (!plan.service.compute_classes) {
    std::vector<std::string> with;
    for (const ServiceRules& s : draft.catalog.services)
      if (s.compute_classes) with.push_back(s.id.name);
    return draft.error("cluster.autoscaler",
                       fmt::format("{} makes no node pools for pods", plan.service.called),
                       fmt::format("service: {}", join(with, " or ")));
  }
  NodeAutoProvisioningSpec spec =
      cluster.node_auto_provisioning.value_or(NodeAutoProvisioningSpec{});
  if (spec.resource_limits.empty() && !spec.compute_class)
    return draft.error("cluster.autoscaler",
                       "node auto-provisioning needs limits of vCPUs and memory, or a ComputeClass",
                       "node_auto_provisioning: {resourceLimits: [{resourceType: cpu, maximum: "
                       "1000}, {resourceType: memory, maximum: 4000}]}");
  const bool any = std::ranges::any_of(plan.pools, &PlannedPool::autoscaling);
  if (!any)
    return draft.error("cluster.autoscaler", "no pool is scaled",
                       "autoscaling: true, with nodes: {initial: 0, min: 0, max: 4}");
  check_limits(draft, spec);
  plan.node_auto_provisioning = spec;
  ProvisioningRules rules(draft, spec);
  for (std::size_t p = 0, own = plan.pools.size(); p < own; ++p) {
    PlannedPool& pool = plan.pools[p];
    if (!pool.autoscaling || !draft.resolved[index(pool.id)]) continue;
    if (pool.fallback_for) continue;  // of the cluster-autoscaler: it has no nodes here
    if (std::holds_alternative<MachineInline>(draft.spec(pool).machine))
      draft.error(
          draft.path(pool, "machine"),
          "node auto-provisioning chooses among machines of the catalog, and this is not one",
          "machine: the smallest machine that can hold a pod");
    else if (pool.nodes_initial > 0 || pool.nodes_min > 0)
      draft.error(draft.path(pool, "nodes"), "node pools are made for pods that wait",
                  fmt::format("nodes: {{initial: 0, min: 0, max: {}}}", pool.nodes_max));
    else
      rules.add(p);
  }
}

}  // namespace reckon::planning
