#include "report/queue/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string value_text(const FewestNodes& found, double value) {
  return found.limit.metric == Metric::slowdown ? fmt::format("{:.3g}", value)
                                                : format_duration(Seconds{value});
}

std::string money(const FewestNodes& found, double nodes) {
  return fmt::format("{} {}", format_count(std::round(nodes * *found.cost_of_week)),
                     found.currency);
}

std::string answer_line(const FewestNodes& found) {
  std::string line;
  if (!found.fewest) {
    line = fmt::format(
        "{} cannot be met with any number of nodes of pool {}: more nodes change nothing",
        found.limit.text, found.pool);
  } else {
    line = fmt::format("{} needs {} nodes of pool {} (now {}", found.limit.text, *found.fewest,
                       found.pool, found.now);
    const int more = *found.fewest - found.now;
    if (found.cost_of_week && more != 0)
      line += fmt::format("; {}{} a week", more > 0 ? "+" : "-", money(found, std::abs(more)));
    line += ")";
  }
  for (const PolicyTried& p : found.policies)
    if (p.holds)
      return line + fmt::format("\nor policy {} on the {} nodes that are there", to_text(p.policy),
                                found.now);
  return line;
}

std::string by_policy(const FewestNodes& found) {
  if (found.policies.empty()) return "";
  Columns rows;
  const std::size_t bound = found.limit.text.find_first_of("<>=!");
  rows.row({fmt::format("policy on {} nodes", found.now), found.limit.text.substr(0, bound), ""});
  for (const PolicyTried& p : found.policies)
    rows.row({std::string(to_text(p.policy)),
              p.value ? value_text(found, *p.value) : std::string("unknown"),
              p.holds ? "holds" : "does not hold"});
  return "\n" + rows.text();
}

}  // namespace

std::string nodes_table(const FewestNodes& found) {
  const std::size_t bound = found.limit.text.find_first_of("<>=!");
  Columns rows;
  std::int64_t never = std::numeric_limits<std::int64_t>::max();  // whatever the number of nodes
  for (const NodesTried& t : found.tried) never = std::min(never, t.result.never);
  std::vector<std::string> head{"nodes", found.limit.text.substr(0, bound), "used"};
  if (found.cost_of_week) head.push_back(found.currency + "/week");
  head.emplace_back("");
  rows.row(std::move(head));
  for (const NodesTried& t : found.tried) {
    std::string remark = t.holds ? "" : "too few";
    if (found.fewest == t.nodes) remark = "fewest";
    if (t.result.never > never)
      remark += fmt::format(", {} jobs can never run", t.result.never - never);
    std::vector<std::string> cells{
        std::to_string(t.nodes), t.value ? value_text(found, *t.value) : std::string("unknown"),
        t.result.utilization ? format_percent(*t.result.utilization) : std::string("-")};
    if (found.cost_of_week)
      cells.push_back(format_count(std::round(t.nodes * *found.cost_of_week)));
    cells.push_back(remark);
    rows.row(std::move(cells));
  }
  std::string out = fmt::format("{}\n\n{}{}", answer_line(found), rows.text(), by_policy(found));
  if (found.tried.empty()) return out;
  const TraceResult& any = found.tried.front().result;
  out +=
      fmt::format("  policy {}, {} of seed {}\n", to_text(any.policy),
                  any.replications == 1 ? "one replication"
                                        : fmt::format("mean of {} replications", any.replications),
                  any.seed);
  return out;
}

std::string nodes_json(const FewestNodes& found) {
  Json out = head("plan");
  out["limit"] = found.limit.text;
  out["pool"] = found.pool;
  out["nodes_now"] = found.now;
  out["nodes"] = found.fewest ? Json(*found.fewest) : Json();
  Json tried = Json::array();
  for (const NodesTried& t : found.tried)
    tried.push_back(
        {{"nodes", t.nodes},
         {"value", t.value ? reckon::number(*t.value) : Json()},
         {"holds", t.holds},
         {"never", t.result.never},
         {"utilization", t.result.utilization ? reckon::number(*t.result.utilization) : Json()}});
  out["tried"] = std::move(tried);
  Json policies = Json::array();
  for (const PolicyTried& p : found.policies)
    policies.push_back({{"policy", to_text(p.policy)},
                        {"value", p.value ? reckon::number(*p.value) : Json()},
                        {"holds", p.holds}});
  out["policies"] = std::move(policies);
  out["cost_of_node_week"] = found.cost_of_week ? reckon::number(*found.cost_of_week) : Json();
  out["currency"] = found.currency;
  return dump(out, 2);
}

}  // namespace reckon
