#include <fmt/format.h>

#include "report/html/html.h"
#include "report/html/queue_charts.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using html::Page;

constexpr std::size_t kSpansOfPage = 160;

Page::Fact wait_fact(const char* name, const std::optional<TimeStatistics>& times) {
  if (!times || times->count == 0) return {name, "unknown", "no job of the window ended"};
  return {name, format_duration(Seconds{times->p50}),
          fmt::format("median; 95 of 100 within {}", format_duration(Seconds{times->p95}))};
}

void add_teams(Page& page, const TraceResult& result) {
  if (result.teams.empty()) return;
  constexpr double kSecondsOfHour = 3600;
  html::Table table{{"team", "jobs", "GPU-hours", "wait p50", "wait p95", "slowdown"}, {}};
  for (const TeamAnswer& t : result.teams)
    table.rows.push_back({t.name, format_count(double(t.jobs)),
                          format_count(std::round(t.gpu_seconds / kSecondsOfHour)),
                          format_duration(Seconds{t.waiting.p50}),
                          format_duration(Seconds{t.waiting.p95}),
                          fmt::format("{:.3g}", t.slowdown.mean)});
  page.section("Teams", table,
               result.fairness ? fmt::format("Fairness {}: Jain's index of their mean slowdowns.",
                                             format_percent(*result.fairness))
                               : "");
}

}  // namespace

std::string queue_html(const QueueReport& r, const HtmlAssets& assets) {
  const auto& question = std::get<QueueQuestion>(r.question.work);
  const TraceResult& result = r.result;
  Page page(result.scenario + " - reckon");
  page.heading(result.scenario);
  if (!r.asked.empty()) page.paragraph(r.asked, "question");
  page.facts(
      {wait_fact("Wait", result.waiting), wait_fact("Submit to end", result.completion),
       Page::Fact{"GPUs in use",
                  result.utilization ? format_percent(*result.utilization) : "unknown",
                  fmt::format("of {}, from {}", format_count(result.gpus),
                              result.karpenter ? "each node's request to its end; so many at most"
                                               : "the first submit to the last end")}});
  page.paragraph(
      fmt::format("{} jobs under policy {}, {} of them measured. The charts show one replication.",
                  format_count(double(result.jobs)), to_text(result.policy),
                  format_count(double(result.measured))));
  page.warnings("Notes", result.warnings);
  const Occupancy occupancy = occupancy_of(question, r.record);
  html::QueuePicture picture{r.record.list,
                             r.record.run,
                             occupancy,
                             node_names(question, r.record),
                             queue_series(r.record.list, r.record.run, occupancy, kSpansOfPage),
                             {3600, "h"}};
  if (picture.series.in_use.empty()) {
    page.footer("reckon simulate: no job ran.");
    return page.text(assets);
  }
  picture.unit = time_unit(to_seconds(picture.series.end - picture.series.begin).count());
  page.chart(html::queue_length(picture));
  page.chart(html::gpus_over_time(picture));
  if (const auto waits = html::waits_by_class(picture)) page.chart(*waits);
  page.chart(html::node_heat(picture));
  if (const std::size_t job = typical_wait(r.record.run); job != kNoJob) {
    const JobStory story = story_of(job, r.record.list, r.record.run, occupancy);
    if (const auto chart = html::story_chart(picture, story)) page.chart(*chart);
  }
  add_teams(page, result);
  page.footer(fmt::format("reckon simulate: {} replication{}, seed {}.",
                          format_count(result.replications), result.replications == 1 ? "" : "s",
                          result.seed));
  return page.text(assets);
}

}  // namespace reckon
