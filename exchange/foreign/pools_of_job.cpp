#include "exchange/foreign/pools_of_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/unit_text.h"
#include "sim/catalog/machine_choice.h"

namespace reckon {

/// Ranks of the same role on the same machines share a pool.
void PoolsOfJob::add_pool(ImportedPool pool) {
  for (ImportedPool& known : out_.pools)
    if (known.role == pool.role && known.machine == pool.machine && known.slice == pool.slice &&
        known.accelerator == pool.accelerator && known.spot == pool.spot) {
      for (int* n : {&known.nodes.initial, &known.nodes.min, &known.nodes.max})
        *n += pool.nodes.max;
      return;
    }
  out_.pools.push_back(std::move(pool));
}

ImportedPool PoolsOfJob::imported_pool(const Replicas& r) {
  ImportedPool pool;
  pool.name = r.pod.node.pool.empty() ? r.name : r.pod.node.pool;
  for (char& c : pool.name)
    c = std::isalnum(static_cast<unsigned char>(c)) == 0
            ? '-'
            : char(std::tolower(static_cast<unsigned char>(c)));
  for (const ImportedPool& other : out_.pools)
    if (other.name == pool.name) pool.name += "-" + std::to_string(out_.pools.size());
  pool.role = r.role;
  pool.at = r.pod.at;
  pool.spot = r.pod.node.spot;
  if (r.pod.tpu)
    set_slice(r, pool);
  else if (r.pod.devices > 0)
    set_gpus(r, pool);
  else
    set_host(r, pool);
  return pool;
}

std::string PoolsOfJob::accelerator_of(const Replicas& r) {
  const std::string name =
      r.pod.node.accelerator.empty() ? hints_.accelerator : r.pod.node.accelerator;
  if (catalog_.find_accelerator(name) == nullptr)
    mistake(r,
            name.empty() ? fmt::format("{} asks for {} accelerators, and no label says which",
                                       r.name, r.pod.devices)
                         : fmt::format("unknown accelerator '{}'", name),
            "say it: --accelerator A100-SXM4-80");
  return name;
}

void PoolsOfJob::set_gpus(const Replicas& r, ImportedPool& pool) {
  const std::string wanted = r.pod.node.machine.empty() ? hints_.machine : r.pod.node.machine;
  const Machine* machine = wanted.empty() ? nullptr : catalog_.find_machine(out_.provider, wanted);
  int per_node = std::max(r.pod.devices, r.pod.node.per_node);
  if (machine != nullptr && !machine->accelerator.empty()) {
    per_node = machine->accelerator_count;  // built in: the scenario need not say them
    if (!holds(r, *machine)) return;
  } else {
    pool.accelerator = accelerator_of(r);
    const Accelerator* accelerator = catalog_.find_accelerator(pool.accelerator);
    if (accelerator == nullptr) return;
    pool.per_node = per_node;
    if (wanted.empty()) machine = smallest(r, *accelerator, per_node, pool);
    if (machine != nullptr && !machine->accelerator.empty()) {
      pool.accelerator.clear();
      per_node = machine->accelerator_count;
    }
  }
  pool.machine = machine == nullptr ? wanted : machine->name;
  const int pods_a_node = std::max(1, per_node / std::max(1, r.pod.devices));
  const int nodes = (r.pods + pods_a_node - 1) / pods_a_node;
  pool.nodes = {nodes, nodes, nodes};
}

/// A machine that its label names, against what the pods say.
bool PoolsOfJob::holds(const Replicas& r, const Machine& machine) {
  const Accelerator* named = catalog_.find_accelerator(r.pod.node.accelerator);
  if (named != nullptr && named->name != machine.accelerator)
    mistake(r,
            fmt::format("the pods select {}, and {} has {}", named->name, machine.name,
                        machine.accelerator),
            "make the labels agree");
  else if (r.pod.devices > machine.accelerator_count)
    mistake(r,
            fmt::format("a pod asks for {} accelerators, and {} has {}", r.pod.devices,
                        machine.name, machine.accelerator_count),
            "");
  else
    return true;
  return false;
}

const Machine* PoolsOfJob::smallest(const Replicas& r, const Accelerator& accelerator, int per_node,
                                    ImportedPool& pool) {
  const int pods_a_node = std::max(1, per_node / std::max(1, r.pod.devices));
  const HostRoom room{r.pod.cores * pods_a_node, Bytes{r.pod.memory_bytes * pods_a_node}};
  const auto machines = machines_with(catalog_, out_.provider, accelerator, per_node, room);
  if (machines.empty()) {
    mistake(r,
            fmt::format("no machine of {} carries {} x {}", to_text(out_.provider), per_node,
                        accelerator.name),
            "name the machine: --machine NAME");
    return nullptr;
  }
  const Machine* best =
      *std::ranges::min_element(machines, {}, [](const Machine* m) { return m->vcpus; });
  pool.note = fmt::format("assumed: carries {} x {}", per_node, accelerator.name);
  if (best->vcpus < room.vcpus || best->memory.value < room.memory)
    out_.assumed.push_back(fmt::format(
        "no machine with {} x {} has the {} vCPUs and {} that pods of {} ask for; {} is the "
        "nearest, and --machine says another",
        per_node, accelerator.name, format_count(room.vcpus), format_bytes(room.memory), r.name,
        best->name));
  return best;
}

void PoolsOfJob::set_slice(const Replicas& r, ImportedPool& pool) {
  const std::string chip = accelerator_of(r);
  const Accelerator* found = catalog_.find_accelerator(chip);
  if (found == nullptr) return;
  const int chips = r.pods * r.pod.devices;
  for (const TpuSlice& slice : catalog_.slices) {
    const std::string torus = fmt::format("{}", fmt::join(slice.torus, "x"));
    if (slice.accelerator != found->name || slice.chips != chips) continue;
    if (!r.pod.node.topology.empty() && torus != r.pod.node.topology) continue;
    pool.slice = slice.name;
    pool.nodes = {1, 1, 1};
    return;
  }
  const auto part = std::ranges::find_if(catalog_.slices, [&](const TpuSlice& slice) {
    return slice.accelerator == found->name && !r.pod.node.topology.empty() &&
           fmt::format("{}", fmt::join(slice.torus, "x")) == r.pod.node.topology;
  });
  if (part != catalog_.slices.end() && part->chips < chips && chips % part->chips == 0)
    return mistake(r,
                   fmt::format("{} runs on {} slices {}; one job on several TPU slices is not "
                               "simulated yet",
                               r.name, chips / part->chips, part->name),
                   "import it with one slice: replicas: 1");
  mistake(r,
          fmt::format("no slice of {} has {} chips{}", found->name, chips,
                      r.pod.node.topology.empty() ? "" : " as " + r.pod.node.topology),
          "reckon catalog list slices");
}

void PoolsOfJob::set_host(const Replicas& r, ImportedPool& pool) {
  pool.machine = r.pod.node.machine;
  if (pool.machine.empty() && !hints_.machine.empty() && r.role == Role::worker)
    pool.machine = hints_.machine;
  if (pool.machine.empty()) {
    const Machine* machine = host_of(out_.provider, r.pod);
    pool.machine = machine == nullptr ? "" : machine->name;
    pool.note = "assumed; --machine says another";
  }
  pool.nodes = {r.pods, r.pods, r.pods};
}

/// A machine without accelerators, of 16 vCPUs or, where a pod asks for more than it has, the
/// smallest that holds one.
const Machine* PoolsOfJob::host_of(const Provider& provider, const PodWish& pod) const {
  const auto holds = [&](const Machine& m) {
    return m.provider == provider && m.accelerator.empty() && m.services.empty() &&
           m.vcpus >= pod.cores && m.memory.value.v >= pod.memory_bytes;
  };
  const Machine* usual =
      catalog_.find_machine(provider, catalog_.rules_of(provider).worker_machine);
  if (usual != nullptr && holds(*usual)) return usual;
  constexpr int kVcpus = 16;
  const Machine* best = nullptr;
  for (const Machine& m : catalog_.machines)
    if (holds(m) && m.vcpus >= kVcpus && (best == nullptr || m.vcpus < best->vcpus)) best = &m;
  return best == nullptr ? usual : best;
}

}  // namespace reckon
