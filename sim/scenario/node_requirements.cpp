#include "sim/scenario/node_requirements.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "sim/base/text/lower_case.h"

namespace reckon {
namespace {

constexpr std::string_view kInstanceType = "node.kubernetes.io/instance-type";
constexpr std::string_view kCapacity = "karpenter.sh/capacity-type";
constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kRegion = "topology.kubernetes.io/region";
constexpr std::string_view kArch = "kubernetes.io/arch";
constexpr std::string_view kOs = "kubernetes.io/os";
constexpr double kMib = 1048576;

/// A machine's name in parts: g4dn.2xlarge is "g", "4", "dn", "2xlarge".
struct NameParts {
  std::string family, category, generation, attributes, size;
};

NameParts parts_of(const std::string& name) {
  NameParts parts;
  const std::size_t dot = name.find('.');
  parts.family = name.substr(0, dot);
  if (dot != std::string::npos) parts.size = name.substr(dot + 1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto first = std::ranges::find_if(parts.family, digit);
  const auto last = std::find_if_not(first, parts.family.end(), digit);
  parts.category.assign(parts.family.begin(), first);
  parts.generation.assign(first, last);
  parts.attributes.assign(last, parts.family.end());
  return parts;
}

/// Graviton machines have a g behind the generation, Grace ones begin "-gb".
std::string arch_of(const NameParts& parts) {
  const std::string own = parts.attributes.substr(0, parts.attributes.find('-'));
  const bool arm =
      own.find('g') != std::string::npos || parts.attributes.find("-gb") != std::string::npos;
  return arm ? "arm64" : "amd64";
}

std::string capacity_word(CapacityType capacity) {
  return capacity == CapacityType::on_demand ? "on-demand" : std::string(to_text(capacity));
}

std::string whole_number(double value) { return fmt::format("{:.0f}", std::floor(value)); }

/// "a100" of A100-SXM4-40.
std::string short_name(const std::string& accelerator) {
  return lower_case(accelerator.substr(0, accelerator.find('-')));
}

std::optional<std::string> not_empty(std::string text) {
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::optional<std::string> instance_label(const NodeChoice& node, std::string_view key) {
  const NameParts parts = parts_of(node.machine.name);
  if (key == "instance-family") return not_empty(parts.family);
  if (key == "instance-category") return not_empty(parts.category);
  if (key == "instance-generation") return not_empty(parts.generation);
  if (key == "instance-size") return not_empty(parts.size);
  if (key == "instance-cpu") return std::to_string(node.machine.vcpus);
  if (key == "instance-memory") return whole_number(node.machine.memory.value.v / kMib);
  if (key == "instance-network-bandwidth")  // megabits per second
    return whole_number(node.machine.network.value.v * 8 / 1e6);
  const bool gpu = node.accelerator != nullptr && node.accelerator->vendor == "NVIDIA";
  if (!gpu) return std::nullopt;
  if (key == "instance-gpu-name") return short_name(node.accelerator->name);
  if (key == "instance-gpu-manufacturer") return "nvidia";
  if (key == "instance-gpu-count") return std::to_string(node.machine.accelerator_count);
  if (key == "instance-gpu-memory") return whole_number(node.accelerator->memory.value.v / kMib);
  return std::nullopt;
}

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> label_keys(const std::string& prefix) {
  std::vector<std::string> keys;
  for (const auto key : {kInstanceType, kCapacity, kZone, kRegion, kArch, kOs})
    keys.emplace_back(key);
  for (const char* key :
       {"instance-family", "instance-category", "instance-generation", "instance-size",
        "instance-cpu", "instance-memory", "instance-network-bandwidth", "instance-gpu-name",
        "instance-gpu-manufacturer", "instance-gpu-count", "instance-gpu-memory"})
    keys.push_back(prefix + "/" + key);
  return keys;
}

std::optional<std::string> label_of(const NodeChoice& node, const std::string& key,
                                    const std::string& prefix) {
  if (key == kInstanceType) return node.machine.name;
  if (key == kCapacity) return capacity_word(node.capacity);
  if (key == kZone) return not_empty(node.zone);
  if (key == kRegion) return not_empty(node.region);
  if (key == kArch) return arch_of(parts_of(node.machine.name));
  if (key == kOs) return "linux";
  if (!key.starts_with(prefix + "/")) return std::nullopt;
  return instance_label(node, std::string_view(key).substr(prefix.size() + 1));
}

bool meets(const NodeRequirement& requirement, const std::optional<std::string>& value) {
  const auto in = [&] {
    return value && std::ranges::find(requirement.values, *value) != requirement.values.end();
  };
  // A value that is no number meets no comparison.
  const auto compares = [&](auto holds) {
    if (!value || requirement.values.empty()) return false;
    const auto a = number_of(*value), b = number_of(requirement.values.front());
    return a && b && holds(*a, *b);
  };
  switch (requirement.op) {
    case RequirementOperator::In:
      return in();
    case RequirementOperator::NotIn:
      return !in();
    case RequirementOperator::Exists:
      return value.has_value();
    case RequirementOperator::DoesNotExist:
      return !value;
    case RequirementOperator::Gt:
      return compares(std::greater<>{});
    case RequirementOperator::Lt:
      return compares(std::less<>{});
    case RequirementOperator::Gte:
      return compares(std::greater_equal<>{});
    case RequirementOperator::Lte:
      return compares(std::less_equal<>{});
  }
  return false;
}

const NodeRequirement* unmet(const std::vector<NodeRequirement>& requirements,
                             const NodeChoice& node, const std::string& prefix) {
  for (const NodeRequirement& r : requirements)
    if (!meets(r, label_of(node, r.key, prefix))) return &r;
  return nullptr;
}

const NodeRequirement* too_few_values(const std::vector<NodeRequirement>& requirements,
                                      std::span<const NodeChoice> nodes,
                                      const std::string& prefix) {
  for (const NodeRequirement& r : requirements) {
    if (!r.min_values) continue;
    std::set<std::string> values;
    for (const NodeChoice& node : nodes)
      if (auto value = label_of(node, r.key, prefix)) values.insert(std::move(*value));
    if (values.size() < std::size_t(*r.min_values)) return &r;
  }
  return nullptr;
}

std::string to_text(const NodeRequirement& requirement) {
  if (requirement.values.empty())
    return fmt::format("{} {}", requirement.key, to_text(requirement.op));
  return fmt::format("{} {} [{}]", requirement.key, to_text(requirement.op),
                     fmt::join(requirement.values, ", "));
}

}  // namespace reckon
