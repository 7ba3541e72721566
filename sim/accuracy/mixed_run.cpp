#include "sim/accuracy/mixed_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace reckon {
namespace {

/// Parts between the separators, without the blanks around them.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    std::string_view part = text.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

}  // namespace

bool is_mixed(const RunConfiguration& run) {
  return run.accelerator.find('+') != std::string_view::npos;
}

tl::expected<StageNodes, std::string> stage_nodes_of(const RunConfiguration& run,
                                                     const Catalog& catalog) {
  if (run.stage_accelerators.empty())
    return tl::unexpected(std::string("which stage is on which accelerator is not printed"));
  StageNodes stages;
  for (const std::string_view stage : parts_of(run.stage_accelerators, ';')) {
    if (std::ssize(stages) == std::max(1, run.pipeline)) break;  // what follows is another note
    std::vector<std::string>& nodes = stages.emplace_back();
    for (const std::string_view name : parts_of(stage, ',')) {
      const Accelerator* accelerator = catalog.find_accelerator(name);
      if (accelerator == nullptr)
        return tl::unexpected(fmt::format("unknown accelerator {}", name));
      nodes.push_back(accelerator->name);
    }
  }
  return stages;
}

void place_stages(const StageNodes& stages, ClusterSpec& cluster, StrategySpec& strategy) {
  const PoolSpec alike = cluster.pools.front();
  std::map<std::string, int> nodes;
  for (const auto& stage : stages)
    for (const std::string& accelerator : stage) ++nodes[accelerator];
  cluster.pools.clear();
  for (const auto& [accelerator, count] : nodes) {
    PoolSpec pool = alike;
    pool.name = accelerator;
    pool.accelerator->type = accelerator;
    pool.nodes = {count, count, count};
    cluster.pools.push_back(std::move(pool));
  }
  for (const auto& stage : stages) {
    StageSpec spec;
    for (const std::string& accelerator : stage)
      if (std::ranges::find(spec.pools, accelerator) == spec.pools.end())
        spec.pools.push_back(accelerator);
    strategy.stages.push_back(std::move(spec));
  }
}

}  // namespace reckon
