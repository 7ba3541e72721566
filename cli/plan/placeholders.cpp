#include "cli/plan/placeholders.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

const YamlNode* child(const YamlNode* node, std::string_view key) {
  const YamlNode::Entry* found = node == nullptr ? nullptr : node->find(key);
  return found == nullptr ? nullptr : &found->value;
}

/// The first provider that is named, or that sells anything where any will do.
std::string provider_of(const YamlNode& varied, const Catalog& catalog) {
  const YamlNode& first = varied.entries.empty() ? varied : varied.entries.front().value;
  if (first.text != "any") return first.text;
  const auto seller =
      std::ranges::find_if(catalog.providers, [](const ProviderRules& p) { return !p.owned; });
  return seller == catalog.providers.end() ? first.text : seller->id.name;
}

}  // namespace

std::vector<std::string> placeholders_for(const planner::Base& base, const Catalog& catalog) {
  const auto flat = flat_scenario(base.text, base.name, base.overrides, base.layers, {});
  const auto root = flat ? parse_yaml(*flat, base.name) : tl::unexpected(Diagnostics{});
  if (!root) return {};
  const YamlNode* const vary = child(child(&*root, "plan"), "vary");
  if (vary == nullptr) return {};
  const auto varies = [&](std::string_view key) { return vary->has(key); };
  const YamlNode* const cluster = child(&*root, "cluster");
  const auto has = [&](const YamlNode* block, std::string_view key) {
    return child(block, key) != nullptr;
  };
  std::vector<std::string> words;
  if (varies("provider") && !has(cluster, "provider"))
    words.push_back("cluster.provider=" + provider_of(*child(vary, "provider"), catalog));
  if ((varies("region") || varies("provider")) && !has(cluster, "region"))
    words.emplace_back("cluster.region=any");
  if ((varies("machine") || varies("accelerator") || varies("provider")) &&
      !has(cluster, "pools") && !has(cluster, "scale_tier"))
    words.emplace_back("cluster.pools=[{name: workers, machine: any, nodes: 1}]");
  const YamlNode* const workload = child(&*root, "workload");
  if (workload != nullptr && varies("global_batch") && !has(workload, "batch_per_accelerator") &&
      !has(workload, "global_batch"))
    words.emplace_back("workload.batch_per_accelerator=1");
  return words;
}

}  // namespace reckon::cli
