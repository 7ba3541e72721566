#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text/names_like.h"
#include "sim/catalog/catalog_lookup.h"
#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/draft.h"

// Machines, accelerators and slices by name, and whether the service lets them stand together.
namespace reckon::planning {
namespace {

std::vector<std::string> names_of_accelerators(const Catalog& catalog, AcceleratorKind kind) {
  std::vector<std::string> names;
  for (const Accelerator& a : catalog.accelerators)
    if (a.kind == kind) names.push_back(a.name);
  return names;
}

bool resolve_machine(Draft& draft, PlannedPool& pool, const MachineSpec& spec) {
  const Plan& plan = draft.plan;
  if (const auto* given = std::get_if<MachineInline>(&spec)) {
    if (plan.service.nodes_of_job) {
      draft.error(
          draft.path(pool, "machine"),
          fmt::format("service {} takes its own machine types only", to_text(plan.service.id)),
          "machine: n1-standard-16");
      return false;
    }
    pool.machine.name = pool.name;
    pool.machine.provider = plan.provider;
    pool.machine.vcpus = given->vcpus;
    pool.machine.memory = Fact<Bytes>{given->memory};
    pool.machine.network = Fact<BytesPerSecond>{given->network};
    if (!given->network_link.empty()) pool.machine.network_link = given->network_link;
    pool.machine.peer_fabric = given->peer_link;
    for (const auto& [key, name] :
         {std::pair<const char*, const std::string&>{"network_link", given->network_link},
          {"peer_link", given->peer_link}}) {
      if (name.empty() || draft.catalog.find_link(name) != nullptr) continue;
      std::vector<std::string> links;
      for (const LinkClass& link : draft.catalog.links) links.push_back(link.name);
      draft.error(draft.path(pool, std::string("machine.") + key),
                  fmt::format("unknown link '{}'{}", name, did_you_mean(name, links)),
                  fmt::format("links of the catalog: {}", join(links, ", ")));
      return false;
    }
    return true;
  }
  const auto* named = std::get_if<MachineByName>(&spec);
  if (named == nullptr) {
    draft.error(draft.path(pool), fmt::format("pool '{}' has no machine", pool.name),
                "machine: n1-standard-16, or {vcpu: 64, memory: 512GiB, network: 100Gbps}");
    return false;
  }
  const Parsed<FoundMachine> found = resolve_machine(draft.catalog, plan.provider, named->name);
  if (found && !found->machine.offered_under(plan.service.id)) {
    std::vector<std::string> services;
    for (const Service& s : found->machine.services) services.emplace_back(to_text(s));
    draft.error(draft.path(pool, "machine"),
                fmt::format("machine {} is a type of {}, which {} does not have",
                            found->machine.name, join(services), to_text(plan.service.id)),
                found->machine.notes);
    return false;
  }
  if (found) {
    pool.machine = found->machine;
    return true;
  }
  if (!found.error().empty()) {
    draft.error(draft.path(pool, "machine"), found.error(),
                "a custom machine is custom-VCPUS-MEMORY_MIB, such as custom-24-98304");
    return false;
  }
  std::vector<std::string> names;
  for (const Machine& m : draft.catalog.machines)
    if (m.provider == plan.provider && m.offered_under(plan.service.id)) names.push_back(m.name);
  draft.error(
      draft.path(pool, "machine"),
      fmt::format("unknown machine '{}'{}", named->name, did_you_mean(named->name, names)),
      names.empty()
          ? std::string("give it by its size: {vcpu: 64, memory: 512GiB, network: 100Gbps}")
          : names_like(named->name, names,
                       fmt::format("machines of {} in the catalog", to_text(plan.provider)),
                       fmt::format("reckon catalog list machines {}", to_text(plan.provider))));
  return false;
}

bool resolve_accelerator(Draft& draft, PlannedPool& pool, const AcceleratorSpec& spec) {
  const Accelerator* accelerator = draft.catalog.find_accelerator(spec.type);
  if (accelerator == nullptr) {
    const auto gpus = names_of_accelerators(draft.catalog, AcceleratorKind::gpu);
    draft.error(draft.path(pool, "accelerator.type"),
                fmt::format("unknown accelerator '{}'{}", spec.type, did_you_mean(spec.type, gpus)),
                names_like(spec.type, gpus, "accelerators in the catalog",
                           "reckon catalog list accelerators"));
    return false;
  }
  if (accelerator->kind == AcceleratorKind::tpu) {
    draft.error(
        draft.path(pool, "accelerator.type"),
        fmt::format("{} is not attached to a machine, it comes as a slice", accelerator->name),
        fmt::format("write tpu: {{type: {}, slice: ...}} instead of machine and accelerator",
                    accelerator->name));
    return false;
  }
  pool.accelerator = *accelerator;
  pool.accelerators_per_node = spec.count;
  return true;
}

bool check_built_in(Draft& draft, PlannedPool& pool, const std::optional<AcceleratorSpec>& spec) {
  const Machine& machine = pool.machine;
  const Accelerator* own = draft.catalog.find_accelerator(machine.accelerator);
  if (own == nullptr) {
    draft.error(draft.path(pool, "machine"),
                fmt::format("machine {} has {} built in, which the catalog does not know",
                            machine.name, machine.accelerator));
    return false;
  }
  const std::string has = fmt::format("{} x {}", machine.accelerator_count, own->name);
  if (spec && pool.accelerator && pool.accelerator->name != own->name) {
    draft.error(draft.path(pool, "accelerator.type"),
                fmt::format("machine {} has {} built in and takes no {}", machine.name, has,
                            pool.accelerator->name),
                "leave accelerator out, or take a machine to which it can be attached");
    return false;
  }
  if (spec && spec->count != machine.accelerator_count) {
    draft.error(draft.path(pool, "accelerator.count"),
                fmt::format("machine {} has {} built in, not {}", machine.name, has, spec->count),
                "leave accelerator out, or take another size of the machine");
    return false;
  }
  pool.accelerator = *own;
  pool.accelerators_per_node = machine.accelerator_count;
  return true;
}

/// "K80: 2, 4 or 8; T4: 1, 2 or 4": what this machine may carry.
std::string carried_by(const Catalog& catalog, const Service& service, const std::string& machine) {
  std::vector<std::string> words;
  for (const AttachmentRule& rule : catalog.attachments) {
    if (rule.service != service || rule.machine != machine || rule.counts.empty()) continue;
    words.push_back(fmt::format("{} ({})", rule.accelerator, join(rule.counts)));
  }
  return words.empty() ? fmt::format("{} carries no GPUs", machine)
                       : fmt::format("{} may carry {}", machine, join(words, ", "));
}

std::string machines_that_carry(const Catalog& catalog, const Service& service,
                                const std::string& accelerator, int count) {
  std::vector<std::string> words;
  for (const AttachmentRule& rule : catalog.attachments)
    if (rule.service == service && rule.accelerator == accelerator &&
        std::find(rule.counts.begin(), rule.counts.end(), count) != rule.counts.end())
      words.push_back(rule.machine);
  return words.empty() ? ""
                       : fmt::format("machines that may carry {} x {}: {}", count, accelerator,
                                     join(words, ", "));
}

/// The service's attachment table. Places without one take any count.
bool check_attached_count(Draft& draft, const PlannedPool& pool) {
  if (!draft.provider->counts_by_table ||
      std::holds_alternative<MachineInline>(draft.spec(pool).machine))
    return true;
  const Catalog& catalog = draft.catalog;
  const Service& service = draft.plan.service.id;
  const std::string& type = pool.accelerator->name;
  const std::vector<int> counts =
      catalog.allowed_counts(service, pool.machine.name, type, draft.plan.zone);
  const int count = pool.accelerators_per_node;
  if (std::find(counts.begin(), counts.end(), count) != counts.end()) return true;
  const std::string others = machines_that_carry(catalog, service, type, count);
  const std::string tail = others.empty() ? "" : "\n" + others;
  if (counts.empty()) {
    draft.error(draft.path(pool, "accelerator.type"),
                fmt::format("machine {} cannot carry {} under {}", pool.machine.name, type,
                            to_text(service)),
                carried_by(catalog, service, pool.machine.name) + tail);
    return false;
  }
  draft.error(
      draft.path(pool, "accelerator.count"),
      fmt::format("{} x {} is not a valid count on machine {} under {}", count, type,
                  pool.machine.name, to_text(service)),
      fmt::format("valid counts of {} on {}: {}", type, pool.machine.name, join(counts)) + tail);
  return false;
}

bool resolve_slice(Draft& draft, PlannedPool& pool, const PoolSpec& spec) {
  const auto has_tpus = [&](const Provider& provider) {
    return draft.catalog.operations.find(keys::provisioning(provider, keys::NodeKind::tpu)) !=
           nullptr;
  };
  if (!has_tpus(draft.plan.provider)) {
    std::vector<std::string> having;
    for (const ProviderRules& p : draft.catalog.providers)
      if (has_tpus(p.id)) having.push_back(p.id.name);
    draft.error(draft.path(pool, "tpu"),
                fmt::format("{} has no TPUs", to_text(draft.plan.provider)),
                fmt::format("provider: {}, or a machine with GPUs", join(having, " or ")));
    return false;
  }
  const Accelerator* chip = draft.catalog.find_accelerator(spec.tpu->type);
  if (chip == nullptr || chip->kind != AcceleratorKind::tpu) {
    const auto tpus = names_of_accelerators(draft.catalog, AcceleratorKind::tpu);
    draft.error(
        draft.path(pool, "tpu.type"),
        fmt::format("unknown TPU '{}'{}", spec.tpu->type, did_you_mean(spec.tpu->type, tpus)),
        fmt::format("TPUs in the catalog: {}", join(tpus, ", ")));
    return false;
  }
  std::vector<std::string> shapes;
  for (const TpuSlice& s : draft.catalog.slices)
    if (s.accelerator == chip->name) shapes.push_back(s.name);
  const TpuSlice* slice = draft.catalog.find_slice(spec.tpu->slice);
  if (slice == nullptr || slice->accelerator != chip->name) {
    draft.error(draft.path(pool, "tpu.slice"),
                slice == nullptr ? fmt::format("unknown slice '{}'{}", spec.tpu->slice,
                                               did_you_mean(spec.tpu->slice, shapes))
                                 : fmt::format("slice {} is made of {}, not of {}", slice->name,
                                               slice->accelerator, chip->name),
                names_like(spec.tpu->slice, shapes, fmt::format("slices of {}", chip->name),
                           fmt::format("reckon catalog list slices {}", chip->name)));
    return false;
  }
  if (!std::holds_alternative<std::monostate>(spec.machine)) {
    draft.error(draft.path(pool, "machine"),
                "a TPU slice brings its own hosts and takes no machine", "leave machine out");
    return false;
  }
  if (spec.accelerator) {
    draft.error(draft.path(pool, "accelerator"),
                "a pool holds a TPU slice or an accelerator, not both", "leave accelerator out");
    return false;
  }
  pool.accelerator = *chip;
  pool.slice = *slice;
  pool.accelerators_per_node = slice->chips;
  return true;
}

bool resolve_hardware(Draft& draft, PlannedPool& pool, const PoolSpec& spec) {
  if (spec.tpu) return resolve_slice(draft, pool, spec);
  const bool machine = resolve_machine(draft, pool, spec.machine);
  const bool accelerator = !spec.accelerator || resolve_accelerator(draft, pool, *spec.accelerator);
  if (!machine || !accelerator) return false;
  if (!pool.machine.accelerator.empty()) return check_built_in(draft, pool, spec.accelerator);
  return !pool.accelerator || check_attached_count(draft, pool);
}

void check_autoscaling(Draft& draft, const PlannedPool& pool) {
  const std::string path = draft.path(pool, "autoscaling");
  const ServiceRules& service = draft.plan.service;
  const AutoscalerKind kind = draft.scenario().cluster.autoscaler;
  if (pool.slice && kind != AutoscalerKind::cluster_autoscaler)
    return draft.not_yet(path, fmt::format("autoscaling of TPU slices by {}", called(kind)),
                         "leave autoscaling or autoscaler out");
  if (kind == AutoscalerKind::slurm) return;  // resolve_autoscalers
  if (service.scales == Scales::nothing) {
    draft.error(path, fmt::format("service {} does not autoscale node pools", to_text(service.id)),
                fmt::format("leave autoscaling out, or take a Kubernetes service ({})",
                            autoscaling_services(draft.catalog)));
  } else if (service.scales == Scales::pools_of_cpus && pool.accelerator) {
    draft.error(path,
                fmt::format("service {} does not autoscale node pools with accelerators",
                            to_text(service.id)),
                "leave autoscaling out");
  }
}

/// Does an overlay's number (sim/measurement/calibration/calibration.h, lay_over) take the
/// catalog's place?
bool is_calibrated(const Catalog& catalog, std::string_view key) {
  const auto source = std::size_t(catalog.operations.at(key).source);
  return catalog.sources[source].reference.starts_with("calibration ");
}

void check_capacity_type(Draft& draft, const PlannedPool& pool) {
  if (pool.pricing != CapacityType::spot) return;
  const Plan& plan = draft.plan;
  const std::string path = draft.path(pool, "pricing");
  if (!plan.service.spot_machines)
    draft.error(path, fmt::format("{} has no spot machines", plan.service.called),
                "pricing: on_demand, or another service");
  else if (!plan.service.spot_slices && pool.slice)
    draft.error(path, fmt::format("{} has no spot TPU slices", plan.service.called),
                "pricing: on_demand");
  if (!draft.provider->sells_spot)
    draft.not_yet(path, fmt::format("spot capacity of {}", to_text(plan.provider)));
  if (draft.provider->owned && !draft.scenario().disruptions.preemption &&
      !is_calibrated(draft.catalog, keys::kReclaimMean))
    draft.error(path, "reclaims on premises are the owner's rule",
                "disruptions: {preemption: !exponential {mean: 24h}}, or a --calibration on "
                "records of it");
}

}  // namespace

void resolve_nodes(Draft& draft, PlannedPool& pool, const PoolSpec& spec) {
  const NodesSpec& nodes = spec.nodes;
  pool.nodes_initial = nodes.initial;
  pool.nodes_min = nodes.min;
  pool.nodes_max = nodes.max;
  pool.autoscaling = spec.autoscaling;
  if (pool.autoscaling) return check_autoscaling(draft, pool);
  pool.nodes_min = pool.nodes_max = nodes.initial;
}

void resolve_pools(Draft& draft) {
  const std::vector<PoolSpec>& specs = draft.scenario().cluster.pools;
  if (specs.empty() && draft.scenario().cluster.scale_tier.empty())
    draft.error("cluster", "the cluster has no pools",
                "pools: [{name: gpu, machine: ..., nodes: 1}]");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const PoolSpec& spec = specs[i];
    PlannedPool pool;
    pool.id = PoolId{static_cast<std::uint32_t>(i)};
    pool.name = spec.name;
    pool.pricing = spec.pricing;
    draft.resolved.push_back(resolve_hardware(draft, pool, spec));
    resolve_nodes(draft, pool, spec);
    check_capacity_type(draft, pool);
    draft.plan.pools.push_back(std::move(pool));
  }
}

}  // namespace reckon::planning
