#include <fmt/format.h>

#include "sim/catalog/operations_keys.h"
#include "sim/model/lookup_tables.h"
#include "sim/scenario/resolve/draft.h"

// Precision, efficiencies and links: the numbers of a pool that the step model computes with.
namespace reckon::planning {
namespace {

std::string precisions_of(const Accelerator& accelerator) {
  std::vector<std::string> words;
  for (const Precision p : kPrecisions)
    if (accelerator.peak_for(p)) words.emplace_back(to_text(p));
  return join(words, ", ");
}

/// The scenario's, else bf16 where there is nothing wider (TPU), else fp32.
Precision precision_for(const ModelUse& use, const PlannedPool& worker) {
  if (use.precision) return *use.precision;
  return worker.accelerator && !worker.accelerator->peak_for(Precision::fp32) ? Precision::bf16
                                                                              : Precision::fp32;
}

bool check_precision(Draft& draft, const PlannedPool& worker, Precision precision) {
  const std::string path = "workload.precision";
  if (!worker.accelerator) {
    if (precision == Precision::fp32) return true;
    // CPUs compute in float; reckon-worker rounds to 16 bits what a device would hold in them.
    const bool trains = !draft.plan.jobs.empty();
    if (trains && (precision == Precision::bf16 || precision == Precision::fp16)) return true;
    draft.not_yet(path, fmt::format("{} on CPUs", to_text(precision)),
                  trains ? "precision: fp32, bf16 or fp16" : "precision: fp32");
    return false;
  }
  if (worker.accelerator->peak_for(precision)) return true;
  draft.error(path, fmt::format("{} has no {}", worker.accelerator->name, to_text(precision)),
              fmt::format("it has {}", precisions_of(*worker.accelerator)));
  return false;
}

/// The host of a slice is a machine of its own in the catalog; what it carries are the slice's
/// chips.
void resolve_host(Draft& draft, PlannedPool& pool) {
  const Machine* host = draft.catalog.find_machine(draft.plan.provider, pool.slice->machine);
  if (host != nullptr)
    pool.machine = *host;
  else
    draft.error(draft.path(pool, "tpu.slice"),
                fmt::format("the catalog does not know the host machine '{}' of slice {}",
                            pool.slice->machine, pool.slice->name));
}

void resolve_links(Draft& draft, PlannedPool& pool) {
  const auto link = [&](const std::string& name) {
    if (const LinkClass* found = draft.catalog.find_link(name)) return *found;
    draft.error(
        draft.path(pool),
        fmt::format("the catalog does not know the link '{}' of pool '{}'", name, pool.name));
    return LinkClass{};
  };
  pool.network_link = link(pool.machine.network_link);
  if (!pool.accelerator) return;
  const auto* given = std::get_if<MachineInline>(&draft.spec(pool).machine);
  if (given != nullptr && !given->peer_link.empty()) {
    if (given->peer_link.starts_with("pcie")) {
      pool.accelerator->peer_bandwidth.reset();  // its own links lead nowhere in this machine
    } else if (!pool.accelerator->peer_bandwidth) {
      draft.error(draft.path(pool, "machine.peer_link"),
                  fmt::format("{} has no links of its own, only PCIe", pool.accelerator->name),
                  "peer_link: pcie, or pcie-host where cards cannot copy to each other");
      return;
    }
  }
  const bool fabric = !pool.slice && !pool.machine.peer_fabric.empty();
  pool.peer_link = link(fabric ? pool.machine.peer_fabric : pool.accelerator->peer_link);
}

void resolve_efficiency(Draft& draft, PlannedPool& pool, Precision precision,
                        const std::string& stack) {
  const Efficiency* found = draft.catalog.find_efficiency(*pool.accelerator, precision, stack);
  if (found == nullptr) {
    draft.error("workload.precision",
                fmt::format("the catalog has no efficiencies of {} in {}", pool.accelerator->name,
                            to_text(precision)),
                "add a row to the efficiencies of a catalog of your own");
    return;
  }
  pool.efficiency = *found;
  if (stack.empty() || !found->stack.empty()) return;
  if (const SoftwareStack* known = draft.catalog.find_stack(stack))
    pool.efficiency = with_stack(*found, *known);
  else
    draft.warn(fmt::format(
        "no efficiencies of {} in {} are known for stack {}; those of any stack are used",
        pool.accelerator->name, to_text(precision), stack));
}

/// How skewed the ids of embedding tables are: what the scenario says, else an assumption where a
/// step depends on it. A worker's made-up clicks are the same under every strategy.
void resolve_ids(Draft& draft, PlannedWorkload& job) {
  if (!draft.workload_known) return;
  const WorkloadSpec& workload = *draft.scenario().workload;
  const std::vector<LookupTable> tables = lookup_tables(job.model);
  const auto needs_tables = [&](const char* path, bool given) {
    if (!given || !tables.empty()) return;
    draft.error(
        path,
        fmt::format("model {} has no embedding table that its samples look up", job.model.name()),
        "leave it out; tables of which every row is trained in each step travel whole");
  };
  const StrategySpec& strategy = workload.strategy;
  needs_tables("workload.zipf_exponent", workload.zipf_exponent.has_value());
  needs_tables("workload.strategy.sparse_embeddings", strategy.sparse_embeddings.value_or(false));
  needs_tables("workload.strategy.partition_strategy", strategy.partition_strategy.has_value());
  if (workload.zipf_exponent)
    job.zipf_exponent = Fact<double>{*workload.zipf_exponent};
  else if (!tables.empty() && job.strategy.servers && job.strategy.servers->sparse_embeddings)
    job.zipf_exponent = draft.catalog.operations.at(keys::kZipfExponent);
  else if (!tables.empty() && workload.data && workload.data->format == DataFormat::clicks)
    job.zipf_exponent = Fact<double>{draft.catalog.operations.at(keys::kZipfExponent).value};
}

}  // namespace

Precision resolve_speeds_of_pools(Draft& draft, const ModelUse& use) {
  const PlannedPool& worker = *draft.plan.pool_with(Role::worker);
  const Precision precision = precision_for(use, worker);
  const bool runs = check_precision(draft, worker, precision);
  for (PlannedPool& pool : draft.plan.pools) {
    if (pool.slice) resolve_host(draft, pool);
    resolve_links(draft, pool);
    pool.cpu_flops_per_vcpu = draft.catalog.operations.at(keys::kCpuFlopsPerVcpu);
    pool.cpu_memory_bandwidth_per_vcpu =
        fact_of<BytesPerSecond>(draft.catalog.operations.at(keys::kCpuMemoryPerVcpu));
    const bool may_compute = computes(draft.plan, pool);
    if (runs && may_compute && pool.accelerator && check_precision(draft, pool, precision))
      resolve_efficiency(draft, pool, precision, use.stack);
    if (may_compute && !pool.accelerator) {
      pool.efficiency.launch = seconds_fact(draft.catalog.operations.at(keys::kCpuLaunch));
      pool.host_step = seconds_fact(draft.catalog.operations.at(keys::kCpuStep));
    }
  }
  return precision;
}

void resolve_speeds(Draft& draft) {
  if (!draft.roles_known) return;
  PlannedWorkload& job = draft.plan.only_job();
  job.stack = draft.use->stack;
  resolve_ids(draft, job);
  job.fp32_gradients = draft.scenario().workload->fp32_gradients.value_or(false);
  job.precision = resolve_speeds_of_pools(draft, *draft.use);
}

}  // namespace reckon::planning
