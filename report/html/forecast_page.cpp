#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/explain/evidence.h"
#include "report/html/charts.h"
#include "report/memo/memo.h"
#include "report/notice.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using html::Page;
using html::Table;

/// "33.3 h (26.2 .. 44.1)" as the number and, below it, the words for its range.
Page::Fact fact(std::string name, const std::string& range) {
  const std::size_t open = range.find(" (");
  if (open == std::string::npos) return {std::move(name), range, ""};
  std::string inner = range.substr(open + 2, range.size() - open - 3);
  if (const std::size_t dots = inner.find(" .. "); dots != std::string::npos)
    inner.replace(dots, 4, " to ");
  return {std::move(name), range.substr(0, open), inner + " in nine of ten runs"};
}

void add_answer(Page& page, const HtmlReport& r) {
  const Forecast& f = r.forecast;
  if (!f.feasible) {
    page.facts({{"Not feasible", format_bytes(f.memory.required()),
                 fmt::format("are needed on an accelerator, which has {}",
                             format_bytes(f.memory.available))}});
    return;
  }
  page.facts({fact("Time, median", time_range(f.time_seconds)),
              f.cost_usd ? fact("Cost, median", usd_range(*f.cost_usd))
                         : Page::Fact{"Cost", "unknown", "a price is missing"},
              fact("Goodput, median", percent_range(f.goodput))});
  page.paragraph(fmt::format("On {}. {} steps of {}, bound by {}; {} simulated runs.",
                             hardware_text(r.plan), format_count(double(f.steps)),
                             format_duration(f.step.step), to_text(f.step.bottleneck),
                             format_count(f.replications)));
  if (f.unfinished_share > 0)
    page.warnings("Not every run finishes",
                  {fmt::format("{} of the runs never finish: {}",
                               format_percent(f.unfinished_share), f.unfinished_reason)});
}

void add_expectations(Page& page, const HtmlReport& r) {
  if (r.plan.expect.empty()) return;
  Table table{{"condition", "holds"}, {}};
  for (const Expectation& e : r.plan.expect) {
    const bool of_serving = r.serving != nullptr && is_of_serving(e.metric);
    const ExpectationResult result = of_serving ? evaluate(e, *r.serving) : evaluate(e, r.forecast);
    table.rows.push_back({e.text, result.passed           ? "yes"
                                  : result.reason.empty() ? "no"
                                                          : "no: " + result.reason});
  }
  page.section("What was asked of it", table);
}

std::vector<html::Limit> limits_on(const HtmlReport& r, Metric metric) {
  std::vector<html::Limit> limits;
  for (const Expectation& e : r.plan.expect)
    if (e.metric == metric) limits.push_back({e.value, e.text, evaluate(e, r.forecast).passed});
  return limits;
}

void add_assumptions(Page& page, const Forecast& f) {
  if (f.assumptions.empty()) return;
  Table table{{"assumption", "value (range)", "time", "cost", "source"}, {}, true};
  for (const AssumptionEffect& a : f.assumptions)
    table.rows.push_back({a.what, a.value, signed_duration(a.time_effect_seconds),
                          a.cost_effect_usd ? signed_usd(*a.cost_effect_usd) : "unknown",
                          a.source});
  page.section("Assumptions", table,
               "Values that were not measured for this case, with their ranges. Effects are those "
               "of the charts above, largest first.");
  if (f.evidence) page.paragraph(evidence_sentences(*f.evidence));
  if (const std::string notice = notice_sentences(f); !notice.empty()) page.paragraph(notice);
}

void add_prices(Page& page, const Plan& plan) {
  Table table{{"pool", "a node's hour", "as of", "source"}, {}, true};
  for (const PlannedPool& p : plan.pools) {
    const double usd =
        double(p.price.machine.nano_usd_per_hour + p.price.accelerators.nano_usd_per_hour) * 1e-9;
    table.rows.push_back(
        {p.name, p.price.known ? format_usd(Usd{usd}) : "unknown", p.price.as_of, p.price.source});
  }
  page.section("Prices", table);
}

std::string provenance(const Forecast& f) {
  return fmt::format("reckon simulate: {} replications, seed {}, {}{}{}.",
                     format_count(f.replications), f.seed, engine_text("network engine", f.engine),
                     f.catalog_digest.empty() ? "" : ", catalog " + f.catalog_digest,
                     f.calibrations.empty()
                         ? ""
                         : fmt::format(", calibrations {}", fmt::join(f.calibrations, ", ")));
}

void add_charts(Page& page, const HtmlReport& r) {
  const Forecast& f = r.forecast;
  const auto add = [&](const std::optional<html::Chart>& chart) {
    if (chart) page.chart(*chart);
  };
  add(html::time_distribution(f, limits_on(r, Metric::time)));
  add(html::cost_distribution(f, limits_on(r, Metric::cost)));
  add(html::cost_parts(f));
  add(html::node_hours(f));
  add(html::goodput_waterfall(f));
  if (r.life != nullptr) add(html::timeline_chart(r.plan, *r.life, r.replication));
  add(html::time_effects(f));
  add(html::cost_effects(f));
  add(html::step_parts(f));
}

}  // namespace

std::uint32_t typical_replication(const Forecast& f) {
  std::size_t best = 0;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < f.times_seconds.size(); ++k) {
    const double distance = std::abs(f.times_seconds[k] - f.time_seconds.p50);
    if (distance < nearest) {  // never where one of the two is infinite
      nearest = distance;
      best = k;
    }
  }
  return std::uint32_t(best);
}

std::string forecast_html(const HtmlReport& r, const HtmlAssets& assets) {
  const Forecast& f = r.forecast;
  Page page(f.scenario + " - reckon");
  page.heading(f.scenario);
  if (!r.question.empty()) page.paragraph(r.question, "question");
  add_answer(page, r);
  add_expectations(page, r);
  page.warnings("Warnings", f.warnings);
  if (f.feasible) add_charts(page, r);
  page.chart(html::memory_parts(f));
  if (f.feasible) add_assumptions(page, f);
  add_prices(page, r.plan);
  page.footer(provenance(f));
  return page.text(assets);
}

}  // namespace reckon
