#include "exchange/foreign/terraform_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "exchange/foreign/foreign_file.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostPoolNodes = 100'000, kMostGpus = 1024;

struct TerraformPool {
  ImportedPool pool;
  std::int64_t accelerators = 0;  // at most
  std::string provider, service, place;
};

/// Of "us-central1-c" the region; of others that do not end with a zone's letter the text.
std::string google_region(const std::string& place) {
  const std::size_t hyphen = place.rfind('-');
  const bool zone = hyphen != std::string::npos && hyphen + 2 == place.size();
  return zone ? place.substr(0, hyphen) : place;
}

class TerraformReader {
 public:
  TerraformReader(YamlNode root, const PoolChoice& choice, std::string region,
                  const Catalog& catalog)
      : file_(std::move(root)), choice_(choice), region_(std::move(region)), catalog_(catalog) {}

  Expected<Imported> read(const std::string& from) {
    out_.kind = "terraform";
    out_.from = from;
    const YamlNode* root = file_.root();
    const YamlNode* values = file_.map(root, "planned_values");
    if (values == nullptr) values = file_.map(root, "values");  // of a state
    read_module(file_.map(values, "root_module"));
    if (found_.empty())
      file_.mistake(root->at, "no node pools of GKE, EKS or AKS are in it",
                    "terraform show -json PLANFILE > plan.json");
    choose();
    if (!file_.mistakes().empty()) return tl::unexpected(std::move(file_.mistakes()));
    for (const auto& [type, count] : others_)
      out_.left_out.push_back(fmt::format("{} x {}", count, type));
    return std::move(out_);
  }

 private:
  void read_module(const YamlNode* module) {
    for (const YamlNode* resource : file_.list(module, "resources")) read_resource(resource);
    for (const YamlNode* child : file_.list(module, "child_modules")) read_module(child);
  }

  void read_resource(const YamlNode* resource) {
    const std::string type = file_.text(resource, "type").value_or("");
    const YamlNode* values = file_.map(resource, "values");
    TerraformPool found;
    found.pool.at = resource->at;
    if (type == "google_container_node_pool")
      read_gke(values, found);
    else if (type == "aws_eks_node_group")
      read_eks(values, found);
    else if (type == "azurerm_kubernetes_cluster_node_pool")
      read_aks(values, found);
    else {
      if (type == "azurerm_kubernetes_cluster")
        azure_location_ = file_.text(values, "location").value_or("");
      ++others_[type];
      return;
    }
    ImportedPool& pool = found.pool;
    if (pool.name.empty()) pool.name = file_.text(resource, "name").value_or("pool");
    if (pool.machine.empty())
      file_.mistake(resource->at, fmt::format("node pool {} has no machine type", pool.name));
    pool.nodes.initial = std::clamp(pool.nodes.initial, pool.nodes.min, pool.nodes.max);
    const Provider provider{found.provider};
    const Machine* machine = catalog_.find_machine(provider, pool.machine);
    const Accelerator* chip =
        machine == nullptr ? nullptr : catalog_.find_accelerator(machine->accelerator);
    if (chip != nullptr && chip->kind == AcceleratorKind::tpu)
      file_.mistake(resource->at, fmt::format("node pool {} has TPUs", pool.name),
                    "reckon import gke, which reads their topology");
    found.accelerators = std::int64_t{devices_of(pool, provider, catalog_)} * pool.nodes.max;
    names_.push_back(pool.name);
    found_.push_back(std::move(found));
  }

  /// The only entry of a block, which Terraform has as a list; nullptr: none.
  const YamlNode* block(const YamlNode* in, const char* key) {
    const auto list = file_.list(in, key);
    return list.empty() ? nullptr : list.front();
  }
  int count(const YamlNode* in, const char* key, std::int64_t otherwise) {
    return int(file_.whole(in, key, 0, kMostPoolNodes).value_or(otherwise));
  }
  void set_bounds(ImportedPool& pool, int min, int max, const YamlNode* at) {
    if (min > max)
      file_.mistake(at->at, fmt::format("node pool {} has at least {} and at most {} nodes",
                                        pool.name, min, max));
    pool.autoscaling = max > min;
    pool.nodes.min = std::min(min, max);
    pool.nodes.max = max;
  }

  /// Counts are those of each zone, but for the total_ ones.
  void read_gke(const YamlNode* values, TerraformPool& found) {
    found.provider = "gcp";
    found.service = "gke";
    ImportedPool& pool = found.pool;
    pool.name = file_.text(values, "name").value_or("");
    const std::vector<std::string> zones = file_.texts(values, "node_locations");
    found.place = zones.empty() ? file_.text(values, "location").value_or("") : zones.front();
    constexpr std::size_t kMostZones = 100;
    const int each = int(std::clamp<std::size_t>(zones.size(), 1, kMostZones));
    const int nodes = count(values, "node_count", count(values, "initial_node_count", 1)) * each;
    pool.nodes = {nodes, nodes, nodes};
    if (const YamlNode* scaling = block(values, "autoscaling")) {
      const int total = count(scaling, "total_max_node_count", 0);
      if (total > 0)
        set_bounds(pool, count(scaling, "total_min_node_count", 0), total, scaling);
      else
        set_bounds(pool, count(scaling, "min_node_count", 0) * each,
                   count(scaling, "max_node_count", 0) * each, scaling);
    }
    const YamlNode* config = block(values, "node_config");
    pool.machine = file_.text(config, "machine_type").value_or("");
    const bool spot = file_.flag(config, "spot"), preemptible = file_.flag(config, "preemptible");
    pool.spot = spot || preemptible;
    const YamlNode* gpus = block(config, "guest_accelerator");
    if (gpus == nullptr) return;
    pool.accelerator = file_.text(gpus, "type").value_or("");
    pool.per_node = int(file_.whole(gpus, "count", 1, kMostGpus).value_or(1));
    drop_built_in(found);
  }

  /// Terraform names the GPUs of an a2 or a3, too, which the machine has built in.
  void drop_built_in(TerraformPool& found) {
    ImportedPool& pool = found.pool;
    const Machine* machine = catalog_.find_machine(Provider{found.provider}, pool.machine);
    if (machine == nullptr || machine->accelerator.empty()) return;
    pool.accelerator.clear();
    pool.per_node = 0;
  }

  void read_eks(const YamlNode* values, TerraformPool& found) {
    found.provider = "aws";
    found.service = "eks";
    ImportedPool& pool = found.pool;
    pool.name = file_.text(values, "node_group_name").value_or("");
    const std::vector<std::string> types = file_.texts(values, "instance_types");
    if (!types.empty()) pool.machine = types.front();
    if (types.size() > 1)
      out_.assumed.push_back(fmt::format("pool {} has machines of type {}, the first of {}",
                                         pool.name, types.front(), types.size()));
    pool.spot = file_.text(values, "capacity_type").value_or("") == "SPOT";
    const YamlNode* scaling = block(values, "scaling_config");
    pool.nodes.initial = count(scaling, "desired_size", 1);
    set_bounds(pool, count(scaling, "min_size", pool.nodes.initial),
               count(scaling, "max_size", pool.nodes.initial), values);
  }

  void read_aks(const YamlNode* values, TerraformPool& found) {
    found.provider = "azure";
    found.service = "aks";
    ImportedPool& pool = found.pool;
    pool.name = file_.text(values, "name").value_or("");
    pool.machine = file_.text(values, "vm_size").value_or("");
    pool.spot = file_.text(values, "priority").value_or("") == "Spot";
    const int nodes = count(values, "node_count", 1);
    pool.nodes = {nodes, nodes, nodes};
    const bool now = file_.flag(values, "auto_scaling_enabled");
    const bool before_4 = file_.flag(values, "enable_auto_scaling");
    if (now || before_4)
      set_bounds(pool, count(values, "min_count", nodes), count(values, "max_count", nodes),
                 values);
  }

  TerraformPool* pool_named(const std::string& name) {
    const auto found = std::ranges::find_if(
        found_, [&](const TerraformPool& pool) { return pool.pool.name == name; });
    if (found != found_.end()) return &*found;
    file_.mistake(file_.root()->at,
                  fmt::format("no node pool is named {}{}", name, did_you_mean(name, names_)),
                  fmt::format("node pools: {}", fmt::join(names_, ", ")));
    return nullptr;
  }

  void choose() {
    if (found_.empty()) return;
    const auto size = [](const TerraformPool& p) {
      return std::pair(p.accelerators, p.pool.nodes.max);
    };
    TerraformPool* workers = choice_.workers.empty() ? &*std::ranges::max_element(found_, {}, size)
                                                     : pool_named(choice_.workers);
    TerraformPool* servers = choice_.servers.empty() ? nullptr : pool_named(choice_.servers);
    if (workers == nullptr) return;
    if (servers != nullptr && (workers == servers || servers->provider != workers->provider)) {
      file_.mistake(servers->pool.at,
                    fmt::format("pool {} cannot hold the servers of pool {}", choice_.servers,
                                workers->pool.name),
                    "another pool of the same cloud: --servers NAME");
      return;
    }
    out_.provider = Provider{workers->provider};
    out_.service = Service{workers->service};
    take_place(*workers);
    out_.name = workers->pool.name;
    if (choice_.workers.empty() && found_.size() > 1)
      out_.assumed.push_back(fmt::format(
          "pool {} trains, as it has the most accelerators; --pool says another", out_.name));
    for (TerraformPool& pool : found_) {
      if (&pool == workers)
        take(pool, Role::worker);
      else if (&pool == servers)
        take(pool, Role::parameter_server);
      else
        out_.left_out.push_back(
            fmt::format("node pool {} ({})", pool.pool.name, pool.pool.machine));
    }
    out_.assumed.emplace_back("workload.strategy: all nodes of the pool, as many as it may have");
  }

  /// Of GKE from the pool; else the region of the plan's own provider, or of its AKS cluster.
  void take_place(const TerraformPool& pool) {
    if (!pool.place.empty()) {
      out_.region = google_region(pool.place);
      if (out_.region != pool.place) out_.zone = pool.place;
      return;
    }
    const YamlNode* configuration = file_.map(file_.root(), "configuration");
    const YamlNode* configs = file_.map(configuration, "provider_config");
    const YamlNode* own = file_.map(configs, pool.provider == "gcp"   ? "google"
                                             : pool.provider == "aws" ? "aws"
                                                                      : "azurerm");
    const YamlNode* region = file_.map(file_.map(own, "expressions"), "region");
    out_.region = file_.text(region, "constant_value").value_or("");
    if (!region_.empty()) out_.region = region_;
    if (out_.region.empty() && pool.provider == "azure") out_.region = azure_region();
    if (out_.region.empty())
      file_.mistake(pool.pool.at, fmt::format("no region of pool {} is in it", pool.pool.name),
                    "--region NAME");
  }

  /// "East US" is "eastus".
  std::string azure_region() const {
    std::string region;
    for (const char c : azure_location_)
      if (c != ' ') region += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    return region;
  }

  void take(TerraformPool& from, Role role) {
    ImportedPool pool = from.pool;
    pool.role = role;
    if (pool.nodes.max == 0) {
      pool.nodes = {1, 1, 1};
      out_.assumed.push_back(fmt::format("pool {} has one node; the file says none", pool.name));
    }
    out_.pools.push_back(std::move(pool));
  }

  ForeignFile file_;
  const PoolChoice& choice_;
  const std::string region_;
  const Catalog& catalog_;
  std::string azure_location_;
  std::vector<TerraformPool> found_;
  std::vector<std::string> names_;
  std::map<std::string, int> others_;  // resources by type
  Imported out_;
};

}  // namespace

Expected<Imported> import_terraform_plan(std::string_view json, const std::string& file,
                                         const PoolChoice& choice, const std::string& region,
                                         const Catalog& catalog) {
  auto root = parse_yaml(json, file);
  if (!root) return tl::unexpected(std::move(root.error()));
  return TerraformReader(std::move(*root), choice, region, catalog).read(file);
}

}  // namespace reckon
