#include "report/plan/serving.h"

#include <fmt/format.h>

#include <cmath>

#include "report/serving/json.h"
#include "report/text.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using planner::ServingAnswer;
using planner::ServingChoice;

std::string name_of_choice(const ServingChoice& c) {
  return c.accelerator.empty() ? "CPUs" : c.accelerator;
}

std::string rejected(const ServingAnswer& a) {
  Columns rows;
  for (const auto& [reason, count] : a.rejected) rows.row({std::to_string(count), reason});
  return fmt::format("\n{} machines considered\n", a.considered) + rows.text();
}

}  // namespace

std::string serving_plan_table(const ServingAnswer& a) {
  std::string out = fmt::format("To serve {} at {} requests/s with {}\n", a.model,
                                format_count(std::round(a.rate)), a.goal);
  if (a.choices.empty())
    return out +
           "  no plan meets the goal: relax it, reduce batch.wait or batch.max, or choose another "
           "region\n" +
           rejected(a);
  Columns rows;
  const auto machine = [](const ServingChoice& c) {
    return c.own ? c.machine + " (yours)" : c.machine;
  };
  rows.row({"", "on", "machine", "replicas", "nodes", printed_currency().code + "/h", "p50", "p99",
            "busy"});
  for (std::size_t k = 0; k < a.choices.size(); ++k) {
    const ServingChoice& c = a.choices[k];
    rows.row({fmt::format("{}.", k + 1), name_of_choice(c), machine(c), std::to_string(c.replicas),
              std::to_string(c.nodes),
              c.priced ? fmt::format("{:.2f}", in_printed_currency(c.usd_per_hour)) : "-",
              format_duration(c.forecast.p50), format_duration(c.forecast.p99),
              format_percent(c.forecast.service.utilization())});
  }
  out += rows.text();
  if (a.choices.size() > 1 && a.choices[0].priced)
    out += fmt::format("  {} costs {:.0f} % less than {}, the next\n", name_of_choice(a.choices[0]),
                       100 * (1 - a.choices[0].usd_per_hour / a.choices[1].usd_per_hour),
                       name_of_choice(a.choices[1]));
  return out + rejected(a);
}

std::string serving_plan_json(const ServingAnswer& a) {
  Json out = head("plan");
  out["model"] = a.model;
  out["goal"] = a.goal;
  out["requests_per_second"] = a.rate;
  out["candidates_considered"] = a.considered;
  out["serving_plans"] = Json::array();
  for (std::size_t k = 0; k < a.choices.size(); ++k) {
    const ServingChoice& c = a.choices[k];
    out["serving_plans"].push_back({{"rank", k + 1},
                                    {"accelerator", text_or_null(c.accelerator)},
                                    {"machine", c.machine},
                                    {"own_pool", c.own},
                                    {"accelerators_per_node", c.per_node},
                                    {"replicas", c.replicas},
                                    {"nodes", c.nodes},
                                    {"usd_per_hour", c.priced ? Json(c.usd_per_hour) : Json()},
                                    {"serving", serving_object(c.forecast)}});
  }
  out["rejected"] = Json::array();
  for (const auto& [reason, count] : a.rejected)
    out["rejected"].push_back({{"reason", reason}, {"count", count}});
  return dump(out, 2);
}

}  // namespace reckon
