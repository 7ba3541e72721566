#include "exchange/foreign/kubernetes_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "exchange/foreign/kubernetes_replicas.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/machine_choice.h"

namespace reckon {
namespace {

/// A chief or launcher without accelerators beside workers that have some tells them what to do,
/// and does not compute.
bool coordinates(const Replicas& r, const std::vector<Replicas>& all) {
  const auto computes = [](const Replicas& other) {
    return other.role == Role::worker && other.pod.devices > 0;
  };
  return r.role == Role::chief && r.pod.devices == 0 && std::ranges::any_of(all, computes);
}

class PoolsOfJob {
 public:
  PoolsOfJob(ReplicasOfJob job, const ClusterHints& hints, const Catalog& catalog)
      : hints_(hints), catalog_(catalog), replicas_(std::move(job.replicas)) {
    out_.name = std::move(job.name);
    out_.left_out = std::move(job.left_out);
    others_ = std::move(job.others);
  }

  Expected<Imported> make(const std::string& from) {
    out_.kind = "kubernetes";
    out_.from = from;
    say_who_does_not_train();
    place();
    make_pools();
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    out_.left_out.insert(out_.left_out.end(), others_.begin(), others_.end());
    return std::move(out_);
  }

 private:
  void say_who_does_not_train() {
    for (const Replicas& r : replicas_) {
      if (coordinates(r, replicas_))
        out_.assumed.push_back(fmt::format(
            "{} has no accelerators and the workers have: it coordinates, and its machine is paid "
            "for",
            r.name));
      if (r.role == Role::evaluator)
        out_.assumed.push_back(fmt::format(
            "{}: its machines are paid for from the start to the end, and delay nothing", r.name));
    }
  }
  bool trains(const Replicas& r) const {
    return r.role != Role::evaluator && !coordinates(r, replicas_);
  }

  void place() {
    std::optional<Provider> provider = hints_.provider;
    for (const Replicas& r : replicas_) {
      const NodeWish& node = r.pod.node;
      if (!provider) provider = node.provider;
      if (out_.region.empty()) out_.region = node.region;
      if (out_.zone.empty()) out_.zone = node.zone;
    }
    if (!provider) provider = provider_by_machine();
    const Provider& first = catalog_.providers.front().id;
    if (!provider)
      out_.assumed.push_back(
          fmt::format("cluster.provider: {} (assumed; no label says); use --provider to change it",
                      to_text(first)));
    out_.provider = provider.value_or(first);
    if (!hints_.region.empty()) out_.region = hints_.region;
    if (out_.region.empty() && !out_.zone.empty()) out_.region = region_of_zone();
  }

  /// By the machines that the ranks name, or the user does.
  std::optional<Provider> provider_by_machine() const {
    for (const ProviderRules& rules : catalog_.providers) {
      if (rules.owned) continue;
      const Provider& provider = rules.id;
      if (!hints_.machine.empty() && catalog_.find_machine(provider, hints_.machine) != nullptr)
        return provider;
      for (const Replicas& r : replicas_)
        if (!r.pod.node.machine.empty() &&
            catalog_.find_machine(provider, r.pod.node.machine) != nullptr)
          return provider;
    }
    return std::nullopt;
  }

  /// "us-central1-c" is of us-central1, "us-east-1a" of us-east-1.
  std::string region_of_zone() const {
    for (const Location& location : catalog_.locations)
      if (location.provider == out_.provider &&
          (out_.zone == location.region + "-" + out_.zone.back() ||
           out_.zone == location.region + out_.zone.back()))
        return location.region;
    return out_.zone;
  }

  void make_pools() {
    for (const Replicas& r : replicas_) {
      ImportedPool pool = imported_pool(r);
      if (mistakes_.empty()) add_pool(std::move(pool));
    }
    if (!mistakes_.empty()) return;
    const auto worker =
        std::ranges::find_if(replicas_, [](const Replicas& r) { return r.role == Role::worker; });
    const Replicas& shown = worker == replicas_.end() ? replicas_.front() : *worker;
    if (!shown.pod.container.image.empty()) {
      out_.container = shown.pod.container;
      leave_wiring_out(*out_.container);
    }
    for (const Replicas& r : replicas_)
      if (r.pod.container.command != shown.pod.container.command)
        out_.left_out.push_back(fmt::format("{}: its own command", r.name));
    out_.strategy = strategy(shown);
    if (!shown.pod.referenced.empty())
      out_.left_out.push_back(fmt::format("variables with values from the cluster: {}",
                                          fmt::join(shown.pod.referenced, ", ")));
    if (out_.region.empty() && !catalog_.rules_of(out_.provider).owned) assume_region();
    out_.assumed.emplace_back("workload.strategy: what follows from the roles of the ranks");
  }

  /// How ranks find each other: theirs names services that are not there where reckon makes the
  /// pods, which are told so by reckon.
  void leave_wiring_out(ImportedContainer& container) {
    constexpr std::array<std::string_view, 8> kWiring{
        "TF_CONFIG",         "RANK",          "WORLD_SIZE",
        "MASTER_ADDR",       "MASTER_PORT",   "JAX_COORDINATOR_ADDRESS",
        "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"};
    // What reckon's own pods have where a root that is read-only needs it (kubernetes_pods.cpp).
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOwnPods{
        {{"HOME", "/tmp"}, {"USER", "reckon"}, {"PYTHONUNBUFFERED", "1"}}};
    const bool ours = container.environment.contains("RECKON_JOB_DIR");
    std::vector<std::string> names;
    std::erase_if(container.environment, [&](const auto& variable) {
      const std::string& name = variable.first;
      const bool own =
          ours &&
          std::ranges::find(kOwnPods, std::pair<std::string_view, std::string_view>(variable)) !=
              kOwnPods.end();
      const bool wires = own || name.starts_with("PET_") || name.starts_with("RECKON_") ||
                         std::ranges::find(kWiring, name) != kWiring.end();
      if (wires) names.push_back(name);
      return wires;
    });
    if (!names.empty())
      out_.left_out.push_back(
          fmt::format("variables that reckon sets itself: {}", fmt::join(names, ", ")));
  }

  /// Ranks of the same role on the same machines share a pool.
  void add_pool(ImportedPool pool) {
    for (ImportedPool& known : out_.pools)
      if (known.role == pool.role && known.machine == pool.machine && known.slice == pool.slice &&
          known.accelerator == pool.accelerator && known.spot == pool.spot) {
        for (int* n : {&known.nodes.initial, &known.nodes.min, &known.nodes.max})
          *n += pool.nodes.max;
        return;
      }
    out_.pools.push_back(std::move(pool));
  }

  ImportedPool imported_pool(const Replicas& r) {
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

  std::string accelerator_of(const Replicas& r) {
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

  void set_gpus(const Replicas& r, ImportedPool& pool) {
    const std::string wanted = r.pod.node.machine.empty() ? hints_.machine : r.pod.node.machine;
    const Machine* machine =
        wanted.empty() ? nullptr : catalog_.find_machine(out_.provider, wanted);
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
  bool holds(const Replicas& r, const Machine& machine) {
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

  const Machine* smallest(const Replicas& r, const Accelerator& accelerator, int per_node,
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

  void set_slice(const Replicas& r, ImportedPool& pool) {
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

  void set_host(const Replicas& r, ImportedPool& pool) {
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
  const Machine* host_of(const Provider& provider, const PodWish& pod) const {
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

  /// Whether the catalog knows what the pool's nodes cost there.
  bool priced(const ImportedPool& pool, const std::string& region) const {
    const CapacityType bought = pool.spot ? CapacityType::spot : CapacityType::on_demand;
    const auto has = [&](std::string_view item, Offering::Covers covers) {
      return !item.empty() &&
             catalog_.find_offering(out_.provider, region, "", item, covers, bought) != nullptr;
    };
    using enum Offering::Covers;
    if (!pool.slice.empty()) return has(pool.slice, slice);
    if (has(pool.machine, machine_with_accelerators)) return true;
    const Machine* host = catalog_.find_machine(out_.provider, pool.machine);
    const std::string carried =
        host != nullptr && !host->accelerator.empty() ? host->accelerator : pool.accelerator;
    const Accelerator* chip = carried.empty() ? nullptr : catalog_.find_accelerator(carried);
    return has(pool.machine, machine) &&
           (carried.empty() || (chip && has(chip->name, accelerator)));
  }

  /// Of the regions that offer what trains the first where all of it has a price, else the first.
  void assume_region() {
    std::vector<std::string> regions;
    for (const ImportedPool& pool : out_.pools)
      for (const std::string& item : {pool.accelerator, pool.slice, pool.machine}) {
        if (item.empty() || !regions.empty()) continue;
        for (const Location* place : catalog_.locations_of(out_.provider, item))
          regions.push_back(place->region);
      }
    const std::string& usual = catalog_.rules_of(out_.provider).region;
    if (regions.empty() && !usual.empty()) regions.push_back(usual);
    const auto all_priced = [&](const std::string& region) {
      return std::ranges::all_of(out_.pools,
                                 [&](const ImportedPool& pool) { return priced(pool, region); });
    };
    const auto best = std::ranges::find_if(regions, all_priced);
    if (!regions.empty()) out_.region = best == regions.end() ? regions.front() : *best;
    if (out_.region.empty())
      mistakes_.push_back({Severity::error,
                           {out_.from, 0, 0},
                           "no label says the region",
                           "say it: --region NAME"});
    else
      out_.assumed.push_back(fmt::format("cluster.region: {}; --region says another", out_.region));
  }

  void mistake(const Replicas& r, std::string what, std::string hint) {
    mistakes_.push_back({Severity::error, r.pod.at, std::move(what), std::move(hint)});
  }

  /// Ranks are processes: pods, each with its devices.
  std::optional<std::string> strategy(const Replicas& shown) {
    int ranks = 0, servers = 0;
    for (const Replicas& r : replicas_) {
      if (r.pod.tpu) return std::nullopt;
      (r.role == Role::parameter_server ? servers : ranks) += trains(r) ? r.pods : 0;
    }
    const int devices = shown.pod.devices;
    const std::string each =
        devices > 0 ? fmt::format(", accelerators_per_worker: {}", devices) : "";
    if (servers > 0)
      return fmt::format("{{kind: parameter_server, workers: {}{}, mode: asynchronous}}", ranks,
                         each);
    if (ranks > 1)
      return fmt::format("{{kind: multi_worker_mirrored, workers: {}{}}}", ranks, each);
    return devices > 1 ? fmt::format("{{kind: mirrored{}}}", each) : std::string("{kind: single}");
  }

  const ClusterHints& hints_;
  const Catalog& catalog_;
  std::vector<Replicas> replicas_;
  std::vector<std::string> others_;
  Diagnostics mistakes_;
  Imported out_;
};

}  // namespace

Expected<Imported> import_kubernetes_job(std::string_view text, const std::string& file,
                                         const ClusterHints& hints, const Catalog& catalog) {
  auto job = replicas_of_manifests(text, file, catalog);
  if (!job) return tl::unexpected(std::move(job.error()));
  return PoolsOfJob(std::move(*job), hints, catalog).make(file);
}

}  // namespace reckon
