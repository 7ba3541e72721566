#include "exchange/foreign/kubernetes_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exchange/foreign/pools_of_job.h"

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

}  // namespace

PoolsOfJob::PoolsOfJob(ReplicasOfJob job, const ClusterHints& hints, const Catalog& catalog)
    : hints_(hints), catalog_(catalog), replicas_(std::move(job.replicas)) {
  out_.name = std::move(job.name);
  out_.left_out = std::move(job.left_out);
  others_ = std::move(job.others);
}

Expected<Imported> PoolsOfJob::make(const std::string& from) {
  out_.kind = "kubernetes";
  out_.from = from;
  say_who_does_not_train();
  place();
  make_pools();
  if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
  out_.left_out.insert(out_.left_out.end(), others_.begin(), others_.end());
  return std::move(out_);
}

void PoolsOfJob::say_who_does_not_train() {
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

bool PoolsOfJob::trains(const Replicas& r) const {
  return r.role != Role::evaluator && !coordinates(r, replicas_);
}

void PoolsOfJob::place() {
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
std::optional<Provider> PoolsOfJob::provider_by_machine() const {
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
std::string PoolsOfJob::region_of_zone() const {
  for (const Location& location : catalog_.locations)
    if (location.provider == out_.provider &&
        (out_.zone == location.region + "-" + out_.zone.back() ||
         out_.zone == location.region + out_.zone.back()))
      return location.region;
  return out_.zone;
}

void PoolsOfJob::make_pools() {
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
void PoolsOfJob::leave_wiring_out(ImportedContainer& container) {
  constexpr std::array<std::string_view, 8> kWiring{"TF_CONFIG",         "RANK",
                                                    "WORLD_SIZE",        "MASTER_ADDR",
                                                    "MASTER_PORT",       "JAX_COORDINATOR_ADDRESS",
                                                    "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"};
  // What reckon's own pods have where a root that is read-only needs it
  // (exchange/kubernetes/pods.cpp).
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

/// Whether the catalog knows what the pool's nodes cost there.
bool PoolsOfJob::priced(const ImportedPool& pool, const std::string& region) const {
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
  return has(pool.machine, machine) && (carried.empty() || (chip && has(chip->name, accelerator)));
}

/// Of the regions that offer what trains the first where all of it has a price, else the first.
void PoolsOfJob::assume_region() {
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
    mistakes_.push_back(
        {Severity::error, {out_.from, 0, 0}, "no label says the region", "say it: --region NAME"});
  else
    out_.assumed.push_back(fmt::format("cluster.region: {}; --region says another", out_.region));
}

/// Ranks are processes: pods, each with its devices.
std::optional<std::string> PoolsOfJob::strategy(const Replicas& shown) {
  int ranks = 0, servers = 0;
  for (const Replicas& r : replicas_) {
    if (r.pod.tpu) return std::nullopt;
    (r.role == Role::parameter_server ? servers : ranks) += trains(r) ? r.pods : 0;
  }
  const int devices = shown.pod.devices;
  const std::string each = devices > 0 ? fmt::format(", accelerators_per_worker: {}", devices) : "";
  if (servers > 0)
    return fmt::format("{{kind: parameter_server, workers: {}{}, mode: asynchronous}}", ranks,
                       each);
  if (ranks > 1) return fmt::format("{{kind: multi_worker_mirrored, workers: {}{}}}", ranks, each);
  return devices > 1 ? fmt::format("{{kind: mirrored{}}}", each) : std::string("{kind: single}");
}

Expected<Imported> import_kubernetes_job(std::string_view text, const std::string& file,
                                         const ClusterHints& hints, const Catalog& catalog) {
  auto job = replicas_of_manifests(text, file, catalog);
  if (!job) return tl::unexpected(std::move(job.error()));
  return PoolsOfJob(std::move(*job), hints, catalog).make(file);
}

}  // namespace reckon
