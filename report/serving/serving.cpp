#include "report/serving/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/serving/json.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kSliceWidth = 24;
const std::string kUnknown = "-";

std::string rate_text(double rate) {
  return format_count(rate >= 100 ? std::round(rate) : std::round(rate * 10) / 10) + " requests/s";
}

std::string serving_answer(const ServingForecast& f) {
  Columns facts(Columns::Kind::facts);
  const bool timed = f.service.latency.count() > 0;
  facts.row({"latency", !timed ? "unknown: no request was answered"
                               : fmt::format("p50 {}, p95 {}, p99 {} (mean {}, longest {})",
                                             format_duration(f.p50), format_duration(f.p95),
                                             format_duration(f.p99), format_duration(f.mean),
                                             format_duration(f.service.latency.largest()))});
  facts.row({"answered",
             fmt::format("{}, {} of the requests refused{}", rate_text(f.requests_per_second),
                         format_percent(f.refused_share), f.service.lost > 0 ? " or lost" : "")});
  const auto& r = f.service;
  facts.row({"replicas", fmt::format("{:.1f} on average ({} .. {}), {} busy, batches of {:.1f}",
                                     f.replicas, r.ready_least, r.ready_most,
                                     format_percent(r.utilization()), r.batch_mean())});
  std::string cost = "unknown: see the warnings";
  if (f.cost_usd) {
    cost = fmt::format("{} for {}", format_usd(Usd{*f.cost_usd}), format_duration(f.period));
    if (f.usd_per_million)
      cost += fmt::format(", {} a million requests", format_usd(Usd{*f.usd_per_million}));
  }
  facts.row({"cost", cost});
  facts.row({"nodes of " + f.pool, fmt::format("{:.1f} node-hours", f.node_hours)});
  if (r.reclaims > 0)
    facts.row({"reclaimed",
               fmt::format("{} nodes, and {} requests with them", format_count(double(r.reclaims)),
                           r.lost == 0 ? "no" : format_count(double(r.lost)))});
  return facts.text();
}

/// What the answer would be at both ends of what a batch takes.
std::string serving_range(const ServingForecast& f) {
  if (!f.range) return "";
  Columns rows;
  rows.row({"", "batch of " + std::to_string(f.batch_max), "p50", "p95", "p99", "replicas",
            "refused", "cost"});
  const auto row = [&](const char* name, const ServingEnd& e) {
    rows.row({name, format_duration(e.batch_full), format_duration(e.p50), format_duration(e.p95),
              format_duration(e.p99), fmt::format("{:.1f}", e.replicas),
              format_percent(e.refused_share),
              e.cost_usd ? format_usd(Usd{*e.cost_usd}) : kUnknown});
  };
  row("fast", f.range->fast);
  row("said", {f.batch_full, f.p50, f.p95, f.p99, f.replicas, f.refused_share, f.cost_usd});
  row("slow", f.range->slow);
  return "\nAt the 5th and 95th percentile of the batch time\n" + rows.text();
}

std::string replica(const ServingForecast& f) {
  Columns facts(Columns::Kind::facts);
  facts.row({"forward pass",
             fmt::format("{} for one request, {} for a batch of {}", format_duration(f.batch_one),
                         format_duration(f.batch_full), f.batch_max)});
  facts.row({"at most", rate_text(f.capacity) + " with full batches"});
  facts.row({"memory", memory_text(f.memory)});
  return "\nA replica\n" + facts.text();
}

std::string timeline(const ServingForecast& f) {
  double most = 0;
  for (const ServiceSlice& s : f.service.slices) most = std::max(most, s.ready);
  Columns rows;
  rows.row({"from", "requests/s", "replicas", "busy", "p50", "p99", ""});
  for (const ServiceSlice& s : f.service.slices)
    rows.row({format_duration(s.from), fmt::format("{:.1f}", double(s.arrived) / s.length.count()),
              fmt::format("{:.1f}", s.ready),
              s.ready > 0 ? format_percent(s.utilization) : kUnknown,
              s.timed > 0 ? format_duration(s.p50) : kUnknown,
              s.timed > 0 ? format_duration(s.p99) : kUnknown,
              bar(most > 0 ? s.ready / most : 0, kSliceWidth)});
  return "\nReplicas over time\n" + rows.text();
}

std::string serving_warnings(const ServingForecast& f, int width) {
  if (f.warnings.empty()) return "";
  std::string out = "\nWarnings of serving\n";
  for (const std::string& text : f.warnings) {
    const char* lead = "  - ";
    for (const std::string& line : wrap(text, width - 4)) {
      out += lead + line + '\n';
      lead = "    ";
    }
  }
  return out;
}

/// null where nothing was counted.
Json known(bool is_known, double value) { return is_known ? Json(value) : Json(); }

Json json_of_served(const ServingEnd& e) {
  return {{"batch_full_seconds", e.batch_full.count()},
          {"latency_p50_seconds", e.p50.count()},
          {"latency_p95_seconds", e.p95.count()},
          {"latency_p99_seconds", e.p99.count()},
          {"replicas", e.replicas},
          {"refused_share", e.refused_share},
          {"cost_usd", e.cost_usd ? Json(*e.cost_usd) : Json()}};
}

Json json_of_served(const ServiceSlice& s) {
  return {{"from_seconds", s.from.count()},
          {"requests_per_second", double(s.arrived) / s.length.count()},
          {"replicas", s.ready},
          {"utilization", known(s.ready > 0, s.utilization)},
          {"latency_p50_seconds", known(s.timed > 0, s.p50.count())},
          {"latency_p99_seconds", known(s.timed > 0, s.p99.count())}};
}

}  // namespace

std::string serving_table(const ServingForecast& f, int width) {
  const std::string on = f.accelerator.empty() ? "CPUs" : f.accelerator;
  return fmt::format("Serving {} on {} ({}, seed {})\n", f.model, on, f.precision, f.seed) +
         serving_answer(f) + serving_range(f) + replica(f) + timeline(f) +
         serving_warnings(f, width);
}

Json serving_object(const ServingForecast& f) {
  const bool timed = f.service.latency.count() > 0;
  const auto price = [](const std::optional<double>& usd) { return usd ? Json(*usd) : Json(); };
  Json out = {
      {"model", f.model},
      {"pool", f.pool},
      {"accelerator", text_or_null(f.accelerator)},
      {"precision", f.precision},
      {"period_seconds", f.period.count()},
      {"latency_seconds",
       {{"mean", known(timed, f.mean.count())},
        {"p50", known(timed, f.p50.count())},
        {"p95", known(timed, f.p95.count())},
        {"p99", known(timed, f.p99.count())},
        {"max", known(timed, f.service.latency.largest().count())}}},
      {"requests_per_second", f.requests_per_second},
      {"refused_share", f.refused_share},
      {"nodes_taken_back", f.service.reclaims},
      {"requests_lost", f.service.lost},
      {"waiting_at_end", f.service.waiting_end},
      {"batch_mean", f.service.batch_mean()},
      {"batch_seconds", {{"one", f.batch_one.count()}, {"full", f.batch_full.count()}}},
      {"replica_requests_per_second_max", f.capacity},
      {"utilization", f.service.utilization()},
      {"replicas",
       {{"mean", f.replicas}, {"min", f.service.ready_least}, {"max", f.service.ready_most}}},
      {"memory", memory_object(f.memory)},
      {"node_hours", f.node_hours},
      {"cost_usd", price(f.cost_usd)},
      {"cost_per_million_requests_usd", price(f.usd_per_million)}};
  out["range"] =
      f.range ? Json{{"p5", json_of_served(f.range->fast)}, {"p95", json_of_served(f.range->slow)}}
              : Json();
  out["timeline"] = Json::array();
  for (const ServiceSlice& s : f.service.slices) out["timeline"].push_back(json_of_served(s));
  out["prices_as_of"] = text_or_null(f.prices_as_of);
  out["warnings"] = f.warnings;
  return out;
}

std::string serving_json(const ServingForecast& f) {
  Json out = head("simulate");
  out["scenario"] = f.scenario;
  out["seed"] = f.seed;
  out["serving"] = serving_object(f);
  out["catalog_digest"] = text_or_null(f.catalog_digest);
  out["calibrations"] = f.calibrations;
  return dump(out, 2);
}

}  // namespace reckon
