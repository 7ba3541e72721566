#include "report/queue/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/json_parts.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string value_text(const FewestNodes& found, const NodesTried& tried) {
  if (!tried.value) return "unknown";
  return found.limit.metric == Metric::slowdown ? fmt::format("{:.3g}", *tried.value)
                                                : format_duration(Seconds{*tried.value});
}

std::string answer_line(const FewestNodes& found) {
  if (!found.fewest)
    return fmt::format("{} holds with no number of nodes of pool {}: more of them change nothing",
                       found.limit.text, found.pool);
  return fmt::format("{} needs {} nodes of pool {} (now {})", found.limit.text, *found.fewest,
                     found.pool, found.now);
}

}  // namespace

std::string nodes_table(const FewestNodes& found) {
  const std::size_t bound = found.limit.text.find_first_of("<>=!");
  Columns rows;
  std::int64_t never = std::numeric_limits<std::int64_t>::max();  // whatever the number of nodes
  for (const NodesTried& t : found.tried) never = std::min(never, t.result.never);
  rows.row({"nodes", found.limit.text.substr(0, bound), "used", ""});
  for (const NodesTried& t : found.tried) {
    std::string remark = t.holds ? "" : "too few";
    if (found.fewest == t.nodes) remark = "fewest";
    if (t.result.never > never)
      remark += fmt::format(", {} jobs can never run", t.result.never - never);
    rows.row({std::to_string(t.nodes), value_text(found, t),
              t.result.utilization ? format_percent(*t.result.utilization) : "-", remark});
  }
  std::string out = fmt::format("{}\n\n{}", answer_line(found), rows.text());
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
  return dump(out, 2);
}

}  // namespace reckon
