#include "report/compare.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "report/html/charts.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using html::BarRow;
using html::Chart;
using html::Page;
using html::Table;
using Names = std::span<const std::string>;

/// What is compared: time or cost.
struct ComparedMeasure {
  std::string id, title, axis;
  double unit = 1;
  std::function<const Quantiles*(const Forecast&)> of;  // nullptr: it is unknown
  std::function<std::string(const Quantiles&)> text;
};

const Quantiles* time_of(const Forecast& f) {
  return f.feasible && std::isfinite(f.time_seconds.p95) ? &f.time_seconds : nullptr;
}
const Quantiles* cost_of(const Forecast& f) {
  return f.feasible && f.cost_usd && std::isfinite(f.cost_usd->p95) ? &*f.cost_usd : nullptr;
}

double largest_time(const CandidateComparison& c) {
  double largest = 0;
  for (const Forecast& f : c.forecasts)
    if (const Quantiles* q = time_of(f)) largest = std::max(largest, q->p50);
  return largest;
}

std::string full_name(std::size_t k, Names names) {
  return fmt::format("{}: {}", candidate_letter(k), names[k]);
}

std::optional<Chart> ranges(const CandidateComparison& c, Names names, const ComparedMeasure& m) {
  std::vector<BarRow> rows;
  std::string description = m.title + ":";
  for (std::size_t k = 0; k < names.size(); ++k)
    if (const Quantiles* q = m.of(c.forecasts[k])) {
      rows.push_back({full_name(k, names), m.text(*q), q->p5 / m.unit, q->p95 / m.unit,
                      "var(--second)", q->p50 / m.unit});
      description += fmt::format(" {} {};", rows.back().name, rows.back().value);
    }
  if (rows.empty()) return std::nullopt;
  Chart chart{m.id, m.title, "The median and, as a bar, the 5th to the 95th percentile.",
              {},   {},      {}};
  html::BarScale scale{m.axis, {}, {}, {}};
  scale.from_zero = false;
  chart.spec = html::bar_rows(description, rows, scale);
  chart.numbers.head = {"plan", "median (5th to 95th percentile)"};
  for (const BarRow& r : rows) chart.numbers.rows.push_back({r.name, r.value});
  return chart;
}

Json axis_encoding(const char* field, const std::string& title) {
  return {{"field", field},
          {"type", "quantitative"},
          {"scale", {{"zero", false}}},
          {"axis", {{"title", title}, {"tickCount", 5}}}};
}

/// Each plan as a cross of its two ranges.
std::optional<Chart> time_and_cost(const CandidateComparison& c, Names names,
                                   const ComparedMeasure& time, const ComparedMeasure& cost) {
  Json values = Json::array();
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Quantiles* t = time.of(c.forecasts[k]);
    const Quantiles* usd = cost.of(c.forecasts[k]);
    if (t == nullptr || usd == nullptr) continue;
    values.push_back({{"plan", candidate_letter(k)},
                      {"name", names[k]},
                      {"time", t->p50 / time.unit},
                      {"time_low", t->p5 / time.unit},
                      {"time_high", t->p95 / time.unit},
                      {"cost", usd->p50},
                      {"cost_low", usd->p5},
                      {"cost_high", usd->p95},
                      {"times", time.text(*t)},
                      {"costs", cost.text(*usd)}});
  }
  if (values.empty()) return std::nullopt;
  const Json mark = {{"type", "rule"}, {"strokeWidth", 2}, {"color", "var(--second)"}};
  const auto x = [&](const char* field) { return axis_encoding(field, time.axis); };
  const auto y = [&](const char* field) { return axis_encoding(field, cost.axis); };
  Chart chart{
      "time-and-cost",
      "Time and cost together",
      "Further left is faster, further down is cheaper; the lines reach from the 5th to the "
      "95th percentile.",
      {},
      {},
      {}};
  chart.spec = html::chart_head(
      fmt::format("{}: {} plans by their median time and cost", chart.title, values.size()), 300);
  chart.spec["data"] = {{"values", values}};
  chart.spec["layer"] = {
      {{"mark", mark},
       {"encoding", {{"x", x("time_low")}, {"x2", {{"field", "time_high"}}}, {"y", y("cost")}}}},
      {{"mark", mark},
       {"encoding", {{"x", x("time")}, {"y", y("cost_low")}, {"y2", {{"field", "cost_high"}}}}}},
      {{"mark",
        {{"type", "point"},
         {"filled", true},
         {"opacity", 1},
         {"size", 70},
         {"color", "var(--main)"}}},
       {"encoding",
        {{"x", x("time")},
         {"y", y("cost")},
         {"tooltip",
          {{{"field", "name"}, {"title", "plan"}},
           {{"field", "times"}, {"title", "time"}},
           {{"field", "costs"}, {"title", "cost"}}}}}}},
      {{"mark",
        {{"type", "text"}, {"align", "left"}, {"baseline", "bottom"}, {"dx", 6}, {"dy", -4}}},
       {"encoding", {{"x", x("time")}, {"y", y("cost")}, {"text", {{"field", "plan"}}}}}}};
  return chart;
}

Table candidates(const CandidateComparison& c, Names names) {
  Table table{{"plan", "time", "cost", "goodput"}, {}, true};
  for (std::size_t k = 0; k < names.size(); ++k) {
    const Forecast& f = c.forecasts[k];
    const std::string name = full_name(k, names);
    const std::string misfit =
        fmt::format("needs {} of {} per accelerator", format_bytes(f.memory.required()),
                    format_bytes(f.memory.available));
    if (!f.feasible)
      table.rows.push_back({name, "not feasible", misfit, ""});
    else
      table.rows.push_back({name, time_range(f.time_seconds),
                            f.cost_usd ? usd_range(*f.cost_usd) : "unknown",
                            percent_range(f.goodput)});
  }
  return table;
}

Table probabilities(const std::vector<std::vector<std::optional<double>>>& p, int n) {
  Table table{{""}, {}};
  for (std::size_t b = 0; b < p.size(); ++b) table.head.push_back(candidate_letter(b));
  for (std::size_t a = 0; a < p.size(); ++a) {
    std::vector<std::string> row{candidate_letter(a)};
    for (const auto& value : p[a]) row.push_back(value ? probability_text(*value, n) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table differences(const CandidateComparison& c) {
  Table table{{"", "time", "cost"}, {}, true};
  for (std::size_t a = 0; a < c.forecasts.size(); ++a)
    for (std::size_t b = a + 1; b < c.forecasts.size(); ++b) {
      const auto& time = c.time_difference[b][a];
      const auto& cost = c.cost_difference[b][a];
      table.rows.push_back({fmt::format("{} minus {}", candidate_letter(b), candidate_letter(a)),
                            time ? time_difference(*time) : "unknown",
                            cost ? usd_difference(*cost) : "unknown"});
    }
  return table;
}

/// The plan with the lowest median, the first of equals.
Page::Fact best(const char* what, const CandidateComparison& c, Names names,
                const ComparedMeasure& m) {
  const Quantiles* lowest = nullptr;
  std::size_t best = 0;
  for (std::size_t k = 0; k < names.size(); ++k)
    if (const Quantiles* q = m.of(c.forecasts[k]); q && (!lowest || q->p50 < lowest->p50)) {
      lowest = q;
      best = k;
    }
  if (lowest == nullptr) return {what, "unknown", ""};
  return {what, fmt::format("{}: {}", candidate_letter(best), m.text(*lowest)), names[best]};
}

}  // namespace

std::string compare_html(const CandidateComparison& c, Names names, const HtmlAssets& assets) {
  const TimeUnit unit = time_unit(largest_time(c));
  const ComparedMeasure time{"time",
                             "How long each takes",
                             html::long_name(unit) + " from the submit to the last step",
                             unit.seconds,
                             time_of,
                             time_range};
  const ComparedMeasure cost{"cost",
                             "What each costs",
                             printed_currency().code + " from the first node to the last",
                             1 / printed_currency().usd_rate,
                             cost_of,
                             usd_range};
  Page page(fmt::format("{} plans compared - reckon", names.size()));
  page.heading(fmt::format("{} plans compared", names.size()));
  page.facts({best("Fastest, median", c, names, time), best("Cheapest, median", c, names, cost)});
  page.section("The plans", candidates(c, names));
  for (const auto& chart :
       {ranges(c, names, time), ranges(c, names, cost), time_and_cost(c, names, time, cost)})
    if (chart) page.chart(*chart);
  const int n = c.forecasts.front().replications;
  page.section("Probability that the row is faster than the column",
               probabilities(c.probability_faster, n));
  page.section("Probability that the row is cheaper than the column",
               probabilities(c.probability_cheaper, n));
  page.section("Differences", differences(c),
               "Paired by replication (common random numbers): the median and, in brackets, the "
               "5th to the 95th percentile.");
  const Forecast& first = c.forecasts.front();
  page.footer(fmt::format("reckon compare: {} replications of each, seed {}, {}{}.",
                          format_count(first.replications), first.seed,
                          engine_text("network engine", first.engine),
                          first.catalog_digest.empty() ? "" : ", catalog " + first.catalog_digest));
  return page.text(assets);
}

}  // namespace reckon
