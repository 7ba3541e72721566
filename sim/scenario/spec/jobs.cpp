#include "sim/scenario/spec/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon {

Expected<std::string> scenario_of_job(std::string_view text, const std::string& name,
                                      std::span<const std::string> overrides,
                                      std::span<const std::filesystem::path> layers,
                                      std::string_view job) {
  constexpr std::array<std::string_view, 2> kLeftOut{"planned", "extends"};
  const auto flat = flat_scenario(text, name, overrides, layers, kLeftOut);
  if (!flat) return flat;
  YamlNode root = parse_yaml(*flat, name).value();
  YamlNode workload;
  if (const auto* jobs = root.find("jobs"))
    for (const YamlNode::Entry& entry : jobs->value.entries)
      if (const auto* found = entry.value.find("workload"); found && entry.value.name() == job)
        workload = found->value;
  std::erase_if(root.entries, [](const YamlNode::Entry& e) { return e.key == "jobs"; });
  root.entries.push_back({"workload", {}, std::move(workload)});
  constexpr std::array<std::string_view, 5> kOfAllJobs{"deadline", "deadlines", "budget", "period",
                                                       "objective"};
  for (YamlNode::Entry& entry : root.entries)
    if (entry.key == "plan")
      std::erase_if(entry.value.entries, [&](const YamlNode::Entry& e) {
        return std::ranges::find(kOfAllJobs, e.key) != kOfAllJobs.end();
      });
  return write_yaml(root);
}

std::string scenario_of_jobs(std::span<const OneJob> jobs) {
  const auto scalar = [](std::string text) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = std::move(text);
    return node;
  };
  YamlNode list, root;
  list.kind = YamlNode::Kind::list;
  for (const OneJob& job : jobs) {
    YamlNode one = parse_yaml(job.text, job.name).value();
    YamlNode item;
    item.kind = YamlNode::Kind::map;
    item.entries.push_back({"name", {}, scalar(job.name)});
    item.entries.push_back({"submit", {}, scalar(fmt::format("{}s", job.submit.count()))});
    item.entries.push_back({"workload", {}, one.find("workload")->value});
    list.entries.push_back({"", {}, std::move(item)});
    if (root.entries.empty()) root = std::move(one);
  }
  const auto workload = std::ranges::find(root.entries, "workload", &YamlNode::Entry::key);
  if (workload != root.entries.end()) *workload = {"jobs", {}, std::move(list)};
  return write_yaml(root);
}

}  // namespace reckon
