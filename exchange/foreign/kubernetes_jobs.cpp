#include "exchange/foreign/kubernetes_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "exchange/foreign/pod_template.h"
#include "sim/catalog/machine_choice.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostPods = 100'000;
constexpr std::string_view kAssumedHost = "n1-standard-16";  // of ranks without accelerators

/// Pods of one kind.
struct Replicas {
  std::string name;
  Role role = Role::worker;
  int pods = 1;
  PodWish pod;
};

struct ReplicaRole {
  std::string_view word;
  Role role;
};
/// Of the operators' replica specs and of names that people give (JobSet, StatefulSet).
constexpr std::array kReplicaRoles{ReplicaRole{"chief", Role::chief},
                                   ReplicaRole{"master", Role::chief},
                                   ReplicaRole{"launcher", Role::chief},
                                   ReplicaRole{"ps", Role::parameter_server},
                                   ReplicaRole{"server", Role::parameter_server},
                                   ReplicaRole{"servers", Role::parameter_server},
                                   ReplicaRole{"parameter-server", Role::parameter_server},
                                   ReplicaRole{"evaluator", Role::evaluator}};

/// By the whole name, or what stands behind its last hyphen ("train-ps").
Role role_of(std::string name) {
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  for (const ReplicaRole& known : kReplicaRoles)
    if (name == known.word || name.ends_with(fmt::format("-{}", known.word))) return known.role;
  return Role::worker;
}

class ManifestReader {
 public:
  ManifestReader(const ClusterHints& hints, const Catalog& catalog)
      : hints_(hints), catalog_(catalog) {}

  Expected<Imported> read(std::vector<YamlNode> documents, const std::string& from) {
    out_.kind = "kubernetes";
    out_.from = from;
    for (YamlNode& document : documents) read_document(std::move(document));
    if (replicas_.empty() && mistakes_.empty())
      mistakes_.push_back(
          {Severity::error,
           {from, 0, 0},
           "no Job, JobSet, TFJob or PyTorchJob is in it",
           others_.empty() ? "" : fmt::format("it has: {}", fmt::join(others_, ", "))});
    if (mistakes_.empty()) place();
    if (mistakes_.empty()) make_pools();
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    out_.left_out.insert(out_.left_out.end(), others_.begin(), others_.end());
    return std::move(out_);
  }

 private:
  void read_document(YamlNode document) {
    ForeignFile file(std::move(document));
    const YamlNode* root = file.root();
    const std::string kind = file.text(root, "kind").value_or("");
    const YamlNode* metadata = file.map(root, "metadata");
    const std::string name = file.text(metadata, "name").value_or("");
    const YamlNode* spec = file.map(root, "spec");
    const std::size_t before = replicas_.size();
    if (kind == "Job") {
      read_job(file, spec, name, Role::worker, 1);
    } else if (kind == "JobSet") {
      read_job_set(file, spec);
    } else if (kind == "TFJob") {
      read_operator(file, file.map(spec, "tfReplicaSpecs"));
    } else if (kind == "PyTorchJob") {
      read_operator(file, file.map(spec, "pytorchReplicaSpecs"));
    } else if (kind == "StatefulSet" && role_of(name) == Role::parameter_server) {
      add(file, name, Role::parameter_server,
          int(file.whole(spec, "replicas", 0, kMostPods).value_or(1)), file.map(spec, "template"));
    } else {
      others_.push_back(
          fmt::format("{} {}", kind.empty() ? "a document without kind" : kind, name));
      return;
    }
    if (replicas_.size() == before && file.mistakes().empty())
      file.mistake(root->at, fmt::format("{} {} has no replicas", kind, name));
    if (kind != "StatefulSet" && replicas_.size() > before) refuse_second_job(file, name, before);
    file.ignore(root, "apiVersion");
    std::set<std::string> seen;
    for (const std::string& path : file.left_over())
      if (const std::string key = setting_of(path); seen.insert(key).second)
        out_.left_out.push_back(fmt::format("{} {}: {}", kind, name, key));
    mistakes_.insert(mistakes_.end(), file.mistakes().begin(), file.mistakes().end());
  }

  /// What a person would call it: of the pods "containers.volumeMounts" or
  /// "nodeSelector.team", else the first two keys.
  static std::string setting_of(std::string path) {
    constexpr std::string_view kPod = "template.spec.";
    const std::size_t pod = path.rfind(kPod);
    if (pod != std::string::npos) path = path.substr(pod + kPod.size());
    constexpr std::string_view kContainers = "containers.";
    if (path.starts_with("nodeSelector.")) return path;
    if (path.starts_with(kContainers)) {
      const std::string below = path.substr(path.find('.', kContainers.size()) + 1);
      return std::string(kContainers) + below.substr(0, below.find('.'));
    }
    const std::size_t first = path.find('.');
    if (pod != std::string::npos || first == std::string::npos) return path.substr(0, first);
    return path.substr(0, path.find('.', first + 1));
  }

  void read_job(ForeignFile& file, const YamlNode* spec, const std::string& name, Role role,
                int times) {
    const auto parallel = file.whole(spec, "parallelism", 0, kMostPods);
    const auto completions = file.whole(spec, "completions", 0, kMostPods);
    file.text(spec, "completionMode");
    const std::int64_t pods = parallel.value_or(completions.value_or(1)) * times;
    if (pods > kMostPods)
      file.mistake(spec->at,
                   fmt::format("{} has {} pods; at most {} are read", name, pods, kMostPods));
    else
      add(file, name, role, int(pods), file.map(spec, "template"));
  }

  void read_job_set(ForeignFile& file, const YamlNode* spec) {
    for (const YamlNode* item : file.list(spec, "replicatedJobs")) {
      const std::string name = file.text(item, "name").value_or("workers");
      const int times = int(file.whole(item, "replicas", 0, kMostPods).value_or(1));
      read_job(file, file.map(file.map(item, "template"), "spec"), name, role_of(name), times);
    }
  }

  void read_operator(ForeignFile& file, const YamlNode* specs) {
    if (specs == nullptr) return;
    for (const YamlNode::Entry& entry : specs->entries) {
      const YamlNode* spec = file.map(specs, entry.key);
      add(file, entry.key, role_of(entry.key),
          int(file.whole(spec, "replicas", 0, kMostPods).value_or(1)), file.map(spec, "template"));
    }
  }

  void add(ForeignFile& file, const std::string& name, Role role, int pods,
           const YamlNode* pod_template) {
    if (pods == 0) return;
    Replicas replicas{name, role, pods, read_pod_template(file, pod_template, catalog_)};
    if (!replicas.pod.unknown_accelerator.empty())
      file.mistake(replicas.pod.at,
                   fmt::format("the accelerator '{}' is not in the catalog",
                               replicas.pod.unknown_accelerator),
                   "say what it is with --accelerator, or describe it in a catalog of your own");
    replicas_.push_back(std::move(replicas));
  }

  /// Several Jobs are one where they are its ranks: the same image.
  void refuse_second_job(ForeignFile& file, const std::string& name, std::size_t before) {
    if (out_.name.empty()) {
      out_.name = name;
      job_image_ = replicas_[before].pod.container.image;
    } else if (replicas_[before].pod.container.image != job_image_) {
      file.mistake(file.root()->at,
                   fmt::format("{} and {} are two jobs, with images of their own", out_.name, name),
                   "import a file with the documents of one");
    }
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
    if (!provider)
      out_.assumed.emplace_back(
          "cluster.provider: gcp, as no label tells; --provider says another");
    out_.provider = provider.value_or(Provider::gcp);
    if (!hints_.region.empty()) out_.region = hints_.region;
    if (out_.region.empty() && !out_.zone.empty()) out_.region = region_of_zone();
  }

  /// By the machines that the ranks name, or the user does.
  std::optional<Provider> provider_by_machine() const {
    for (const Provider provider : {Provider::gcp, Provider::aws, Provider::azure}) {
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
      if (r.role == Role::evaluator) {
        out_.assumed.emplace_back("evaluators: their time and cost are not simulated");
        continue;
      }
      ImportedPool pool = pool_of(r);
      if (mistakes_.empty()) add_pool(std::move(pool));
    }
    if (!mistakes_.empty()) return;
    const auto trains =
        std::ranges::find_if(replicas_, [](const Replicas& r) { return r.role == Role::worker; });
    const Replicas& shown = trains == replicas_.end() ? replicas_.front() : *trains;
    if (!shown.pod.container.image.empty()) out_.container = shown.pod.container;
    for (const Replicas& r : replicas_)
      if (r.role != Role::evaluator && r.pod.container.command != shown.pod.container.command)
        out_.left_out.push_back(fmt::format("{}: its own command", r.name));
    out_.strategy = strategy(shown);
    if (!shown.pod.referenced.empty())
      out_.left_out.push_back(fmt::format("variables with values from the cluster: {}",
                                          fmt::join(shown.pod.referenced, ", ")));
    if (out_.region.empty() && out_.provider != Provider::on_premises) assume_region();
    out_.assumed.emplace_back("workload.strategy: what follows from the roles of the ranks");
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

  ImportedPool pool_of(const Replicas& r) {
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
    const auto machines = machines_with(catalog_, out_.provider, accelerator, per_node);
    if (machines.empty()) {
      mistake(r,
              fmt::format("no machine of {} carries {} x {}", to_text(out_.provider), r.pod.devices,
                          accelerator.name),
              "name the machine: --machine NAME");
      return nullptr;
    }
    const Machine* best =
        *std::ranges::min_element(machines, {}, [](const Machine* m) { return m->vcpus; });
    pool.note = fmt::format("assumed: carries {} x {}", per_node, accelerator.name);
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
      const Machine* machine = host_of(out_.provider);
      pool.machine = machine == nullptr ? "" : machine->name;
      pool.note = "assumed; --machine says another";
    }
    pool.nodes = {r.pods, r.pods, r.pods};
  }

  /// A machine without accelerators of 16 vCPUs.
  const Machine* host_of(Provider provider) const {
    if (const Machine* machine = catalog_.find_machine(provider, kAssumedHost)) return machine;
    constexpr int kVcpus = 16;
    for (const Machine& m : catalog_.machines)
      if (m.provider == provider && m.accelerator.empty() && m.services.empty() &&
          m.vcpus == kVcpus)
        return &m;
    return nullptr;
  }

  /// The first region that offers what trains.
  void assume_region() {
    for (const ImportedPool& pool : out_.pools)
      for (const std::string& item : {pool.accelerator, pool.slice, pool.machine}) {
        if (item.empty() || !out_.region.empty()) continue;
        const auto places = catalog_.locations_of(out_.provider, item);
        if (!places.empty()) out_.region = places.front()->region;
      }
    if (out_.region.empty()) out_.region = out_.provider == Provider::gcp ? "us-central1" : "";
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
      (r.role == Role::parameter_server ? servers : ranks) +=
          r.role == Role::evaluator ? 0 : r.pods;
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
  std::string job_image_;
  Diagnostics mistakes_;
  Imported out_;
};

/// What `kubectl get -o yaml` prints of several: {kind: List, items: [...]}.
std::vector<YamlNode> unwrapped(std::vector<YamlNode> documents) {
  std::vector<YamlNode> out;
  for (YamlNode& document : documents) {
    const auto* kind = document.find("kind");
    const auto* items = document.find("items");
    if (kind == nullptr || items == nullptr || !kind->value.text.ends_with("List"))
      out.push_back(std::move(document));
    else
      for (const YamlNode::Entry& item : items->value.entries) out.push_back(item.value);
  }
  return out;
}

}  // namespace

Expected<Imported> import_kubernetes_job(std::string_view text, const std::string& file,
                                         const ClusterHints& hints, const Catalog& catalog) {
  auto documents = parse_documents(text, file);
  if (!documents) return tl::unexpected(std::move(documents.error()));
  return ManifestReader(hints, catalog).read(unwrapped(std::move(*documents)), file);
}

}  // namespace reckon
