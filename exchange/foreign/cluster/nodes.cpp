#include "exchange/foreign/cluster/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>

#include "exchange/foreign/cluster/view.h"
#include "sim/base/kubernetes_quantity.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

double amount_at(const Json& node, const std::string& resource) {
  for (const char* of : {"/status/allocatable", "/status/capacity"}) {
    const Json::json_pointer at(of);
    if (!node.contains(at)) continue;
    const auto found = node.at(at).find(resource);
    if (found == node.at(at).end()) continue;
    const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
    return kubernetes_quantity(text).value_or(0);
  }
  return 0;
}
double capacity_at(const Json& node, const char* resource) {
  const std::string text = text_at(node, (std::string("/status/capacity/") + resource).c_str());
  return kubernetes_quantity(text).value_or(amount_at(node, resource));
}

class NodeReader {
 public:
  NodeReader(const Json& node, const Catalog& catalog) : json_(node), catalog_(catalog) {
    const Json::json_pointer labels("/metadata/labels");
    if (node.contains(labels) && node.at(labels).is_object()) labels_ = node.at(labels);
  }

  SeenNode read() {
    node_.name = text_at(json_, "/metadata/name");
    node_.machine = label("kubernetes", "labels.machine");
    node_.region = label("kubernetes", "labels.region");
    node_.zone = label("kubernetes", "labels.zone");
    node_.cores = capacity_at(json_, "cpu");
    node_.memory = capacity_at(json_, "memory");
    const Json::json_pointer cordoned("/spec/unschedulable");
    node_.cordoned = json_.contains(cordoned) && json_.at(cordoned) == true;
    read_ready();
    read_taints();
    read_devices();
    const std::string id = text_at(json_, "/spec/providerID");
    for (const ProviderRules& provider : catalog_.providers)
      if (!provider.node_id.empty() && id.starts_with(provider.node_id + "://"))
        node_.provider = provider.id;
    for (const ServiceRules& service : catalog_.services)
      if (service.kubernetes) read_labels_of(service.id);
    name_product();
    return std::move(node_);
  }

 private:
  std::string label(std::string_view service, const char* key) const {
    const ClusterNames* names = catalog_.find_cluster_names(service);
    const ClusterNames::Name* name = names == nullptr ? nullptr : names->find(key);
    return name == nullptr ? "" : labels_.value(name->text, "");
  }

  void read_ready() {
    const Json::json_pointer conditions("/status/conditions");
    if (!json_.contains(conditions)) return;
    for (const Json& c : json_.at(conditions))
      if (text_at(c, "/type") == "Ready") node_.ready = text_at(c, "/status") == "True";
  }

  /// As tolerations of `export` are written: by key, whatever the value.
  bool is_tolerated(std::string_view key) const {
    for (const ClusterNames& names : catalog_.cluster_names)
      for (const char* taint : {"taints.gpu", "taints.tpu", "taints.spot"}) {
        const ClusterNames::Name* name = names.find(taint);
        if (name != nullptr && key == name->text.substr(0, name->text.find_first_of("=:")))
          return true;
      }
    return false;
  }

  void read_taints() {
    // Kubernetes' own, of the moment: not-ready, unschedulable, memory-pressure.
    constexpr std::string_view kOfTheMoment = "node.kubernetes.io/";
    const Json::json_pointer taints("/spec/taints");
    if (!json_.contains(taints) || !json_.at(taints).is_array()) return;
    for (const Json& taint : json_.at(taints)) {
      const std::string key = text_at(taint, "/key"), effect = text_at(taint, "/effect");
      const bool keeps_away = effect == "NoSchedule" || effect == "NoExecute";
      if (keeps_away && !key.starts_with(kOfTheMoment) && !is_tolerated(key))
        node_.taints.push_back(key);
    }
  }

  void read_devices() {
    const auto take = [&](std::string_view service, const char* key) {
      const ClusterNames* names = catalog_.find_cluster_names(service);
      const ClusterNames::Name* name = names == nullptr ? nullptr : names->find(key);
      if (name == nullptr || node_.devices > 0) return;
      constexpr double kMost = 1024;
      node_.devices = int(std::min(amount_at(json_, name->text), kMost));
      if (node_.devices > 0) node_.resource = name->text;
    };
    for (const char* key :
         {"resources.gpu", "resources.amd_gpu", "resources.gaudi", "resources.neuron"})
      take("kubernetes", key);
    for (const ServiceRules& service : catalog_.services) take(service.id.name, "resources.tpu");
  }

  void read_labels_of(const Service& service) {
    if (const std::string pool = label(service.name, "labels.pool"); !pool.empty()) {
      node_.pool = pool;
      const ProviderRules* provider = catalog_.provider_of(service);
      if (!node_.provider && provider != nullptr) node_.provider = provider->id;
    }
    for (const char* key : {"labels.spot", "labels.preemptible", "labels.capacity",
                            "labels.priority", "labels.karpenter_capacity"}) {
      const std::string value = label(service.name, key);
      node_.spot = node_.spot || value == "true" || value == "spot" || value == "SPOT";
    }
    for (const char* key : {"labels.accelerator", "labels.tpu"})
      if (const std::string value = label(service.name, key); !value.empty())
        name_accelerator(service.name, value);
  }

  void name_accelerator(std::string_view service, const std::string& value) {
    constexpr std::string_view kPrefix = "accelerators.";
    node_.product = value;
    const ClusterNames* names = catalog_.find_cluster_names(service);
    for (const auto& [key, name] : names->names)
      if (key.starts_with(kPrefix) && name.text == value)
        node_.accelerator = key.substr(kPrefix.size());
    if (const Accelerator* found = catalog_.find_accelerator(value);
        node_.accelerator.empty() && found != nullptr)
      node_.accelerator = found->name;
  }

  void name_product() {
    const std::string product = labels_.value("nvidia.com/gpu.product", "");
    if (product.empty() || !node_.accelerator.empty()) return;
    node_.product = product;
    if (const Accelerator* found = accelerator_of_product(product, catalog_))
      node_.accelerator = found->name;
  }

  const Json& json_;
  const Catalog& catalog_;
  Json labels_ = Json::object();
  SeenNode node_;
};

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream in(name);
  for (std::string part; std::getline(in, part, '-');) {
    for (char& c : part) c = char(std::toupper(static_cast<unsigned char>(c)));
    parts.push_back(part);
  }
  return parts;
}

bool is_memory(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string text_at(const Json& object, const char* pointer) {
  const Json::json_pointer at(pointer);
  const bool there = object.contains(at) && object.at(at).is_string();
  return there ? object.at(at).get<std::string>() : "";
}

const Accelerator* accelerator_of_product(const std::string& product, const Catalog& catalog) {
  std::vector<std::string> said = parts_of(product);
  for (std::string& part : said)
    if (part.ends_with("GB")) part.resize(part.size() - 2);
  const auto says = [&](const std::string& part) {
    return std::ranges::find(said, part) != said.end();
  };
  const bool tells_memory = std::ranges::any_of(said, is_memory);
  const Accelerator* best = nullptr;
  int best_score = -1;
  for (const Accelerator& candidate : catalog.accelerators) {
    const std::vector<std::string> parts = parts_of(candidate.name);
    if (parts.empty() || !says(parts.front())) continue;
    int score = 0;
    bool fits = true;
    for (std::size_t k = 1; k < parts.size(); ++k) {
      const bool memory = is_memory(parts[k]), sxm = parts[k].starts_with("SXM");
      const bool may_be_left_out = (memory && !tells_memory) || sxm || parts[k] == "PCIE";
      fits = fits && (may_be_left_out || says(parts[k]));
      score += says(parts[k]) ? 4 : 0;
      score += sxm && std::ranges::none_of(said, [](const std::string& p) { return p == "PCIE"; });
    }
    if (fits && score > best_score) {
      best = &candidate;
      best_score = score;
    }
  }
  return best;
}

SeenNode seen_node(const Json& node, const Catalog& catalog) {
  return NodeReader(node, catalog).read();
}

std::vector<ScaledGroup> scaled_groups(const std::string& status) {
  static const std::regex kName(R"(^[\s-]*[Nn]ame:\s*(\S+))");
  static const std::regex kNumber(R"((minSize|maxSize|cloudProviderTarget)\s*[=:]\s*(\d{1,6}))");
  std::vector<ScaledGroup> groups;
  std::istringstream in(status);
  for (std::string line; std::getline(in, line);) {
    constexpr std::size_t kLongest = 2000;
    line.resize(std::min(line.size(), kLongest));
    std::smatch match;
    if (std::regex_search(line, match, kName)) {
      const std::string name = match[1];
      groups.push_back({.name = name.substr(name.rfind('/') + 1)});
    }
    if (groups.empty()) continue;  // of the cluster as a whole
    ScaledGroup& group = groups.back();
    group.backs_off = group.backs_off || line.find("Backoff") != std::string::npos;
    for (auto at = std::sregex_iterator(line.begin(), line.end(), kNumber);
         at != std::sregex_iterator(); ++at) {
      const int value = std::stoi((*at)[2]);
      const std::string what = (*at)[1];
      (what == "minSize" ? group.min : what == "maxSize" ? group.max : group.target) = value;
    }
  }
  return groups;
}

std::size_t fit_of(const ScaledGroup& group, const SeenNode& node) {
  constexpr std::string_view kGroup = "-grp";
  std::string name = group.name;
  if (name.ends_with(kGroup)) {
    name.resize(name.size() - kGroup.size() + 1);
    return node.name.starts_with(name) ? name.size() : 0;
  }
  if (node.pool.empty()) return 0;
  const bool holds = name == node.pool || name.find('-' + node.pool + '-') != std::string::npos;
  return holds ? node.pool.size() : 0;
}

}  // namespace reckon
