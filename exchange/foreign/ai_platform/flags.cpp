#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "exchange/foreign/ai_platform/ai_platform.h"
#include "exchange/foreign/ai_platform/fields.h"

// The words of a gcloud command as changes of the Job resource.
namespace reckon {
namespace {

using ai_platform::kRoles;
using FlagKind = YamlNode::Kind;

/// How the value of a flag stands in the resource.
enum class FlagValue { text, constant, list, map, accelerator, truth };
struct Flag {
  std::string name;  // "--scale-tier"
  std::string path;  // "trainingInput.scaleTier"
  FlagValue takes = FlagValue::text;
};

std::vector<Flag> known_flags() {
  std::vector<Flag> flags{
      {"--scale-tier", "trainingInput.scaleTier", FlagValue::constant},
      {"--region", "trainingInput.region"},
      {"--runtime-version", "trainingInput.runtimeVersion"},
      {"--python-version", "trainingInput.pythonVersion"},
      {"--job-dir", "trainingInput.jobDir"},
      {"--module-name", "trainingInput.pythonModule"},
      {"--packages", "trainingInput.packageUris", FlagValue::list},
      {"--service-account", "trainingInput.serviceAccount"},
      {"--network", "trainingInput.network"},
      {"--tpu-tf-version", "trainingInput.workerConfig.tpuTfVersion"},
      {"--use-chief-in-tf-config", "trainingInput.useChiefInTfConfig", FlagValue::truth},
      {"--enable-web-access", "trainingInput.enableWebAccess", FlagValue::truth},
      {"--labels", "labels", FlagValue::map},
  };
  for (const auto& role : kRoles) {
    if (role.flag.empty()) continue;
    const std::string input = "trainingInput.";
    flags.push_back({fmt::format("--{}-machine-type", role.flag), input + role.type()});
    flags.push_back({fmt::format("--{}-accelerator", role.flag),
                     input + role.config() + ".acceleratorConfig", FlagValue::accelerator});
    flags.push_back(
        {fmt::format("--{}-image-uri", role.flag), input + role.config() + ".imageUri"});
    if (role.role != Role::chief)
      flags.push_back({fmt::format("--{}-count", role.flag), input + role.count()});
  }
  return flags;
}

/// Of gcloud, for the submission alone: kept for the way back. A switch has no value.
struct SubmitFlag {
  std::string_view name;
  bool is_switch = false;
};
constexpr std::array kSubmitFlags{SubmitFlag{"--package-path"},
                                  SubmitFlag{"--staging-bucket"},
                                  SubmitFlag{"--async", true},
                                  SubmitFlag{"--stream-logs", true},
                                  SubmitFlag{"--project"},
                                  SubmitFlag{"--account"},
                                  SubmitFlag{"--quiet", true},
                                  SubmitFlag{"--verbosity"},
                                  SubmitFlag{"--format"},
                                  SubmitFlag{"--kms-key"},
                                  SubmitFlag{"--kms-keyring"},
                                  SubmitFlag{"--kms-location"},
                                  SubmitFlag{"--kms-project"},
                                  SubmitFlag{"--impersonate-service-account"},
                                  SubmitFlag{"--billing-project"},
                                  SubmitFlag{"--configuration"},
                                  SubmitFlag{"--flags-file"},
                                  SubmitFlag{"--flatten"},
                                  SubmitFlag{"--log-http", true},
                                  SubmitFlag{"--trace-token"},
                                  SubmitFlag{"--access-token-file"},
                                  SubmitFlag{"--user-output-enabled", true}};

/// "nvidia-tesla-t4" as the resource writes constants: NVIDIA_TESLA_T4.
std::string constant(std::string text) {
  for (char& c : text) c = c == '-' ? '_' : char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string lowered(std::string text) {
  for (char& c : text) c = char(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

YamlNode scalar(std::string text, const SourcePlace& at) {
  YamlNode node;
  node.kind = FlagKind::scalar;
  node.text = std::move(text);
  node.at = at;
  return node;
}

YamlNode empty_node(FlagKind kind, const SourcePlace& at) {
  YamlNode node;
  node.kind = kind;
  node.at = at;
  return node;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The value at a dotted path, made where it is missing.
YamlNode& at_path(YamlNode& root, std::string_view path, const SourcePlace& at) {
  YamlNode* node = &root;
  for (const std::string& key : split(path, '.')) {
    if (node->kind != FlagKind::map) *node = empty_node(FlagKind::map, at);
    auto found = std::ranges::find(node->entries, key, &YamlNode::Entry::key);
    if (found == node->entries.end()) {
      node->entries.push_back({key, at, YamlNode{}});
      found = node->entries.end() - 1;
    }
    node = &found->value;
  }
  return *node;
}

/// gcloud's words one after the other: flags with their values, the job's name, what is behind
/// `--`.
class Command {
 public:
  Command(YamlNode& job, Diagnostics& mistakes) : job_(job), mistakes_(mistakes) {}

  void read(std::span<const std::string> words) {
    for (words_ = words; !words_.empty();) {
      const std::string first = words_.front();
      words_ = words_.subspan(1);
      if (first == "--") {
        user_arguments();
      } else if (first.starts_with("--")) {
        flag(first);
      } else {
        const SourcePlace at{first, 0, 0};
        if (!name_.empty())
          mistakes_.push_back({Severity::error, at,
                               fmt::format("a job has one name, and {} was given before", name_),
                               "a configuration comes first, or behind --config"});
        name_ = first;
        at_path(job_, "jobId", at) = scalar(first, at);
      }
    }
  }

 private:
  void flag(const std::string& written) {
    const std::size_t equals = written.find('=');
    const std::string name = written.substr(0, equals);
    const SourcePlace at{name, 0, 0};
    std::optional<std::string> value;
    if (equals != std::string::npos)
      value = written.substr(equals + 1);
    else if (!words_.empty() && !words_.front().starts_with("--") && takes_value(name)) {
      value = words_.front();
      words_ = words_.subspan(1);
    }
    const auto known = std::ranges::find(flags_, name, &Flag::name);
    if (known == flags_.end() && !is_submit_flag(name)) {
      mistakes_.push_back({Severity::error, at,
                           fmt::format("unknown option '{}'{}", name, did_you_mean(name, names())),
                           "options of import and the flags of gcloud are allowed here"});
    } else if (known == flags_.end()) {
      at_path(job_, "gcloud." + name.substr(2), at) = scalar(value.value_or("true"), at);
    } else if (!value && known->takes != FlagValue::truth) {
      mistakes_.push_back({Severity::error, at, fmt::format("{} takes a value", name), ""});
    } else {
      at_path(job_, known->path, at) = shaped(*known, value.value_or("true"), at);
    }
  }

  static const SubmitFlag* submit_flag(std::string_view name) {
    const std::string positive =
        name.starts_with("--no-") ? "--" + std::string(name.substr(5)) : std::string(name);
    const auto found = std::ranges::find(kSubmitFlags, positive, &SubmitFlag::name);
    return found == kSubmitFlags.end() ? nullptr : &*found;
  }
  static bool is_submit_flag(std::string_view name) { return submit_flag(name) != nullptr; }

  bool takes_value(const std::string& name) const {
    const SubmitFlag* submit = submit_flag(name);
    return name != "--enable-web-access" && (submit == nullptr || !submit->is_switch);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Flag& flag : flags_) all.push_back(flag.name);
    for (const SubmitFlag& flag : kSubmitFlags) all.emplace_back(flag.name);
    for (const char* ours : {"--model", "--dataset", "--epochs", "--tokens", "--precision",
                             "--batch", "--out", "--catalog"})
      all.emplace_back(ours);
    return all;
  }

  YamlNode shaped(const Flag& flag, const std::string& value, const SourcePlace& at) {
    switch (flag.takes) {
      case FlagValue::constant:
        return scalar(constant(value), at);
      case FlagValue::list: {
        YamlNode list = empty_node(FlagKind::list, at);
        for (std::string& item : split(value, ','))
          list.entries.push_back({"", at, scalar(std::move(item), at)});
        return list;
      }
      case FlagValue::map:
      case FlagValue::accelerator:
        return pairs(flag, value, at);
      case FlagValue::truth:
        return scalar(lowered(value), at);
      case FlagValue::text:
        break;
    }
    return scalar(value, at);
  }

  /// "count=4,type=nvidia-tesla-t4".
  YamlNode pairs(const Flag& flag, const std::string& value, const SourcePlace& at) {
    YamlNode map = empty_node(FlagKind::map, at);
    for (const std::string& part : split(value, ',')) {
      const std::size_t equals = part.find('=');
      if (equals == std::string::npos) {
        mistakes_.push_back(
            {Severity::error, at, fmt::format("'{}' of {} is no KEY=VALUE", part, flag.name),
             flag.takes == FlagValue::accelerator
                 ? fmt::format("example: {} count=4,type=nvidia-tesla-t4", flag.name)
                 : ""});
        continue;
      }
      const std::string key = part.substr(0, equals);
      const std::string text = part.substr(equals + 1);
      const bool type = flag.takes == FlagValue::accelerator && key == "type";
      map.entries.push_back({key, at, scalar(type ? constant(text) : text, at)});
    }
    return map;
  }

  void user_arguments() {
    const SourcePlace at{"-- ...", 0, 0};
    YamlNode list = empty_node(FlagKind::list, at);
    for (const std::string& word : words_) list.entries.push_back({"", at, scalar(word, at)});
    at_path(job_, "trainingInput.args", at) = std::move(list);
    words_ = {};
  }

  YamlNode& job_;
  Diagnostics& mistakes_;
  std::vector<Flag> flags_ = known_flags();
  std::string name_;  // of the job
  std::span<const std::string> words_;
};

/// What stands in front of the flags where a whole command was pasted.
std::span<const std::string> without_command(std::span<const std::string> words) {
  constexpr std::array<std::string_view, 6> kCommand{"gcloud", "beta",   "ai-platform",
                                                     "jobs",   "submit", "training"};
  std::size_t next = 0;
  while (!words.empty()) {
    const auto found = std::find(kCommand.begin() + std::ptrdiff_t(next), kCommand.end(),
                                 std::string_view(words.front()));
    if (found == kCommand.end()) break;
    next = std::size_t(found - kCommand.begin()) + 1;
    words = words.subspan(1);
  }
  return words;
}

}  // namespace

Expected<YamlNode> ai_platform_job(std::string_view config, const std::string& file,
                                   std::span<const std::string> words) {
  YamlNode job;
  if (!config.empty()) {
    auto parsed = parse_yaml(config, file);
    if (!parsed) return parsed;
    job = std::move(*parsed);
  }
  if (job.kind == FlagKind::null) job = empty_node(FlagKind::map, {file, 0, 0});
  if (job.kind != FlagKind::map)
    return tl::unexpected(
        Diagnostics{{Severity::error, job.at, fmt::format("a job is a map, not {}", describe(job)),
                     "example: trainingInput: {scaleTier: BASIC_GPU}"}});
  Diagnostics mistakes;
  Command(job, mistakes).read(without_command(words));
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return job;
}

}  // namespace reckon
