#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/cluster/life/life.h"
#include "sim/forecast/compare.h"
#include "sim/forecast/forecast.h"
#include "sim/queue/trace.h"

// `--html FILE`: one file that needs nothing else and asks no one. The charts are Vega-Lite
// specifications, data that the page holds; Vega draws them as SVG when the page is opened.
namespace reckon {

/// What a page is made of beside its own text.
struct HtmlAssets {
  std::string_view scripts;  // Vega, Vega-Lite, vega-embed
  std::string_view style;    // page.css
  std::string_view program;  // page.js
};
/// Those of this build; `scripts` is empty where it was built without npm.
HtmlAssets html_assets();
/// Why `scripts` is empty: "npm was not found when reckon was built"; "" where it is not.
std::string why_no_html();

struct HtmlReport {
  const Plan& plan;
  const Forecast& forecast;
  std::string question;              // "": the scenario asks none
  const LifeResult* life = nullptr;  // of replication `replication`, recorded
  std::uint32_t replication = 0;
  const ServingForecast* serving = nullptr;  // beside the training; answers what is expected of it
};
std::string forecast_html(const HtmlReport& report, const HtmlAssets& assets);

/// The replication whose time is nearest to the median, the first of equals; 0 where none finishes.
std::uint32_t typical_replication(const Forecast& forecast);

/// Jobs that share a cluster: how long they wait, and one replication in pictures.
struct QueueReport {
  const TraceQuestion& question;  // of jobs that end
  const TraceResult& result;
  const QueueRecord& record;
  std::string asked;  // "": the scenario asks no question
};
std::string queue_html(const QueueReport& report, const HtmlAssets& assets);

/// `names`: of the candidates, in their order.
std::string compare_html(const CandidateComparison& comparison, std::span<const std::string> names,
                         const HtmlAssets& assets);

}  // namespace reckon
