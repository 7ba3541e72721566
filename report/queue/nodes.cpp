#include "report/queue/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

#include "report/json_parts.h"
#include "report/queue/nodes_text.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {

std::string metric_of(const FewestNodes& found) {
  std::string metric = found.limit.text.substr(0, found.limit.text.find_first_of("<>=!"));
  while (metric.ends_with(' ')) metric.pop_back();
  return metric;
}

std::string value_text(const FewestNodes& found, double value) {
  return found.limit.metric == Metric::slowdown ? fmt::format("{:.3g}", value)
                                                : format_duration(Seconds{value});
}

std::string more_a_week(const FewestNodes& found, const ChangeTried& change) {
  if (!change.cost_of_week || !found.cost_now) return "";
  const double more = std::round(*change.cost_of_week - *found.cost_now);
  return more == 0 ? ""
                   : fmt::format("{}{} {}", more > 0 ? "+" : "-", format_count(std::abs(more)),
                                 found.currency);
}

std::string replications_text(const TraceResult& result) {
  return result.replications == 1 ? "one replication"
                                  : fmt::format("mean of {} replications", result.replications);
}

namespace {

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
  for (const ChangeTried& c : found.changes)
    if (c.policy && c.holds)
      return line + fmt::format("\nor policy {} on the {} nodes that are there", to_text(*c.policy),
                                found.now);
  return line;
}

/// Those that hold first, the cheapest of them first.
std::string by_change(const FewestNodes& found) {
  std::vector<ChangeTried> asked;
  for (const ChangeTried& c : found.changes)
    if (!c.policy) asked.push_back(c);
  if (asked.empty()) return "";
  std::ranges::stable_sort(asked, [](const ChangeTried& a, const ChangeTried& b) {
    const auto key = [](const ChangeTried& c) {
      return std::tuple(!c.holds, c.cost_of_week.value_or(0), c.value.value_or(0));
    };
    return key(a) < key(b);
  });
  Columns rows;
  rows.row({fmt::format("change, on {} nodes", found.now), metric_of(found), "", ""});
  for (const ChangeTried& c : asked) {
    const std::string more = more_a_week(found, c);
    rows.row({c.change, c.value ? value_text(found, *c.value) : std::string("unknown"),
              c.holds ? "holds" : "does not hold", more.empty() ? "" : more + " a week"});
  }
  return "\n" + rows.text();
}

std::string by_policy(const FewestNodes& found) {
  const auto is_order = [](const ChangeTried& c) { return c.policy.has_value(); };
  if (std::ranges::none_of(found.changes, is_order)) return "";
  Columns rows;
  rows.row({fmt::format("policy on {} nodes", found.now), metric_of(found), ""});
  for (const ChangeTried& c : found.changes)
    if (c.policy)
      rows.row({std::string(to_text(*c.policy)),
                c.value ? value_text(found, *c.value) : std::string("unknown"),
                c.holds ? "holds" : "does not hold"});
  return "\n" + rows.text();
}

}  // namespace

std::string nodes_table(const FewestNodes& found) {
  Columns rows;
  std::int64_t never = std::numeric_limits<std::int64_t>::max();  // whatever the number of nodes
  for (const NodesTried& t : found.tried) never = std::min(never, t.result.never);
  std::vector<std::string> head{"nodes", metric_of(found), "used"};
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
  std::string out = fmt::format("{}\n\n{}{}{}", answer_line(found), rows.text(), by_policy(found),
                                by_change(found));
  if (found.tried.empty()) return out;
  const TraceResult& any = found.tried.front().result;
  return out + fmt::format("  policy {}, {} of seed {}\n", to_text(any.policy),
                           replications_text(any), any.seed);
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
  Json policies = Json::array(), changes = Json::array();
  for (const ChangeTried& c : found.changes) {
    Json row{{"value", c.value ? reckon::number(*c.value) : Json()}, {"holds", c.holds}};
    if (c.policy) {
      row["policy"] = to_text(*c.policy);
      policies.push_back(std::move(row));
      continue;
    }
    row["change"] = c.change;
    row["cost_week"] = c.cost_of_week ? reckon::number(*c.cost_of_week) : Json();
    changes.push_back(std::move(row));
  }
  out["policies"] = std::move(policies);
  out["changes"] = std::move(changes);
  out["cost_week_now"] = found.cost_now ? reckon::number(*found.cost_now) : Json();
  out["cost_of_node_week"] = found.cost_of_week ? reckon::number(*found.cost_of_week) : Json();
  out["currency"] = found.currency;
  return dump(out, 2);
}

}  // namespace reckon
