#include "exchange/foreign/gke_node_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "exchange/foreign/foreign_file.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostNodes = 100'000, kMostDevicesOfNode = 1024;

/// "us-central1-c" to "us-central1".
std::string region_of(const std::string& zone) {
  const std::size_t hyphen = zone.rfind('-');
  const bool is_zone = hyphen != std::string::npos && hyphen + 2 == zone.size();
  return is_zone ? zone.substr(0, hyphen) : zone;
}

/// What stands behind `/zones/` or `/locations/` in the address of a resource; "": nothing.
std::string place_in(std::string_view link) {
  for (const std::string_view key : {"/zones/", "/locations/", "/regions/"})
    if (const std::size_t at = link.find(key); at != std::string_view::npos) {
      const std::string_view rest = link.substr(at + key.size());
      return std::string(rest.substr(0, rest.find('/')));
    }
  return "";
}

/// What a person wants to read of 60 settings: "p100.management.autoUpgrade" is "p100.management",
/// those of the machines are by themselves ("p100.config.diskType"), and so is what is left of
/// those that were read ("p100.autoscaling.locationPolicy").
std::string setting_of(const std::string& path) {
  const std::size_t first = path.find('.');
  if (first == std::string::npos) return path;
  constexpr std::string_view kList = "config.accelerators.";
  constexpr std::array<std::string_view, 4> kRead{"config.reservationAffinity.", "config.",
                                                  "autoscaling.", "placementPolicy."};
  const std::string_view below = std::string_view(path).substr(first + 1);
  if (below.starts_with(kList)) {  // "config.accelerators.0.gpuSharingConfig.strategy"
    const std::size_t key = std::min(below.find('.', kList.size()), below.size() - 1) + 1;
    const std::string_view name = below.substr(key);
    return fmt::format("{}.{}{}", path.substr(0, first), kList, name.substr(0, name.find('.')));
  }
  for (const std::string_view read : kRead)
    if (below.starts_with(read)) return path.substr(0, path.find('.', first + 1 + read.size()));
  return path.substr(0, path.find('.', first + 1));
}

struct FoundPool {
  ImportedPool pool;
  std::int64_t accelerators = 0;  // at most
  std::vector<std::string> zones;
  std::string link;
};

class PoolsReader {
 public:
  PoolsReader(YamlNode root, const PoolChoice& choice, const Catalog& catalog)
      : file_(std::move(root)), choice_(choice), catalog_(catalog) {}

  Expected<Imported> read(const std::string& from) {
    out_.kind = "gke";
    out_.provider = Provider{"gcp"};  // whose format it is
    out_.from = from;
    for (const YamlNode* pool : pools()) read_pool(pool);
    choose();
    if (!file_.mistakes().empty()) return tl::unexpected(std::move(file_.mistakes()));
    std::set<std::string> seen;
    for (const std::string& path : file_.left_over())
      if (const std::string setting = setting_of(path); seen.insert(setting).second)
        out_.left_out.push_back(named(setting));
    return std::move(out_);
  }

 private:
  /// The list itself, one pool alone (`describe`), or the API's {nodePools: [...]}.
  std::vector<const YamlNode*> pools() {
    const YamlNode* root = file_.root();
    std::vector<const YamlNode*> found;
    if (root->kind == YamlNode::Kind::list)
      for (const YamlNode::Entry& entry : root->entries) found.push_back(&entry.value);
    else if (root->has("nodePools"))
      found = file_.list(root, "nodePools");
    else if (root->has("config"))
      found.push_back(root);
    if (found.empty())
      file_.mistake(root->at, "no node pools are in it",
                    "gcloud container node-pools list --cluster NAME --format=json > pools.json");
    return found;
  }

  void read_pool(const YamlNode* node) {
    FoundPool found;
    ImportedPool& pool = found.pool;
    pool.at = node->at;
    pool.name = file_.text(node, "name").value_or(fmt::format("pool-{}", found_.size() + 1));
    names_.push_back(pool.name);
    const YamlNode* config = file_.map(node, "config");
    pool.machine = file_.text(config, "machineType").value_or("");
    if (pool.machine.empty())
      file_.mistake(config == nullptr ? node->at : config->at,
                    fmt::format("node pool {} has no config.machineType", pool.name));
    const bool spot = file_.flag(config, "spot"), preemptible = file_.flag(config, "preemptible");
    pool.spot = spot || preemptible;
    found.zones = file_.texts(node, "locations");
    found.link = file_.text(node, "selfLink").value_or("");
    read_nodes(node, found);
    read_accelerators(config, pool);
    read_slice(node, pool);
    for (const char* known : {"etag", "instanceGroupUrls", "status", "statusMessage", "version",
                              "podIpv4CidrSize", "conditions"})
      file_.ignore(node, known);
    found.accelerators = std::int64_t{devices_of(pool, out_.provider, catalog_)} * pool.nodes.max;
    if (!pool.spot && reserved(config))
      out_.assumed.push_back(fmt::format(
          "pool {} is priced on demand: what its reservation costs is yours to say (pricing: "
          "reserved, prices: {{reserved: ...}})",
          pool.name));
    found_.push_back(std::move(found));
  }

  /// GKE writes the affinity of every pool, NO_RESERVATION where none is used; ANY_RESERVATION is
  /// its default and uses one only where there is one.
  bool reserved(const YamlNode* config) {
    const YamlNode* affinity = file_.map(config, "reservationAffinity");
    if (affinity == nullptr) return false;
    const std::string type = file_.text(affinity, "consumeReservationType").value_or("");
    if (type == "SPECIFIC_RESERVATION") return true;
    file_.ignore(affinity);
    return false;
  }

  /// GKE counts nodes by zone, except where it says total.
  void read_nodes(const YamlNode* node, FoundPool& found) {
    constexpr std::size_t kMostZones = 100;
    const int zones = int(std::clamp<std::size_t>(found.zones.size(), 1, kMostZones));
    NodesSpec& nodes = found.pool.nodes;
    const auto initial = file_.whole(node, "initialNodeCount", 0, kMostNodes);
    nodes.initial = int(initial.value_or(0)) * zones;
    nodes.min = nodes.max = nodes.initial;
    const YamlNode* scaling = file_.map(node, "autoscaling");
    const auto bound = [&](const char* by_zone, const char* total) {
      const auto each = file_.whole(scaling, by_zone, 0, kMostNodes);
      const auto all = file_.whole(scaling, total, 0, kMostNodes);
      return int(all ? *all : each.value_or(0) * zones);
    };
    const int min = bound("minNodeCount", "totalMinNodeCount");
    const int max = bound("maxNodeCount", "totalMaxNodeCount");
    if (!file_.flag(scaling, "enabled") || max == 0) return;
    constexpr int kQuota = 1000;  // what Autopilot and auto-provisioning give a pool by themselves
    if (file_.flag(scaling, "autoprovisioned") || max >= kQuota) {
      out_.assumed.push_back(fmt::format(
          "pool {} keeps the nodes that it has now; up to {} are allowed", found.pool.name, max));
      return;
    }
    if (min > max) {
      file_.mistake(scaling->at,
                    fmt::format("node pool {} has at least {} and at most {} nodes",
                                found.pool.name, min, max),
                    "a pool's minNodeCount is not above its maxNodeCount");
      return;
    }
    found.pool.autoscaling = true;
    nodes.min = min;
    nodes.max = max;
    nodes.initial = std::clamp(nodes.initial, nodes.min, nodes.max);
  }

  void read_accelerators(const YamlNode* config, ImportedPool& pool) {
    const auto list = file_.list(config, "accelerators");
    if (list.empty()) return;
    pool.accelerator = file_.text(list.front(), "acceleratorType").value_or("");
    pool.per_node =
        int(file_.whole(list.front(), "acceleratorCount", 1, kMostDevicesOfNode).value_or(1));
    if (list.size() > 1)
      file_.mistake(list[1]->at,
                    fmt::format("node pool {} has two kinds of accelerators", pool.name),
                    "import each kind as a pool of its own");
  }

  /// {tpuTopology: 4x4}: the pool is a slice, all of its nodes together.
  void read_slice(const YamlNode* node, ImportedPool& pool) {
    const YamlNode* placement = file_.map(node, "placementPolicy");
    const auto topology = file_.text(placement, "tpuTopology");
    const Machine* machine = catalog_.find_machine(out_.provider, pool.machine);
    if (machine == nullptr) return;
    const Accelerator* chip = catalog_.find_accelerator(machine->accelerator);
    if (chip == nullptr || chip->kind != AcceleratorKind::tpu) return;
    const std::string wanted = topology.value_or(machine->accelerator_count == 1 ? "1x1" : "");
    for (const TpuSlice& slice : catalog_.slices) {
      const bool same = wanted.empty() ? slice.chips == machine->accelerator_count
                                       : fmt::format("{}", fmt::join(slice.torus, "x")) == wanted;
      if (slice.accelerator != chip->name || !same) continue;
      pool.slice = slice.name;
      pool.note = pool.machine;
      pool.machine.clear();
      const int hosts = std::max(1, slice.hosts);
      for (int* count : {&pool.nodes.initial, &pool.nodes.min, &pool.nodes.max}) *count /= hosts;
      pool.nodes.max = std::max(1, pool.nodes.max);
      if (pool.autoscaling)
        out_.assumed.push_back(fmt::format(
            "pool {} has the nodes of its slice from the start to the end: that the autoscaler "
            "makes and deletes them is not simulated",
            pool.name));
      pool.autoscaling = false;
      pool.nodes = {pool.nodes.max, pool.nodes.max, pool.nodes.max};
      return;
    }
    file_.mistake(pool.at, fmt::format("no slice of {} with topology {} is in the catalog",
                                       chip->name, wanted));
  }

  FoundPool* pool_named(const std::string& name) {
    const auto found =
        std::ranges::find_if(found_, [&](const FoundPool& pool) { return pool.pool.name == name; });
    if (found != found_.end()) return &*found;
    file_.mistake(file_.root()->at,
                  fmt::format("no node pool is named {}{}", name, did_you_mean(name, names_)),
                  fmt::format("node pools: {}", fmt::join(names_, ", ")));
    return nullptr;
  }

  void choose() {
    if (found_.empty()) return;
    FoundPool* workers =
        choice_.workers.empty()
            ? &*std::ranges::max_element(
                  found_, {},
                  [](const FoundPool& p) { return std::pair(p.accelerators, p.pool.nodes.max); })
            : pool_named(choice_.workers);
    FoundPool* servers = choice_.servers.empty() ? nullptr : pool_named(choice_.servers);
    if (workers == nullptr) return;
    if (workers == servers) {
      file_.mistake(workers->pool.at,
                    fmt::format("pool {} cannot train and hold the servers", choice_.servers),
                    "say which trains: --pool NAME");
      return;
    }
    take_place(*workers);
    out_.name = workers->pool.name;
    const std::string name = workers->pool.name;
    take(*workers, Role::worker);
    if (servers != nullptr) take(*servers, Role::parameter_server);
    if (choice_.workers.empty() && found_.size() > 1)
      out_.assumed.push_back(fmt::format(
          "pool {} trains, as it has the most accelerators; --pool says another", name));
    for (const FoundPool& pool : found_)
      if (!pool.pool.name.empty())
        out_.left_out.push_back(
            fmt::format("node pool {} ({})", pool.pool.name,
                        pool.pool.slice.empty() ? pool.pool.machine : pool.pool.slice));
    out_.assumed.emplace_back("workload.strategy: all nodes of the pool, as many as it may have");
  }

  void take_place(const FoundPool& pool) {
    std::string place = pool.zones.empty() ? place_in(pool.link) : pool.zones.front();
    if (place.empty()) {
      place = "us-central1";
      out_.assumed.push_back(fmt::format("cluster.region: {}; --region says another", place));
    }
    out_.region = region_of(place);
    if (pool.zones.size() == 1 && out_.region != place) out_.zone = place;
  }

  void take(FoundPool& from, Role role) {
    ImportedPool pool = from.pool;
    from.pool.name.clear();
    pool.role = role;
    if (pool.nodes.max == 0) {
      pool.nodes = {1, 1, 1};
      out_.assumed.push_back(fmt::format("pool {} has one node; the file says none", pool.name));
    }
    out_.pools.push_back(std::move(pool));
  }

  /// "0.management" with the pool's name in place of its number.
  std::string named(const std::string& path) const {
    const std::size_t dot = path.find('.');
    const auto number = parse_integer(path.substr(0, dot));
    if (dot == std::string::npos || !number || *number >= std::int64_t(names_.size())) return path;
    return names_[std::size_t(*number)] + path.substr(dot);
  }

  ForeignFile file_;
  const PoolChoice& choice_;
  const Catalog& catalog_;
  std::vector<FoundPool> found_;
  std::vector<std::string> names_;
  Imported out_;
};

}  // namespace

Expected<Imported> import_gke_node_pools(std::string_view json, const std::string& file,
                                         const PoolChoice& choice, const Catalog& catalog) {
  auto root = parse_yaml(json, file);
  if (!root) return tl::unexpected(std::move(root.error()));
  return PoolsReader(std::move(*root), choice, catalog).read(file);
}

}  // namespace reckon
