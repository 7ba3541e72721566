#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "exchange/foreign/ai_platform/ai_platform.h"
#include "exchange/foreign/ai_platform/fields.h"
#include "exchange/gcloud.h"
#include "exchange/yaml_text.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"

// A scenario of AI Platform as the Job resource that gcloud submits.
namespace reckon {
namespace {

using ai_platform::kRoles;
using ai_platform::RoleFields;
using OrderedJson = nlohmann::ordered_json;

/// Fields that are numbers or truths in the resource; all others are texts ("2.1" is a version).
bool is_typed(std::string_view key) {
  static constexpr std::array<std::string_view, 11> kTyped{
      "maxTrials",       "maxParallelTrials",        "maxFailedTrials",   "minValue",
      "maxValue",        "discreteValues",           "bootDiskSizeGb",    "priority",
      "enableWebAccess", "enableTrialEarlyStopping", "useChiefInTfConfig"};
  return std::ranges::find(kTyped, key) != kTyped.end();
}

/// Maps whose keys are the user's.
bool is_free(std::string_view key) { return key == "labels" || key == "gcloud"; }

OrderedJson json_of(const YamlNode& node, std::string_view key, bool typed = true) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return nullptr;
    case YamlNode::Kind::scalar:
      if (!typed || !is_typed(key)) return node.text;
      if (node.text == "true" || node.text == "false") return node.text == "true";
      if (const auto whole = parse_integer(node.text)) return *whole;
      if (const auto number = parse_number(node.text)) return *number;
      return node.text;
    case YamlNode::Kind::list:
    case YamlNode::Kind::map:
      break;
  }
  const bool map = node.kind == YamlNode::Kind::map;
  OrderedJson out = map ? OrderedJson::object() : OrderedJson::array();
  for (const YamlNode::Entry& entry : node.entries) {
    if (map)
      out[entry.key] = json_of(entry.value, entry.key, typed && !is_free(entry.key));
    else
      out.push_back(json_of(entry.value, key, typed));
  }
  return out;
}

/// "NVIDIA_TESLA_T4".
std::string constant_of(const Accelerator& accelerator) {
  std::string name = cloud_name_of(accelerator);
  for (char& c : name) c = c == '-' ? '_' : char(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

class JobWriter {
 public:
  JobWriter(const ScenarioFile& file, const Catalog& catalog) : file_(file), catalog_(catalog) {}

  Expected<std::string> write(const YamlNode* kept) {
    const ClusterSpec& cluster = file_.scenario.cluster;
    if (cluster.service != ai_platform::service()) {
      mistake("cluster.service", "only a scenario of AI Platform becomes one of its jobs",
              "cluster: {provider: gcp, service: ai_platform, ...}");
      return tl::unexpected(std::move(mistakes_));
    }
    OrderedJson job = kept == nullptr ? OrderedJson::object() : json_of(*kept, "");
    const OrderedJson given =
        job.contains("trainingInput") ? job["trainingInput"] : OrderedJson::object();
    if (!job.contains("jobId") || !job["jobId"].is_string()) job["jobId"] = job_id();
    if (const auto& id = job["jobId"].get_ref<const std::string&>(); id.starts_with('-'))
      mistake(fmt::format("cluster.{}.jobId", ai_platform::kKept),
              fmt::format("'{}' is an option to gcloud, not a jobId", id),
              "letters, digits and underscores, a letter first");
    has_master_ = given.contains("masterType");
    const std::string comment = command_of(job);
    job.erase("gcloud");
    input_ = OrderedJson::object();
    input_["scaleTier"] =
        cluster.scale_tier.empty() ? std::string(ai_platform::kCustom) : cluster.scale_tier;
    if (!cluster.pools.empty()) add_pools(cluster);
    input_["region"] = cluster.region;
    OrderedJson merged = input_;  // its order; what the cluster says wins
    merged.merge_patch(given);
    merged.merge_patch(input_);
    job["trainingInput"] = merged;
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    return comment + yaml_text(job);
  }

 private:
  void mistake(const std::string& path, std::string what, std::string hint) {
    mistakes_.push_back(
        {Severity::error, file_.places.find(path), std::move(what), std::move(hint)});
  }

  /// Letters, digits and underscores, a letter first.
  std::string job_id() const {
    std::string id;
    for (const char c : file_.scenario.name)
      id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (id.empty() || std::isalpha(static_cast<unsigned char>(id.front())) == 0) id = "job_" + id;
    return id;
  }

  /// How the file is submitted, as a comment of one line.
  static std::string command_of(const OrderedJson& job) {
    std::string out = fmt::format("# gcloud ai-platform jobs submit training {} --config=THIS_FILE",
                                  shell_word(job["jobId"].get<std::string>()));
    if (job.contains("gcloud") && job["gcloud"].is_object())
      for (const auto& [flag, value] : job["gcloud"].items())
        if (value.is_string())
          out += " " + shell_word(value == "true"
                                      ? "--" + flag
                                      : fmt::format("--{}={}", flag, value.get<std::string>()));
    return out + "\n";
  }

  void add_pools(const ClusterSpec& cluster) {
    const bool has_chief =
        has_master_ || std::ranges::any_of(cluster.pools, [](const PoolSpec& pool) {
          return pool.role == Role::chief;
        });
    for (const RoleFields& role : kRoles) {
      const PoolSpec* found = nullptr;
      for (const PoolSpec& pool : cluster.pools) {
        if (pool.role.value_or(Role::worker) != role.role) continue;
        if (found != nullptr)
          mistake("cluster.pools." + pool.name,
                  fmt::format("AI Platform has one type of machine for each role, and {} is a "
                              "second pool of it",
                              pool.name),
                  "put all of a role into one pool");
        found = &pool;
      }
      if (found == nullptr) continue;
      int nodes = nodes_of(*found);
      if (role.role == Role::worker && !has_chief) {  // the first worker is the master
        add_role(kRoles.front(), *found, 1);
        --nodes;
      }
      if (nodes > 0) add_role(role, *found, nodes);
    }
  }

  int nodes_of(const PoolSpec& pool) {
    const std::string path = "cluster.pools." + pool.name;
    if (pool.pricing != CapacityType::on_demand)
      mistake(path + ".pricing", "AI Platform sells on-demand machines only", "pricing: on_demand");
    if (pool.autoscaling || pool.nodes.min != pool.nodes.max)
      mistake(path + ".nodes", "AI Platform starts as many machines as the job says, once",
              "give one number: nodes: 4");
    return pool.nodes.max;
  }

  void add_role(const RoleFields& role, const PoolSpec& pool, int nodes) {
    const std::string path = "cluster.pools." + pool.name;
    if (role.role != Role::chief) input_[role.count()] = nodes;
    if (pool.tpu) {
      const TpuSlice* slice = catalog_.find_slice(pool.tpu->slice);
      const Accelerator* chip =
          slice == nullptr ? nullptr : catalog_.find_accelerator(slice->accelerator);
      if (chip == nullptr) return;  // the plan has said so
      input_[role.type()] = ai_platform::kTpuType;
      input_[role.config()]["acceleratorConfig"] = {
          {"count", slice->chips * chip->cores_per_device},
          {"type", constant_of(*chip) + (slice->hosts > 1 ? "_POD" : "")}};
      return;
    }
    const auto* machine = std::get_if<MachineByName>(&pool.machine);
    if (machine == nullptr) {
      mistake(path + ".machine", "a machine of AI Platform has a name",
              "example: machine: n1-highcpu-16");
      return;
    }
    input_[role.type()] = machine->name;
    if (!pool.accelerator) return;
    if (const Accelerator* found = catalog_.find_accelerator(pool.accelerator->type))
      input_[role.config()]["acceleratorConfig"] = {{"count", pool.accelerator->count},
                                                    {"type", constant_of(*found)}};
  }

  const ScenarioFile& file_;
  const Catalog& catalog_;
  OrderedJson input_;
  bool has_master_ = false;  // among what is kept: one that coordinates
  Diagnostics mistakes_;
};

}  // namespace

Expected<std::string> ai_platform_config(const ScenarioFile& file, const YamlNode& document,
                                         const Catalog& catalog) {
  const YamlNode::Entry* cluster = document.find("cluster");
  const YamlNode::Entry* kept =
      cluster == nullptr ? nullptr : cluster->value.find(ai_platform::kKept);
  const bool map = kept != nullptr && kept->value.kind == YamlNode::Kind::map;
  return JobWriter(file, catalog).write(map ? &kept->value : nullptr);
}

}  // namespace reckon
