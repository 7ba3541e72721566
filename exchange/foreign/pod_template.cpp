#include "exchange/foreign/pod_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/kubernetes_quantity.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::int64_t kMostDevicesOfPod = 1024;

class TemplateReader {
 public:
  TemplateReader(ForeignFile& file, const Catalog& catalog) : file_(file), catalog_(catalog) {}

  PodWish read(const YamlNode* pod_template) {
    const YamlNode* spec = file_.map(pod_template, "spec");
    if (spec == nullptr) {
      file_.mistake(pod_template == nullptr ? file_.root()->at : pod_template->at,
                    "the template of the pods has no spec");
      return wish_;
    }
    wish_.at = spec->at;
    read_containers(spec);
    collect_labels(spec);
    read_labels();
    return wish_;
  }

 private:
  std::string term(std::string_view service, const std::string& key) const {
    const ClusterNames* names = catalog_.find_cluster_names(service);
    const ClusterNames::Name* name = names == nullptr ? nullptr : names->find(key);
    return name == nullptr ? "" : name->text;
  }

  void read_containers(const YamlNode* spec) {
    const auto containers = file_.list(spec, "containers");
    if (containers.empty()) {
      file_.mistake(spec->at, "the pods have no containers");
      return;
    }
    const YamlNode* container = nullptr;
    for (const YamlNode* candidate : containers) {
      const auto [devices, tpu] = ask_of(candidate);
      if (devices > 0 && container == nullptr) container = candidate;
      wish_.devices += devices;
      wish_.tpu = wish_.tpu || tpu;
      wish_.cores += amount(candidate, "cpu");
      wish_.memory_bytes += amount(candidate, "memory");
    }
    if (container == nullptr) container = containers.front();
    ImportedContainer& out = wish_.container;
    out.image = file_.text(container, "image").value_or("");
    out.command = file_.texts(container, "command");
    const auto arguments = file_.texts(container, "args");
    out.command.insert(out.command.end(), arguments.begin(), arguments.end());
    for (const YamlNode* variable : file_.list(container, "env")) {
      const auto name = file_.text(variable, "name");
      if (name && variable->has("valueFrom")) {
        wish_.referenced.push_back(*name);
        file_.ignore(variable);
      } else if (name) {
        out.environment.emplace(*name, file_.text(variable, "value").value_or(""));
      }
    }
  }

  /// Of a node a container is kept what it requests; a limit alone is a request too.
  double amount(const YamlNode* container, const char* what) {
    const YamlNode* resources = file_.map(container, "resources");
    const auto limit = file_.text(file_.map(resources, "limits"), what);
    const auto request = file_.text(file_.map(resources, "requests"), what);
    const auto& given = request ? request : limit;
    if (!given) return 0;
    const auto found = kubernetes_quantity(*given);
    if (!found)
      file_.mistake(file_.place(resources, request ? "requests" : "limits"),
                    fmt::format("'{}' is no amount of {}", *given, what), "example: 500m, 4, 16Gi");
    return found.value_or(0);
  }

  /// How many devices a container asks for, and whether they are TPU chips.
  std::pair<int, bool> ask_of(const YamlNode* container) {
    const YamlNode* resources = file_.map(container, "resources");
    for (const char* which : {"limits", "requests"}) {
      const YamlNode* amounts = file_.map(resources, which);
      for (const char* key :
           {"resources.gpu", "resources.amd_gpu", "resources.gaudi", "resources.neuron"})
        if (const auto n = devices(amounts, term("kubernetes", key)); n > 0) return {n, false};
      for (const ServiceRules& service : catalog_.services)
        if (const auto tpus = tpus_of(amounts, service.id)) return {*tpus, true};
      refuse_other_devices(amounts);
    }
    return {0, false};
  }

  /// TPU chips by what a service calls them: whole ones, or the cores of earlier kinds.
  std::optional<int> tpus_of(const YamlNode* amounts, const Service& service) {
    if (const auto n = devices(amounts, term(service.name, "resources.tpu")); n > 0) return n;
    for (const char* key : {"resources.tpu_v2_cores", "resources.tpu_v3_cores"})
      if (const auto n = devices(amounts, term(service.name, key)); n > 0) {
        wish_.node.accelerator =
            std::string_view(key).find("v2") != std::string_view::npos ? "TPU-v2" : "TPU-v3";
        if (const ProviderRules* provider = catalog_.provider_of(service))
          wish_.node.provider = provider->id;
        return std::max(1, n / 2);  // two cores a chip
      }
    return std::nullopt;
  }

  /// "nvidia.com/mig-1g.5gb": a device that no accelerator of the catalog is.
  void refuse_other_devices(const YamlNode* amounts) {
    if (amounts == nullptr) return;
    for (const YamlNode::Entry& entry : amounts->entries) {
      const bool device = entry.key.find('/') != std::string::npos;
      const bool known = entry.key == term("kubernetes", "resources.gpu") ||
                         std::ranges::any_of(catalog_.services, [&](const ServiceRules& service) {
                           return entry.key == term(service.id.name, "resources.efa");
                         });
      if (device && !known)
        file_.mistake(
            entry.key_at,
            fmt::format("pods ask for {}, which is no whole accelerator that we know", entry.key),
            "import them as whole GPUs or TPU chips");
    }
  }

  int devices(const YamlNode* amounts, const std::string& resource) {
    return int(file_.whole(amounts, resource, 0, kMostDevicesOfPod).value_or(0));
  }

  /// Of nodeSelector, and of what a required affinity asks for with one value.
  void collect_labels(const YamlNode* spec) {
    if (const YamlNode* selector = file_.map(spec, "nodeSelector"))
      for (const YamlNode::Entry& entry : selector->entries)
        labels_.emplace(entry.key, &entry.value);
    const YamlNode* affinity = file_.map(file_.map(spec, "affinity"), "nodeAffinity");
    const YamlNode* required =
        file_.map(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
    for (const YamlNode* term : file_.list(required, "nodeSelectorTerms"))
      for (const YamlNode* expression : file_.list(term, "matchExpressions")) {
        const auto* key = expression->find("key");
        const auto* values = expression->find("values");
        const auto* how = expression->find("operator");
        if (key == nullptr || values == nullptr || how == nullptr || how->value.text != "In" ||
            values->value.entries.size() != 1)
          continue;
        labels_.emplace(key->value.text, &values->value.entries.front().value);
        expressions_.emplace(key->value.text, expression);
      }
  }

  void read_labels() {
    NodeWish& node = wish_.node;
    node.machine = taken("kubernetes", "labels.machine");
    node.zone = taken("kubernetes", "labels.zone");
    node.region = taken("kubernetes", "labels.region");
    for (const ServiceRules& rules : catalog_.services) {
      const Service& service = rules.id;
      const std::string gpu = taken(service.name, "labels.accelerator");
      const std::string tpu = taken(service.name, "labels.tpu");
      const std::string pool = taken(service.name, "labels.pool");
      const std::string topology = taken(service.name, "labels.tpu_topology");
      const std::string count = taken(service.name, "labels.accelerator_count");
      bool spot = false;
      for (const char* key : {"labels.spot", "labels.preemptible", "labels.capacity",
                              "labels.priority", "labels.karpenter_capacity"}) {
        const std::string value = taken(service.name, key);
        spot = spot || value == "true" || value == "spot" || value == "SPOT";
      }
      const std::string value = gpu.empty() ? tpu : gpu;
      if (value.empty() && pool.empty() && topology.empty() && count.empty() && !spot) continue;
      if (const ProviderRules* provider = catalog_.provider_of(service))
        node.provider = provider->id;
      node.spot = spot;
      if (const auto n = parse_integer(count); n && *n > 0 && *n <= kMostDevicesOfPod)
        node.per_node = int(*n);
      if (!pool.empty()) node.pool = pool;
      if (!topology.empty()) node.topology = topology;
      if (!value.empty()) name_accelerator(service.name, value);
    }
  }

  /// The value of the label; "" where it is not selected by.
  std::string taken(std::string_view service, const std::string& key) {
    const auto found = labels_.find(term(service, key));
    if (found == labels_.end()) return "";
    file_.ignore(found->second);
    if (const auto expression = expressions_.find(found->first); expression != expressions_.end())
      file_.ignore(expression->second);
    return found->second->text;
  }

  void name_accelerator(std::string_view service, const std::string& value) {
    constexpr std::string_view kPrefix = "accelerators.";
    const ClusterNames* names = catalog_.find_cluster_names(service);
    for (const auto& [key, name] : names->names)
      if (key.starts_with(kPrefix) && name.text == value) {
        wish_.node.accelerator = key.substr(kPrefix.size());
        return;
      }
    if (const Accelerator* found = catalog_.find_accelerator(value))
      wish_.node.accelerator = found->name;
    else if (value != term(service, "label_values.accelerator"))
      wish_.unknown_accelerator = value;
  }

  ForeignFile& file_;
  const Catalog& catalog_;
  std::map<std::string, const YamlNode*> labels_, expressions_;
  PodWish wish_;
};

}  // namespace

PodWish read_pod_template(ForeignFile& file, const YamlNode* pod_template, const Catalog& catalog) {
  return TemplateReader(file, catalog).read(pod_template);
}

}  // namespace reckon
