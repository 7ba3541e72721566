#include "report/queue/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/json_parts.h"
#include "report/queue/karpenter.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

std::string spread(const TimeStatistics& times) {
  if (times.count == 0) return "unknown: no job of the window ended";
  return fmt::format("p50 {}, p95 {} (mean {})", format_duration(Seconds{times.p50}),
                     format_duration(Seconds{times.p95}), format_duration(Seconds{times.mean}));
}

std::string job_counts(const TraceResult& r) {
  const bool stay = r.curve.has_value();
  std::string text =
      fmt::format("{} {}, {} {}", format_count(double(r.jobs)), stay ? "pods arrived" : "jobs",
                  format_count(double(r.started)), stay ? "placed" : "started");
  if (!stay) text += fmt::format(", {} measured", format_count(double(r.measured)));
  if (r.never > 0) text += fmt::format(", {} can never run", format_count(double(r.never)));
  return text;
}

std::string money(const TraceResult& r, double usd) {
  return fmt::format("{} {}", format_count(std::round(usd * r.usd_rate)), r.currency);
}

/// "12 jobs, 340 node hours, 3 reclaims, 8,160 USD of the cost".
std::string overflow_text(const TraceResult& r) {
  std::string text =
      fmt::format("{} jobs, {} node hours", format_count(std::round(*r.overflow_jobs)),
                  format_count(std::round(r.overflow_node_hours.value_or(0))));
  if (r.overflow_reclaims.value_or(0) > 0)
    text += fmt::format(", {} reclaims", format_count(std::round(*r.overflow_reclaims)));
  if (r.overflow_usd)
    text += fmt::format(", {}{}", money(r, *r.overflow_usd), r.cost_usd ? " of the cost" : "");
  return text;
}

std::string facts(const TraceResult& r) {
  Columns rows(Columns::Kind::facts);
  if (r.waiting) rows.row({"waiting", spread(*r.waiting)});
  if (r.completion) rows.row({"completion (JCT)", spread(*r.completion)});
  if (r.slowdown && r.slowdown->count > 0)
    rows.row({"slowdown", fmt::format("p50 {:.3g}, p95 {:.3g} (mean {:.3g})", r.slowdown->p50,
                                      r.slowdown->p95, r.slowdown->mean)});
  if (r.fairness)
    rows.row({"fairness", fmt::format("{} between {} teams (Jain's index of mean slowdowns)",
                                      format_percent(*r.fairness), r.teams.size())});
  if (r.preemptions && *r.preemptions > 0) rows.row({"preemptions", format_count(*r.preemptions)});
  if (r.makespan_seconds) rows.row({"makespan", format_duration(Seconds{*r.makespan_seconds})});
  if (r.utilization) rows.row({"utilization", format_percent(*r.utilization) + " of the GPUs"});
  constexpr double kHardlyAny = 0.9995;
  if (r.goodput && r.preemptions.value_or(0) > 0)
    rows.row(
        {"goodput", format_percent(*r.goodput) + " of the GPU time held: the rest was redone"});
  else if (r.goodput && *r.goodput < kHardlyAny)
    rows.row({"goodput", format_percent(*r.goodput) +
                             " of the GPU time held: the rest is what slower nodes take longer"});
  if (r.cost_usd)
    rows.row({"cost", money(r, *r.cost_usd) + (r.karpenter ? " for all nodes while they were there"
                                                           : " for all nodes over the makespan")});
  if (r.overflow_jobs) rows.row({"overflow", overflow_text(r)});
  if (r.karpenter) {
    rows.row({"nodes made", nodes_made_text(r)});
    rows.row({"consolidation", consolidation_text(r)});
  }
  if (r.energy_joules) rows.row({"energy", format_energy(*r.energy_joules)});
  if (r.curve && r.allocation)
    rows.row({"allocation", format_percent(*r.allocation) + " of the GPUs"});
  if (r.fragmentation)
    rows.row({"fragmentation",
              format_percent(*r.fragmentation) +
                  (r.curve ? " of the GPUs left" : " of the free GPUs are of no use to the jobs")});
  rows.row({r.curve ? "pods" : "jobs", job_counts(r)});
  rows.row({"cluster",
            fmt::format("{} GPUs{}, policy {}", format_count(r.gpus),
                        r.karpenter ? " at most, made by Karpenter" : "", to_text(r.policy))});
  if (r.curve || r.replications > 1)
    rows.row({"seed", r.replications == 1 ? std::to_string(r.seed)
                      : r.curve
                          ? fmt::format("mean of {} .. {}", r.seed,
                                        r.seed + std::uint64_t(r.replications) - 1)
                          : fmt::format("mean of {} replications of {}", r.replications, r.seed)});
  return rows.text();
}

std::string by_team(const TraceResult& r) {
  constexpr double kSecondsOfHour = 3600;
  const auto spread = [](const TimeStatistics& t) {
    return fmt::format("{} / {}", format_duration(Seconds{t.p50}), format_duration(Seconds{t.p95}));
  };
  const bool priced = r.cost_usd.has_value(), powered = r.energy_joules.has_value();
  const auto row = [&](std::vector<std::string> cells, double usd, double joules) {
    if (priced) cells.push_back(money(r, usd));
    if (powered) cells.push_back(format_energy(joules));
    return cells;
  };
  Columns rows;
  std::vector<std::string> head{"team",           "jobs",          "GPU-hours",
                                "wait p50 / p95", "JCT p50 / p95", "slowdown"};
  if (priced) head.emplace_back("cost");
  if (powered) head.emplace_back("energy");
  rows.row(std::move(head));
  double usd = r.cost_usd.value_or(0), joules = r.energy_joules.value_or(0);
  for (const TeamAnswer& t : r.teams) {
    usd -= t.usd.value_or(0);
    joules -= t.joules.value_or(0);
    rows.row(row({t.name, format_count(double(t.jobs)),
                  format_count(std::round(t.gpu_seconds / kSecondsOfHour)), spread(t.waiting),
                  spread(t.completion), fmt::format("{:.3g}", t.slowdown.mean)},
                 t.usd.value_or(0), t.joules.value_or(0)));
  }
  if (priced || powered) rows.row(row({"nobody", "", "", "", "", ""}, usd, joules));
  return rows.text();
}

std::string over_load(const LoadCurve& curve) {
  constexpr std::array kLoads{50, 80, 90, 95, 100, 110, 120, 130, 150, 200};
  Columns rows;
  rows.row({"arrived", "allocation", "fragmentation"});
  for (const int load : kLoads) {
    if (std::size_t(load) > curve.gpu_percent.size()) break;
    const auto at = std::size_t(load) - 1;
    rows.row({fmt::format("{} %", load), fmt::format("{:.2f} %", curve.gpu_percent[at]),
              fmt::format("{:.1f} %", curve.fragmentation_percent[at])});
  }
  return rows.text();
}

Json json_of_times(const std::optional<TimeStatistics>& times) {
  if (!times || times->count == 0) return nullptr;
  return {{"mean", reckon::number(times->mean)},
          {"p50", reckon::number(times->p50)},
          {"p95", reckon::number(times->p95)}};
}

Json json_or_null(const std::optional<double>& value) {
  return value ? reckon::number(*value) : Json(nullptr);
}

Json json_of_teams(const std::vector<TeamAnswer>& teams) {
  Json out = Json::array();
  for (const TeamAnswer& t : teams)
    out.push_back({{"team", t.name},
                   {"jobs", t.jobs},
                   {"gpu_seconds", reckon::number(t.gpu_seconds)},
                   {"waiting_seconds", json_of_times(t.waiting)},
                   {"jct_seconds", json_of_times(t.completion)},
                   {"slowdown", json_of_times(t.slowdown)},
                   {"cost_usd", json_or_null(t.usd)},
                   {"energy_joules", json_or_null(t.joules)}});
  return out;
}

Json queue_object(const TraceResult& r) {
  Json out;
  out["scenario"] = r.scenario;
  out["policy"] = to_text(r.policy);
  out["seed"] = r.seed;
  out["replications"] = r.replications;
  out["gpus"] = r.gpus;
  out["jobs"] = {
      {"arrived", r.jobs}, {"started", r.started}, {"never", r.never}, {"measured", r.measured}};
  out["waiting_seconds"] = json_of_times(r.waiting);
  out["jct_seconds"] = json_of_times(r.completion);
  out["slowdown"] = json_of_times(r.slowdown);
  out["fairness"] = json_or_null(r.fairness);
  out["preemptions"] = json_or_null(r.preemptions);
  out["goodput"] = json_or_null(r.goodput);
  out["cost_usd"] = json_or_null(r.cost_usd);
  out["energy_joules"] = json_or_null(r.energy_joules);
  out["overflow"] = nullptr;
  if (r.overflow_jobs)
    out["overflow"] = {{"jobs", *r.overflow_jobs},
                       {"reclaims", json_or_null(r.overflow_reclaims)},
                       {"node_hours", json_or_null(r.overflow_node_hours)},
                       {"cost_usd", json_or_null(r.overflow_usd)}};
  out["karpenter"] = nullptr;
  if (r.karpenter) out["karpenter"] = json_of_karpenter(r);
  out["teams"] = json_of_teams(r.teams);
  out["makespan_seconds"] = json_or_null(r.makespan_seconds);
  out["utilization"] = json_or_null(r.utilization);
  out["fragmentation"] = json_or_null(r.fragmentation);
  out["allocation"] = nullptr;
  out["fragmentation_percent"] = nullptr;
  if (r.curve) {
    Json arrived = Json::array();
    for (std::size_t k = 1; k <= r.curve->gpu_percent.size(); ++k) arrived.push_back(k);
    out["allocation"] = {{"arrived_percent", std::move(arrived)},
                         {"gpu_percent", r.curve->gpu_percent},
                         {"at_end", json_or_null(r.allocation)}};
    out["fragmentation_percent"] = r.curve->fragmentation_percent;
  }
  out["warnings"] = r.warnings;
  return out;
}

}  // namespace

std::string queue_table(const TraceResult& result, int width) {
  std::string out = fmt::format("{}\n\n{}", result.scenario, facts(result));
  if (result.curve) out += fmt::format("\nBy arrived GPU demand\n{}", over_load(*result.curve));
  if (!result.teams.empty()) out += "\n" + by_team(result);
  for (const std::string& warning : result.warnings) {
    std::string lines = fmt::format("{}", fmt::join(wrap("note: " + warning, width), "\n"));
    out += "\n" + lines + "\n";
  }
  return out;
}

std::string queue_json(const TraceResult& r) {
  Json out = head("simulate");
  out.update(queue_object(r));
  return dump(out, 2);
}

namespace {

std::vector<std::string> sweep_cells(const TraceResult& r) {
  const auto time = [](const std::optional<TimeStatistics>& t, double TimeStatistics::*which) {
    return t && t->count > 0 ? format_duration(Seconds{(*t).*which}) : std::string("-");
  };
  const auto share = [](const std::optional<double>& v) {
    return v ? format_percent(*v) : std::string("-");
  };
  return {time(r.waiting, &TimeStatistics::p50),
          time(r.waiting, &TimeStatistics::p95),
          time(r.completion, &TimeStatistics::p50),
          time(r.completion, &TimeStatistics::p95),
          r.slowdown && r.slowdown->count > 0 ? fmt::format("{:.3g}", r.slowdown->mean) : "-",
          share(r.fairness),
          share(r.curve ? r.allocation : r.utilization),
          r.never > 0 ? fmt::format("{} never run", format_count(double(r.never))) : ""};
}

}  // namespace

std::string queue_sweep_table(const QueueSweep& sweep, int width) {
  constexpr std::array kColumns{"wait p50", "wait p95", "JCT p50", "JCT p95",
                                "slowdown", "fairness", "used",    ""};
  return sweep_table(
      sweep.scenario, sweep.paths, kColumns,
      rows_of(sweep, [&](std::size_t k) { return sweep_cells(*sweep.points[k].forecast); }), "",
      width);
}

std::string queue_sweep_json(const QueueSweep& sweep) {
  Json out = head("simulate");
  out["scenario"] = sweep.scenario;
  out["sweep"] = points_array(sweep, "queue", queue_object);
  return dump(out, 2);
}

ExpectationResult evaluate(const Expectation& expectation, const TraceResult& result) {
  ExpectationResult out{expectation.text, std::nullopt, false, ""};
  const bool costs = expectation.metric == Metric::cost || expectation.metric == Metric::energy;
  if (!is_of_trace(expectation.metric) && !costs && expectation.metric != Metric::goodput) {
    out.reason =
        "a queue of jobs has the metrics wait, jct, slowdown, fairness, preemptions, goodput, "
        "makespan, utilization, allocation, fragmentation, cost and energy";
    return out;
  }
  out.value = value_of(expectation, result);
  if (!out.value)
    out.reason = result.curve
                     ? "with trace.load no job ends: use the metrics allocation and fragmentation"
                 : costs ? "the machine of a pool says no price or power of its own (machine: "
                           "{price: ..., power: ...}), or the statistic is not the mean"
                 : expectation.metric == Metric::fairness
                     ? "fairness needs jobs of at least two teams"
                     : "no job of the window ended, or the statistic is none of mean, "
                       "p50 and p95";
  else
    out.passed = holds(*out.value, expectation.comparison, expectation.value);
  return out;
}

}  // namespace reckon
