#include "exchange/foreign/ai_platform/ai_platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "exchange/foreign/ai_platform/fields.h"
#include "exchange/foreign/foreign_file.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using ai_platform::kCustom;
using ai_platform::kRoles;
using ai_platform::kTpuType;
using ai_platform::RoleFields;

constexpr std::int64_t kMostReplicas = 10'000, kMostDevicesOfReplica = 4096;
constexpr std::string_view kAssumedRegion = "us-central1";

/// Fields of TrainingInput besides those of roles.
constexpr std::array<std::string_view, 17> kFields{"scaleTier",
                                                   "region",
                                                   "packageUris",
                                                   "pythonModule",
                                                   "args",
                                                   "hyperparameters",
                                                   "jobDir",
                                                   "runtimeVersion",
                                                   "pythonVersion",
                                                   "encryptionConfig",
                                                   "scheduling",
                                                   "network",
                                                   "serviceAccount",
                                                   "useChiefInTfConfig",
                                                   "enableWebAccess",
                                                   "etag",
                                                   "labels"};

std::vector<std::string> field_names() {
  std::vector<std::string> names(kFields.begin(), kFields.end());
  for (const RoleFields& role : kRoles) {
    names.push_back(role.type());
    names.push_back(role.config());
    if (role.role != Role::chief) names.push_back(role.count());
  }
  return names;
}

/// "a: 1" below `indent` blanks.
std::string indented(const std::string& text, std::size_t indent) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    out += std::string(indent, ' ') + text.substr(at, end - at + 1);
    at = end + 1;
  }
  return out;
}

class JobReader {
 public:
  JobReader(YamlNode job, const Catalog& catalog) : file_(std::move(job)), catalog_(catalog) {}

  Expected<Imported> read(const std::string& from) {
    out_.kind = "ai-platform";
    out_.from = from;
    out_.provider = ai_platform::provider();
    out_.service = ai_platform::service();
    input_ = file_.map(file_.root(), "trainingInput");
    if (input_ == nullptr) {
      const bool prediction = file_.root()->has("predictionInput");
      file_.mistake(file_.root()->at,
                    prediction ? "this is a job of batch prediction, not of training"
                               : "the job has no trainingInput",
                    "example: trainingInput: {scaleTier: BASIC_GPU}");
      return tl::unexpected(std::move(file_.mistakes()));
    }
    if (const auto id = file_.text(file_.root(), "jobId")) out_.name = *id;
    file_.keep(file_.root(), "jobId");
    check_words_of_gcloud();
    read_region();
    read_machines();
    read_limit();
    if (!file_.mistakes().empty()) return tl::unexpected(std::move(file_.mistakes()));
    keep_the_rest();
    return std::move(out_);
  }

 private:
  /// Flags with one text each, as the reader of the command line leaves them.
  void check_words_of_gcloud() {
    const YamlNode* words = file_.map(file_.root(), "gcloud");
    if (words == nullptr) return;
    for (const YamlNode::Entry& entry : words->entries) file_.text(words, entry.key);
    file_.keep(file_.root(), "gcloud");
  }

  void read_region() {
    out_.places.emplace("cluster.region", file_.place(input_, "region"));
    out_.region = file_.text(input_, "region").value_or("");
    if (!out_.region.empty()) return;
    out_.region = kAssumedRegion;
    out_.assumed.push_back(
        fmt::format("cluster.region: {}; --region says another", kAssumedRegion));
  }

  void read_machines() {
    const SourcePlace at = file_.place(input_, "scaleTier");
    const auto tier = file_.text(input_, "scaleTier");
    const auto given = std::ranges::find_if(
        kRoles, [&](const RoleFields& role) { return input_->has(role.type()); });
    if (tier == kCustom) {
      read_pools();
    } else if (given != kRoles.end()) {
      file_.mistake(input_->find(given->type())->key_at,
                    tier ? fmt::format("scale tier {} brings its own machines, {} has no place",
                                       *tier, given->type())
                         : fmt::format("{} needs scaleTier: CUSTOM", given->type()),
                    "scaleTier: CUSTOM lets you choose machines and counts");
    } else {
      if (!tier) out_.assumed.emplace_back("cluster.scale_tier: BASIC, the service's default");
      out_.scale_tier = tier.value_or("BASIC");
      out_.places.emplace("cluster.scale_tier", at);
      out_.strategy = strategy_of(pools_of(out_.scale_tier), ai_platform::provider(), catalog_);
    }
    out_.assumed.push_back(fmt::format("workload.strategy: what TensorFlow does on such machines"));
  }

  /// What the tier stands for, as far as a strategy depends on it.
  std::vector<ImportedPool> pools_of(const std::string& tier) const {
    std::vector<ImportedPool> pools;
    const ScaleTier* found = catalog_.find_tier(ai_platform::service(), tier);
    if (found == nullptr) return pools;
    for (const ScaleTier::Part& part : found->parts) {
      ImportedPool& pool = pools.emplace_back();
      for (const RoleFields& role : kRoles)
        if (planned_name(role.role) == part.role) pool.role = role.role;
      pool.per_node = part.accelerator_count;
      pool.slice = part.slice;
      pool.nodes = {part.count, part.count, part.count};
    }
    return pools;
  }
  static std::string_view planned_name(Role role) {
    return role == Role::chief              ? "chief"
           : role == Role::parameter_server ? "parameter_server"
                                            : "worker";
  }

  void read_pools() {
    for (const RoleFields& role : kRoles) {
      const SourcePlace at = file_.place(input_, role.type());
      const auto machine = file_.text(input_, role.type());
      const YamlNode* accelerator =
          file_.map(file_.map(input_, role.config()), "acceleratorConfig");
      const auto count = file_.whole(input_, role.count(), 0, kMostReplicas);
      if (role.role == Role::chief) {
        if (!machine) file_.mistake(input_->at, "scale tier CUSTOM needs masterType");
      } else if (machine && !count && !input_->has(role.count())) {
        file_.mistake(at, fmt::format("{} needs {}", role.type(), role.count()));
      } else if (!machine && count.value_or(0) > 0) {
        file_.mistake(file_.place(input_, role.count()),
                      fmt::format("{} needs {}", role.count(), role.type()));
      }
      const int nodes = role.role == Role::chief ? 1 : int(count.value_or(0));
      if (!machine || nodes == 0) {
        keep(role);  // a type without machines
        continue;
      }
      ImportedPool pool;
      pool.name = role.pool;
      pool.role = role.role;
      pool.machine = *machine;
      pool.nodes = {nodes, nodes, nodes};
      pool.at = at;
      read_accelerator(accelerator, pool);
      if (pool.machine == kTpuType) set_default_slice(pool);
      out_.pools.push_back(std::move(pool));
    }
    say_who_coordinates();
  }

  void keep(const RoleFields& role) {
    file_.keep(input_, role.type());
    file_.keep(input_, role.count());
    file_.keep(input_, role.config());
  }

  /// A master without accelerators before workers that have some tells them what to do, and does
  /// not compute; evaluators compute beside the training. Both are paid for as long as it takes.
  void say_who_coordinates() {
    std::set<int> counts;  // of accelerators on nodes that train
    for (const ImportedPool& pool : out_.pools)
      if (const int devices = devices_of(pool, ai_platform::provider(), catalog_);
          devices > 0 && trains(pool))
        counts.insert(devices);
    for (const ImportedPool& pool : out_.pools) {
      if (pool.role == Role::evaluator)
        out_.assumed.push_back(fmt::format(
            "{}: they are paid for from the start to the end, and delay nothing", pool.name));
      const bool coordinates = pool.role == Role::chief && !counts.empty() &&
                               devices_of(pool, ai_platform::provider(), catalog_) == 0;
      if (coordinates)
        out_.assumed.push_back(fmt::format(
            "the master ({}) has no accelerators and the workers have: it coordinates, and its "
            "machine is paid for",
            pool.machine));
    }
    if (counts.size() > 1)
      out_.assumed.push_back(fmt::format(
          "nodes with {} accelerators train together: each runs as many workers of {} as it holds",
          fmt::join(counts, " and "), *counts.begin()));
  }
  static bool trains(const ImportedPool& pool) { return computes(pool.role); }

  void read_accelerator(const YamlNode* config, ImportedPool& pool) {
    if (config == nullptr) return;
    pool.accelerator = file_.text(config, "type").value_or("");
    const auto count = file_.whole(config, "count", 1, kMostDevicesOfReplica);
    if (pool.accelerator.empty() || !count) {
      if (file_.mistakes().empty())
        file_.mistake(config->at, "acceleratorConfig needs type and count",
                      "example: acceleratorConfig: {count: 4, type: NVIDIA_TESLA_T4}");
      return;
    }
    pool.per_node = int(*count);
    if (pool.machine == kTpuType) read_slice(config, pool);
  }

  /// {type: TPU_V2, count: 8}: a slice of 8 cores, v2-8.
  void read_slice(const YamlNode* config, ImportedPool& pool) {
    constexpr std::string_view kPrefix = "TPU_";
    std::string type = pool.accelerator.starts_with(kPrefix)
                           ? pool.accelerator.substr(kPrefix.size())
                           : pool.accelerator;
    if (const std::size_t end = type.find('_'); end != std::string::npos) type.resize(end);
    pool.slice = fmt::format("v{}-{}", type.empty() ? "" : type.substr(1), pool.per_node);
    std::vector<std::string> known;
    for (const TpuSlice& slice : catalog_.slices) known.push_back(slice.name);
    if (catalog_.find_slice(pool.slice) == nullptr)
      file_.mistake(config->at,
                    fmt::format("no TPU of type {} has {} cores{}", pool.accelerator, pool.per_node,
                                did_you_mean(pool.slice, known)),
                    "example: acceleratorConfig: {count: 8, type: TPU_V2}");
    pool.machine.clear();
    pool.accelerator.clear();
    pool.per_node = 0;
  }

  /// cloud_tpu without acceleratorConfig has 8 cores of TPU v2 [AI Platform Training, "Using TPUs
  /// to train your model"].
  void set_default_slice(ImportedPool& pool) {
    if (!file_.mistakes().empty()) return;
    pool.machine.clear();
    pool.slice = "v2-8";
    out_.assumed.push_back(
        fmt::format("{}: a TPU of type TPU_V2 with 8 cores, the service's default for {}",
                    pool.name, kTpuType));
  }

  /// The service ends a job that runs longer.
  void read_limit() {
    const YamlNode* scheduling = file_.map(input_, "scheduling");
    const auto* limit = scheduling == nullptr ? nullptr : scheduling->find("maxRunningTime");
    if (limit == nullptr || !parse_duration(limit->value.text)) return;
    out_.expectations.push_back(
        fmt::format("p95(time) <= {}  # scheduling.maxRunningTime: the service ends it then",
                    limit->value.text));
  }

  void keep_the_rest() {
    const YamlNode* tuning = file_.map(input_, "hyperparameters");
    if (tuning != nullptr)
      out_.assumed.push_back(
          fmt::format("this is one trial of the {} that hyperparameters asks for",
                      tuning->has("maxTrials") ? tuning->find("maxTrials")->value.text : "many"));
    const std::vector<std::string> known = field_names();
    for (std::string& path : file_.left_over()) {
      constexpr std::string_view kInput = "trainingInput.";
      if (path.starts_with(kInput)) {
        const std::string below = path.substr(kInput.size());
        const std::string field = below.substr(0, below.find('.'));
        if (std::ranges::find(known, field) == known.end())
          path +=
              fmt::format(" (no field of the service that we know{})", did_you_mean(field, known));
      }
      out_.left_out.push_back(std::move(path));
    }
    const YamlNode rest = file_.rest();
    if (rest.entries.empty()) return;
    out_.kept_as = fmt::format("cluster.{}", ai_platform::kKept);
    out_.kept = fmt::format("  {}:\n{}", ai_platform::kKept, indented(write_yaml(rest), 4));
  }

  ForeignFile file_;
  const Catalog& catalog_;
  const YamlNode* input_ = nullptr;
  Imported out_;
};

}  // namespace

Expected<Imported> import_ai_platform(YamlNode job, const std::string& from,
                                      const Catalog& catalog) {
  return JobReader(std::move(job), catalog).read(from);
}

}  // namespace reckon
