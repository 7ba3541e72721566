#include "report/plan/fewest.h"

#include <fmt/format.h>

#include "report/json_parts.h"
#include "report/plan/parts.h"
#include "report/plan/plan.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using planner::Fewest;
using planner::FewestRow;
using planner::RankedPlan;

std::int64_t accelerators_rented(const RankedPlan& p) {
  return std::int64_t{p.split.nodes} * std::max(1, p.hardware.per_node);
}

std::string name_of_row(const FewestRow& row) {
  return fmt::format("{} {}", to_text(row.provider),
                     row.accelerator.empty() ? "without accelerators" : row.accelerator);
}

bool has_limits(const Fewest& a) { return a.deadline || a.budget; }

std::string limits_text(const Fewest& a) {
  std::string text;
  if (a.deadline) text += " by " + a.deadline->text;
  if (a.budget) text += " for " + a.budget->text;
  return text;
}

std::string rows_of_answer(const Fewest& a, int width) {
  Columns rows;
  rows.row({"", "fit in memory", has_limits(a) ? "done" + limits_text(a) : "forecast of the fewest",
            "time", "cost"});
  std::string places;
  for (const FewestRow& r : a.rows) {
    if (!r.fits && !r.meets) {
      rows.row({name_of_row(r), "none", r.why_not, "", ""});
      continue;
    }
    if (!r.meets) {
      rows.row({name_of_row(r), fmt::format("{}", accelerators_rented(*r.fits)), "none", "", ""});
      add_lines(places, "  ",
                fmt::format("{}: {}; {}", name_of_row(r), planner::strategy_text(r.fits->split),
                            r.why_not),
                width);
      continue;
    }
    const Forecast& f = r.meets->result.forecast;
    rows.row({name_of_row(r), fmt::format("{}", accelerators_rented(*r.fits)),
              fmt::format("{}", accelerators_rented(*r.meets)), time_range(f.time_seconds),
              f.cost_usd ? usd_range(*f.cost_usd) : "unknown"});
    add_lines(places, "  ",
              fmt::format("{}: fits as {}; {} by {}, {}", name_of_row(r),
                          planner::strategy_text(r.fits->split),
                          has_limits(a) ? "limits met" : "forecast", place_text(*r.meets),
                          planner::strategy_text(r.meets->split)),
              width);
  }
  return rows.text() +
         fmt::format(
             "  numbers of accelerators; median (5th .. 95th percentile) of {} replications, "
             "seed {}\n\nHow\n",
             format_count(a.replications), a.seed) +
         places;
}

std::string servers_text(const planner::FewestServers& s, int width) {
  std::string out = "\nParameter servers\n";
  const auto step = [&](int servers) { return format_duration(s.steps[std::size_t(servers - 1)]); };
  add_lines(out, "  ",
            s.enough
                ? fmt::format("With {} parameter servers the step is no longer bound by them: {} a "
                              "step ({} with 1).",
                              *s.enough, step(*s.enough), step(1))
                : fmt::format("Up to {} parameter servers the step is bound by them.", s.tried),
            width);
  if (s.no_gain)
    add_lines(out, "  ",
              fmt::format("Beyond {} one more shortens the step by less than 1 %: {} a step.",
                          *s.no_gain, step(*s.no_gain)),
              width);
  return out;
}

Json place_object(const std::optional<RankedPlan>& p) {
  if (!p) return nullptr;
  Json out{{"accelerators", accelerators_rented(*p)},
           {"nodes", p->split.nodes},
           {"machine", text_or_null(p->hardware.machine)},
           {"slice", text_or_null(p->hardware.slice)},
           {"strategy", planner::strategy_text(p->split)}};
  if (p->result.forecast.replications > 0) {
    out["region"] = text_or_null(p->offer.region);
    out["pricing"] = to_text(p->offer.pricing);
    out["bought"] = planner::bought_text(p->offer, p->split.nodes);
    out["overrides"] = planner::texts(p->result.changes);
    out["forecast"] = forecast_object(p->result.forecast);
  }
  return out;
}

}  // namespace

std::string fewest_table(const Fewest& a, int width) {
  std::string out =
      fmt::format("{}: the fewest accelerators{}\n\n", a.scenario,
                  has_limits(a) ? " that are done" + limits_text(a) : " that hold it");
  out += rows_of_answer(a, width);
  if (a.servers) out += servers_text(*a.servers, width);
  return out;
}

std::string fewest_json(const Fewest& a) {
  Json out = head("plan");
  out["scenario"] = a.scenario;
  out["seed"] = a.seed;
  out["replications"] = a.replications;
  out["fewest"] = Json::array();
  for (const FewestRow& r : a.rows)
    out["fewest"].push_back({{"provider", to_text(r.provider)},
                             {"accelerator", text_or_null(r.accelerator)},
                             {"fits", place_object(r.fits)},
                             {"meets_all_limits", place_object(r.meets)},
                             {"why_not", text_or_null(r.why_not)}});
  out["parameter_servers"] = nullptr;
  if (a.servers) {
    Json steps = Json::array();
    for (const Seconds s : a.servers->steps) steps.push_back(s.count());
    out["parameter_servers"] = {
        {"no_bottleneck_from", a.servers->enough ? Json(*a.servers->enough) : Json(nullptr)},
        {"no_gain_beyond", a.servers->no_gain ? Json(*a.servers->no_gain) : Json(nullptr)},
        {"step_seconds", std::move(steps)}};
  }
  return dump(out, 2);
}

}  // namespace reckon
