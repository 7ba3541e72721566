#include "report/plan/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/json_parts.h"
#include "report/plan/parts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using planner::FleetAnswer;
using planner::FleetOption;
using planner::FleetPool;

const FleetOption& option_of(const FleetAnswer& a, std::size_t job) {
  return a.fleet.options[a.fleet.jobs[job].kind][a.choice->runs[job].option];
}

/// Number of the pool in the answer: from 1, in the order in which they were found.
std::size_t number_of(const FleetAnswer& a, std::size_t pool) {
  const auto found = std::ranges::find(a.replay->pools, pool, &planner::ReplayedPool::pool);
  return std::size_t(found - a.replay->pools.begin()) + 1;
}

std::string hours(double seconds) { return format_duration(Seconds{seconds}); }

double gap(double program, double replayed) { return replayed / program - 1; }

std::string question_text(const FleetAnswer& a) {
  std::string text = fmt::format(
      "{} jobs, {}, period {}", a.fleet.jobs.size(),
      a.fleet.by_time ? "all done soonest, then at the lowest cost" : "lowest mean cost",
      hours(a.fleet.period));
  if (a.fleet.budget) text += ", budget " + a.fleet.budget->text;
  for (const auto& [place, count] : a.fleet.quota)
    text += fmt::format(", at most {} of {}", count, place);
  return text;
}

std::string pools_text(const FleetAnswer& a) {
  Columns rows;
  rows.row({"", "nodes", "of", "where", "bought", "cost", "node hours"});
  for (std::size_t k = 0; k < a.replay->pools.size(); ++k) {
    const planner::ReplayedPool& p = a.replay->pools[k];
    const FleetPool& pool = a.fleet.pools[p.pool];
    double node_hours = 0;
    for (const auto& [name, h] : p.forecast.node_hours) node_hours += h;
    rows.row({fmt::format("{}", k + 1),
              pool.held ? fmt::format("{} held", p.nodes) : fmt::format("0..{}", p.nodes),
              fmt::format("{} with {} {}", pool.hardware.machine, pool.hardware.per_node,
                          pool.hardware.accelerator),
              fmt::format("{} {}", to_text(pool.hardware.provider), pool.offer.region),
              std::string(to_text(pool.offer.pricing)),
              p.forecast.cost_usd ? usd_value(p.forecast.cost_usd->mean + p.held_usd) : "unknown",
              fmt::format("{:.1f}", node_hours)});
  }
  return "\nPools\n" + rows.text();
}

std::string jobs_text(const FleetAnswer& a) {
  Columns rows;
  rows.row({"", "pool", "nodes", "start", "program", "replay", "deadline", ""});
  for (std::size_t j = 0; j < a.fleet.jobs.size(); ++j) {
    const planner::FleetJob& job = a.fleet.jobs[j];
    const FleetOption& o = option_of(a, j);
    const double start = a.choice->runs[j].start;
    const planner::ReplayedJob& r = a.replay->jobs[j];
    rows.row({job.name, fmt::format("{}", number_of(a, o.pool)), fmt::format("{}", o.nodes()),
              hours(start), time_value(Seconds{start - job.submit + o.seconds}),
              time_range(r.seconds), job.deadline ? job.deadline->text : "-",
              r.meets ? "" : "missed: " + time_value(Seconds{r.held_to})});
  }
  return "\nJobs\n" + rows.text() +
         fmt::format(
             "  times are from the submit to the end: the program's mean, and median (5th .. "
             "95th percentile)\n  of the replay's {} replications, seed {}\n",
             format_count(a.replications), a.seed);
}

std::string totals_text(const FleetAnswer& a, int width) {
  const planner::FleetChoice& c = *a.choice;
  const planner::Replay& r = *a.replay;
  std::string out = "\nProgram and replay\n";
  Columns rows;
  rows.row({"", "program", "replay: mean", "replay", "gap"});
  rows.row({"cost", usd_value(c.usd), usd_value(r.usd.mean), usd_range(r.usd),
            fmt::format("{:+.1f} %", 100 * gap(c.usd, r.usd.mean))});
  rows.row({"last end", time_value(Seconds{c.end}), time_value(Seconds{r.end_seconds.mean}),
            time_range(r.end_seconds),
            fmt::format("{:+.1f} %", 100 * gap(c.end, r.end_seconds.mean))});
  out += rows.text();
  add_lines(out, "  ",
            fmt::format(
                "The program has {} columns and {} rows; {}. Its options are {} forecasts of "
                "{} replications of one job alone, of {} candidates considered.",
                format_count(double(a.columns)), format_count(double(a.rows)),
                a.proven ? "no choice of these options is better"
                         : fmt::format("it was stopped, and no choice costs less than {}",
                                       usd_value(a.bound)),
                [&] {
                  std::size_t n = 0;
                  for (const auto& kind : a.fleet.options) n += kind.size();
                  return n;
                }(),
                a.option_replications, format_count(double(a.considered))),
            width);
  const auto times = [&] {
    return a.solved_again == 1 ? std::string("once") : fmt::format("{} times", a.solved_again);
  };
  if (a.solved_again > 0)
    add_lines(
        out, "  ",
        r.meets_all()
            ? fmt::format("The first choice missed a limit in the replay. Solved again {} with the "
                          "replays' results, the program chose this one, which meets all limits.",
                          times())
            : fmt::format("This choice misses a limit in its replay. Solved again {} with the "
                          "replays' results, the program found none that meets all limits.",
                          times()),
        width);
  if (!r.meets_budget)
    add_lines(out, "  ",
              fmt::format("The budget of {} is missed in the replay: {}.", a.fleet.budget->text,
                          usd_value(r.budget_held_to)),
              width);
  return out;
}

std::string binding_text(const FleetAnswer& a, int width) {
  std::string out = "\nWhat binds\n";
  if (a.limits.empty())
    add_lines(out, "  ", "No limit: without any of them the plan is the same.", width);
  const double now = a.fleet.by_time ? a.choice->end : a.choice->usd;
  for (const planner::FleetLimit& l : a.limits)
    add_lines(out, "  ",
              fmt::format("Without the {}: {} instead of {}.", l.name,
                          a.fleet.by_time ? hours(*l.without) : usd_value(*l.without),
                          a.fleet.by_time ? hours(now) : usd_value(now)),
              width);
  return out;
}

std::string relaxation_in_words(const planner::FleetLimit& l) {
  if (!l.needed) return "A longer period would do.";
  if (l.unit == "USD") return fmt::format("A budget of {} would do.", usd_value(*l.needed));
  if (l.unit == "s later") return fmt::format("Deadlines {} later would do.", hours(*l.needed));
  return fmt::format("A quota of {:.0f} accelerators more would do.", std::ceil(*l.needed));
}

std::string none_text(const FleetAnswer& a, int width) {
  std::string out = "\nNo plan fits\n";
  for (const std::string& why : a.without_plan) add_lines(out, "  ", why + ".", width);
  for (const planner::FleetLimit& l : a.limits)
    add_lines(out, "  ",
              fmt::format("The {} {}. {}", l.name, l.name.back() == 's' ? "bind" : "binds",
                          relaxation_in_words(l)),
              width);
  if (a.without_plan.empty() && a.limits.empty())
    add_lines(out, "  ", "No single limit is the reason: more than one would have to be relaxed.",
              width);
  return out;
}

Json pools_json(const FleetAnswer& a) {
  Json out = Json::array();
  for (const planner::ReplayedPool& p : a.replay->pools) {
    const FleetPool& pool = a.fleet.pools[p.pool];
    out.push_back({{"provider", to_text(pool.hardware.provider)},
                   {"region", pool.offer.region},
                   {"machine", text_or_null(pool.hardware.machine)},
                   {"accelerator", pool.hardware.accelerator},
                   {"accelerators_per_node", pool.hardware.per_node},
                   {"pricing", to_text(pool.offer.pricing)},
                   {"nodes_min", a.choice->held[p.pool]},
                   {"nodes_max", p.nodes},
                   {"held_until_period_usd", p.held_usd},
                   {"forecast", forecast_object(p.forecast)}});
  }
  return out;
}

Json jobs_json(const FleetAnswer& a) {
  Json out = Json::array();
  for (std::size_t j = 0; j < a.fleet.jobs.size(); ++j) {
    const planner::FleetJob& job = a.fleet.jobs[j];
    const FleetOption& o = option_of(a, j);
    const planner::ReplayedJob& r = a.replay->jobs[j];
    const double start = a.choice->runs[j].start;
    out.push_back({{"name", job.name},
                   {"pool", number_of(a, o.pool)},
                   {"nodes", o.nodes()},
                   {"submit_seconds", job.submit},
                   {"start_seconds", start},
                   {"program_seconds", start - job.submit + o.seconds},
                   {"program_usd", o.usd},
                   {"replay_seconds", json_of(r.seconds)},
                   {"deadline_seconds", job.deadline ? Json(job.deadline->value) : Json(nullptr)},
                   {"held_to_seconds", number(r.held_to)},
                   {"meets_deadline", r.meets}});
  }
  return out;
}

Json limits_json(const FleetAnswer& a) {
  Json out = Json::array();
  for (const planner::FleetLimit& l : a.limits)
    out.push_back({{"limit", l.name},
                   {"without", l.without ? Json(*l.without) : Json(nullptr)},
                   {"needed", l.needed ? Json(*l.needed) : Json(nullptr)},
                   {"unit", text_or_null(l.unit)}});
  return out;
}

}  // namespace

bool fleet_fits(const FleetAnswer& a) { return a.replay && a.replay->meets_all(); }

std::string fleet_table(const FleetAnswer& a, int width) {
  std::string out;
  add_lines(out, "", fmt::format("{}: {}", a.scenario, question_text(a)), width);
  if (!a.choice) return out + none_text(a, width);
  return out + pools_text(a) + jobs_text(a) + totals_text(a, width) + binding_text(a, width);
}

std::string fleet_json(const FleetAnswer& a) {
  Json json = head("plan");
  json["scenario"] = a.scenario;
  json["objective"] = to_text(a.objective);
  json["seed"] = a.seed;
  json["replications"] = a.replications;
  json["candidates_considered"] = a.considered;
  json["period_seconds"] = a.fleet.period;
  Json fleet;
  fleet["program"] = {{"columns", a.columns},
                      {"rows", a.rows},
                      {"proven", a.proven},
                      {"solved_again", a.solved_again},
                      {"option_replications", a.option_replications},
                      {"cost_usd", a.choice ? Json(a.choice->usd) : Json(nullptr)},
                      {"end_seconds", a.choice ? Json(a.choice->end) : Json(nullptr)}};
  fleet["pools"] = a.choice ? pools_json(a) : Json::array();
  fleet["jobs"] = a.choice ? jobs_json(a) : Json::array();
  fleet["limits"] = limits_json(a);
  fleet["replay"] = nullptr;
  if (a.replay)
    fleet["replay"] = {{"cost_usd", json_of(a.replay->usd)},
                       {"end_seconds", json_of(a.replay->end_seconds)},
                       {"cost_gap", number(gap(a.choice->usd, a.replay->usd.mean))},
                       {"end_gap", number(gap(a.choice->end, a.replay->end_seconds.mean))},
                       {"meets_all", a.replay->meets_all()}};
  json["fleet"] = std::move(fleet);
  json["infeasible"] =
      a.choice ? Json(nullptr) : Json({{"jobs", a.without_plan}, {"limits", limits_json(a)}});
  return dump(json, 2);
}

}  // namespace reckon
