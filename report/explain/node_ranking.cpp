#include "report/explain/node_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

std::vector<RankedNode> ranked(const std::vector<kubernetes::ProbedNode>& nodes) {
  constexpr std::size_t kLeastWarmUp = 2, kShare = 5;
  std::vector<RankedNode> all;
  std::vector<double> steps;
  for (const kubernetes::ProbedNode& node : nodes) {
    RankedNode r{.node = node.node, .problem = node.problem};
    const std::size_t warm_up = std::max(kLeastWarmUp, node.seconds.size() / kShare);
    if (node.seconds.size() > warm_up) {
      r.steps = int(node.seconds.size() - warm_up);
      r.step_seconds = median({node.seconds.begin() + std::ptrdiff_t(warm_up), node.seconds.end()});
      steps.push_back(r.step_seconds);
    } else if (r.problem.empty()) {
      r.problem = "reported too few steps";
    }
    all.push_back(std::move(r));
  }
  constexpr double kStandsOut = 0.05;
  if (!steps.empty()) {
    const double middle = median(steps);
    for (RankedNode& r : all)
      if (r.step_seconds > 0) {
        r.slower = r.step_seconds / middle - 1;
        r.stands_out = r.slower > kStandsOut;
      }
  }
  std::ranges::stable_sort(
      all, {}, [](const RankedNode& r) { return std::pair(r.step_seconds == 0, r.step_seconds); });
  return all;
}

std::string node_table(const std::vector<RankedNode>& nodes) {
  Columns table;
  table.row({"node", "step", "against the median", ""});
  for (const RankedNode& r : nodes) {
    if (r.step_seconds == 0) {
      table.row({r.node, "-", "", r.problem});
      continue;
    }
    table.row({r.node, format_duration(Seconds{r.step_seconds}),
               fmt::format("{:+.1f} %", 100 * r.slower),
               r.stands_out ? "slow: a gang would wait for it" : ""});
  }
  return table.text();
}

std::string node_json(const std::vector<RankedNode>& nodes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const RankedNode& r : nodes) {
    nlohmann::ordered_json one = {{"node", r.node}, {"step_seconds", nullptr}, {"slower", nullptr}};
    if (r.step_seconds > 0) {
      one["step_seconds"] = r.step_seconds;
      one["slower"] = r.slower;
    }
    one["stands_out"] = r.stands_out;
    one["steps"] = r.steps;
    one["problem"] = nullptr;
    if (!r.problem.empty()) one["problem"] = r.problem;
    list.push_back(std::move(one));
  }
  const nlohmann::ordered_json all = {
      {"schema_version", 1}, {"command", "probe"}, {"nodes", std::move(list)}};
  // What a program says need not be UTF-8.
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace reckon
