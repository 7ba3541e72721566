#include "report/trace_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/json_parts.h"
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
  if (r.never > 0)
    text += fmt::format(", {} ask for more GPUs than the cluster has at once",
                        format_count(double(r.never)));
  return text;
}

std::string facts(const TraceResult& r) {
  Columns rows(Columns::Kind::facts);
  if (r.waiting) rows.row({"waiting", spread(*r.waiting)});
  if (r.completion) rows.row({"completion (JCT)", spread(*r.completion)});
  if (r.makespan_seconds) rows.row({"makespan", format_duration(Seconds{*r.makespan_seconds})});
  if (r.utilization) rows.row({"utilization", format_percent(*r.utilization) + " of the GPUs"});
  if (r.allocation) rows.row({"allocation", format_percent(*r.allocation) + " of the GPUs"});
  if (r.fragmentation)
    rows.row({"fragmentation", format_percent(*r.fragmentation) + " of the GPUs left"});
  rows.row({r.curve ? "pods" : "jobs", job_counts(r)});
  rows.row({"cluster", fmt::format("{} GPUs, policy {}", format_count(r.gpus), to_text(r.policy))});
  if (r.curve)
    rows.row({"seed", r.replications == 1
                          ? std::to_string(r.seed)
                          : fmt::format("mean of {} .. {}", r.seed,
                                        r.seed + std::uint64_t(r.replications) - 1)});
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

}  // namespace

std::string queue_table(const TraceResult& result, int width) {
  std::string out = fmt::format("{}\n\n{}", result.scenario, facts(result));
  if (result.curve)
    out += fmt::format("\nOver the GPUs that arrived pods ask for\n{}", over_load(*result.curve));
  for (const std::string& warning : result.warnings) {
    std::string lines = fmt::format("{}", fmt::join(wrap("note: " + warning, width), "\n"));
    out += "\n" + lines + "\n";
  }
  return out;
}

std::string queue_json(const TraceResult& r) {
  Json out = head("simulate");
  out["scenario"] = r.scenario;
  out["policy"] = to_text(r.policy);
  out["seed"] = r.seed;
  out["replications"] = r.replications;
  out["gpus"] = r.gpus;
  out["jobs"] = {
      {"arrived", r.jobs}, {"started", r.started}, {"never", r.never}, {"measured", r.measured}};
  out["waiting_seconds"] = json_of_times(r.waiting);
  out["jct_seconds"] = json_of_times(r.completion);
  out["makespan_seconds"] = json_or_null(r.makespan_seconds);
  out["utilization"] = json_or_null(r.utilization);
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
  return dump(out, 2);
}

ExpectationResult evaluate(const Expectation& expectation, const TraceResult& result) {
  ExpectationResult out{expectation.text, std::nullopt, false, ""};
  if (!is_of_trace(expectation.metric)) {
    out.reason =
        "a trace has the metrics wait, jct, makespan, utilization, allocation and "
        "fragmentation";
    return out;
  }
  out.value = value_of(expectation, result);
  if (!out.value)
    out.reason = result.curve ? "with a load no job ends: allocation and fragmentation are told"
                              : "no job of the window ended, or the statistic is none of mean, "
                                "p50 and p95";
  else
    out.passed = holds(*out.value, expectation.comparison, expectation.value);
  return out;
}

}  // namespace reckon
