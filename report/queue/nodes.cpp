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

std::string amount_of(const FewestNodes& found, int nodes) {
  return found.varied == Varied::nodes_of_pool ? fmt::format("{} nodes", nodes)
                                               : fmt::format("{} GPUs", nodes);
}

std::string amount_of_pool(const FewestNodes& found, int nodes) {
  return fmt::format("{} of {} {}", amount_of(found, nodes),
                     found.varied == Varied::nodes_of_pool ? "pool" : "NodePool", found.pool);
}

std::string as_it_is(const FewestNodes& found) {
  if (found.varied == Varied::nodes_of_pool)
    return fmt::format("on the {} nodes that are there", found.now);
  return found.limited_now ? fmt::format("with at most {} GPUs", found.now) : "without a limit";
}

std::optional<double> week_with(const FewestNodes& found, const NodesTried& tried) {
  if (found.varied == Varied::gpus_of_node_pool) return tried.cost_of_week;
  if (!found.cost_of_week) return std::nullopt;
  return tried.nodes * *found.cost_of_week;
}

std::string replications_text(const TraceResult& result) {
  return result.replications == 1 ? "one replication"
                                  : fmt::format("mean of {} replications", result.replications);
}

namespace {

std::string money_of_nodes(const FewestNodes& found, double nodes) {
  return fmt::format("{} {}", format_count(std::round(nodes * *found.cost_of_week)),
                     found.currency);
}

const NodesTried* tried_fewest(const FewestNodes& found) {
  const auto at = std::ranges::find_if(
      found.tried, [&](const NodesTried& t) { return t.nodes == found.fewest; });
  return at == found.tried.end() ? nullptr : &*at;
}

/// "needs a limit of 64 GPUs of NodePool a10g (now 128; -795 USD a week)".
std::string answer_of_limit(const FewestNodes& found) {
  std::string line = fmt::format(
      "{} needs a limit of {} (now {}", found.limit.text, amount_of_pool(found, *found.fewest),
      found.limited_now ? std::to_string(found.now)
                        : fmt::format("none, and at most {} at a time", found.now));
  const NodesTried* tried = tried_fewest(found);
  if (tried != nullptr && tried->cost_of_week && found.cost_now) {
    const double more = std::round(*tried->cost_of_week - *found.cost_now);
    if (more != 0)
      line += fmt::format("; {}{} {} a week", more > 0 ? "+" : "-", format_count(std::abs(more)),
                          found.currency);
  }
  return line + ")";
}

std::string answer_line(const FewestNodes& found) {
  std::string line;
  const bool nodes = found.varied == Varied::nodes_of_pool;
  if (!found.fewest) {
    line = fmt::format("{} cannot be met with any number of {} {}: more {} change nothing",
                       found.limit.text, nodes ? "nodes of pool" : "GPUs of NodePool", found.pool,
                       nodes ? "nodes" : "GPUs");
  } else if (!nodes) {
    line = answer_of_limit(found);
  } else {
    line = fmt::format("{} needs {} nodes of pool {} (now {}", found.limit.text, *found.fewest,
                       found.pool, found.now);
    const int more = *found.fewest - found.now;
    if (found.cost_of_week && more != 0)
      line +=
          fmt::format("; {}{} a week", more > 0 ? "+" : "-", money_of_nodes(found, std::abs(more)));
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
  rows.row({found.varied == Varied::nodes_of_pool ? fmt::format("change, on {} nodes", found.now)
                                                  : "change, " + as_it_is(found),
            metric_of(found), "", ""});
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
  const bool of_nodes = found.varied == Varied::nodes_of_pool;
  const bool priced = std::ranges::any_of(
      found.tried, [&](const NodesTried& t) { return week_with(found, t).has_value(); });
  std::vector<std::string> head{of_nodes ? "nodes" : "GPUs at most", metric_of(found), "used"};
  if (priced) head.push_back(found.currency + "/week");
  head.emplace_back("");
  rows.row(std::move(head));
  for (const NodesTried& t : found.tried) {
    std::string remark = t.holds ? "" : "too few";
    if (found.fewest == t.nodes) remark = "fewest";
    if (t.result.never > never)
      remark += fmt::format(", {} jobs can never run", t.result.never - never);
    if (t.result.karpenter && t.result.karpenter->starved > 0)
      remark += fmt::format(", {:.3g} jobs wait for ever", t.result.karpenter->starved);
    std::vector<std::string> cells{
        std::to_string(t.nodes), t.value ? value_text(found, *t.value) : std::string("unknown"),
        t.result.utilization ? format_percent(*t.result.utilization) : std::string("-")};
    if (priced) {
      const auto week = week_with(found, t);
      cells.push_back(week ? format_count(std::round(*week)) : "unknown");
    }
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
  out["varies"] =
      found.varied == Varied::nodes_of_pool ? "nodes of the pool" : "GPUs of the NodePool";
  out["nodes_now"] = found.now;
  out["nodes"] = found.fewest ? Json(*found.fewest) : Json();
  Json tried = Json::array();
  for (const NodesTried& t : found.tried)
    tried.push_back(
        {{"nodes", t.nodes},
         {"value", t.value ? reckon::number(*t.value) : Json()},
         {"holds", t.holds},
         {"never", t.result.never},
         {"cost_week", week_with(found, t) ? reckon::number(*week_with(found, t)) : Json()},
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
