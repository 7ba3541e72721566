#include "report/html/queue_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "report/html/charts.h"
#include "sim/base/unit_text.h"

namespace reckon::html {
namespace {

constexpr int kSeriesHeight = 200, kHeatHeight = 320, kMostRowsOfHeat = 64;
constexpr std::size_t kMostClasses = 6, kPointsOfCurve = 100;
constexpr std::array kClassColors{"var(--main)", "var(--warm)", "var(--leaf)",
                                  "var(--plum)", "var(--hot)",  "var(--slate)"};

Json time_axis(const QueuePicture& p) {
  return {
      {"title", long_name(p.unit) + " since the first submit"}, {"tickCount", 6}, {"grid", false}};
}

Json time_scale(const QueuePicture& p) {
  return {{"domain", {0, p.at(p.series.end)}}, {"nice", false}};
}

/// Spans as steps: each value holds from its time on.
Json steps_of(const QueuePicture& p, const std::vector<double>& values, const char* what,
              const char* color) {
  Json out = Json::array();
  const double width = p.series.span.count() / p.unit.seconds;
  for (std::size_t k = 0; k < values.size(); ++k)
    out.push_back({{"at", double(k) * width},
                   {"to", double(k + 1) * width},
                   {"value", values[k]},
                   {"what", what},
                   {"color", color}});
  return out;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / double(values.size());
}

double most_of(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

/// Jobs that are alike, and their waits in seconds, ascending.
struct WaitClass {
  std::string name;
  std::vector<double> waits;
};

std::string size_class(int gpus) {
  if (gpus == 1) return "1 GPU";
  if (gpus <= 8) return "2 to 8 GPUs";
  if (gpus <= 64) return "9 to 64 GPUs";
  return "over 64 GPUs";
}

std::vector<WaitClass> wait_classes(const QueuePicture& p) {
  const auto& teams = p.list.names.teams.names();
  const bool by_team = teams.size() > 1;
  std::map<std::string, std::vector<double>> classes;
  for (std::size_t k = p.run.first_measured; k < p.run.first_measured + p.run.measured; ++k) {
    const JobTimes& job = p.run.jobs[k];
    if (!job.start) continue;
    const std::string& team = p.list.names.teams.name(p.list.jobs[k].owner.team);
    classes[by_team ? (team.empty() ? "no team" : team) : size_class(p.list.jobs[k].gpus())]
        .push_back(to_seconds(*job.start - job.submit).count());
  }
  std::vector<WaitClass> out;
  for (auto& [name, waits] : classes) {
    std::sort(waits.begin(), waits.end());
    out.push_back({name, std::move(waits)});
  }
  std::ranges::stable_sort(out, std::greater<>{},
                           [](const WaitClass& c) { return c.waits.size(); });
  return out;
}

double value_at(const std::vector<double>& ascending, double share) {
  return ascending[std::size_t(share * double(ascending.size() - 1))];
}

}  // namespace

Chart queue_length(const QueuePicture& p) {
  const auto& values = p.series.waiting;
  Chart chart{"queue-length", "Jobs that wait", "", {}, {}, {{"time", "jobs"}, {}}};
  chart.note = fmt::format("{:.3g} on average, at most {:.3g}; means over {}.", mean_of(values),
                           most_of(values), format_duration(p.series.span));
  chart.spec = chart_head(fmt::format("Jobs that wait over time: {:.3g} on average, at most {:.3g}",
                                      mean_of(values), most_of(values)),
                          kSeriesHeight);
  chart.spec["data"] = {{"values", steps_of(p, values, "jobs that wait", "var(--warm)")}};
  chart.spec["mark"] = {{"type", "area"}, {"interpolate", "step-after"}, {"color", "var(--warm)"}};
  chart.spec["encoding"] = {
      {"x",
       {{"field", "at"},
        {"type", "quantitative"},
        {"scale", time_scale(p)},
        {"axis", time_axis(p)}}},
      {"y", {{"field", "value"}, {"type", "quantitative"}, {"axis", number_axis("jobs")}}}};
  for (std::size_t k = 0; k < values.size(); k += std::max<std::size_t>(1, values.size() / 12))
    chart.numbers.rows.push_back(
        {format_duration(double(k) * p.series.span), fmt::format("{:.3g}", values[k])});
  return chart;
}

Chart gpus_over_time(const QueuePicture& p) {
  const QueueSeries& s = p.series;
  std::vector<double> free;
  for (std::size_t k = 0; k < s.in_use.size(); ++k)
    free.push_back(std::max(0.0, s.there[k] - s.in_use[k] - s.stranded[k]));
  const double there = mean_of(s.there);
  const double used = there > 0 ? mean_of(s.in_use) / there : 0;
  const double stranded = there > 0 ? mean_of(s.stranded) / there : 0;
  Chart chart{"gpus", "GPUs in use, and free ones that jobs cannot use", "", {}, {}, {}};
  chart.note = fmt::format(
      "On average {} in use and {} free on nodes where the pods that usually come do not fit "
      "(fragmentation, Weng et al. 2023).",
      format_percent(used), format_percent(stranded));
  if (!p.occupancy.stays.empty())
    chart.note += fmt::format(
        " Nodes count from their request; {:.3g} GPUs on average, at most "
        "{:.3g}.",
        there, s.gpus);
  chart.legend = {
      {"var(--main)", "in use"}, {"var(--hot)", "free, but stranded"}, {"var(--mist)", "free"}};
  Json values = steps_of(p, s.in_use, "in use", "var(--main)");
  for (const Json& v : steps_of(p, s.stranded, "free, but stranded", "var(--hot)"))
    values.push_back(v);
  for (const Json& v : steps_of(p, free, "free", "var(--mist)")) values.push_back(v);
  chart.spec = chart_head(fmt::format("GPUs over time: {} in use, {} stranded on average",
                                      format_percent(used), format_percent(stranded)),
                          kSeriesHeight);
  chart.spec["data"] = {{"values", std::move(values)}};
  chart.spec["mark"] = {{"type", "area"}, {"interpolate", "step-after"}};
  chart.spec["encoding"] = {
      {"x",
       {{"field", "at"},
        {"type", "quantitative"},
        {"scale", time_scale(p)},
        {"axis", time_axis(p)}}},
      {"y",
       {{"field", "value"},
        {"type", "quantitative"},
        {"stack", "zero"},
        {"scale", {{"domain", {0, s.gpus}}, {"nice", false}}},
        {"axis", number_axis("GPUs")}}},
      {"order", {{"field", "what"}, {"sort", "descending"}}},
      {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}}};
  chart.numbers = {{"time", "in use", "stranded", "free"}, {}};
  for (std::size_t k = 0; k < s.in_use.size(); k += std::max<std::size_t>(1, s.in_use.size() / 12))
    chart.numbers.rows.push_back(
        {format_duration(double(k) * s.span), fmt::format("{:.3g}", s.in_use[k]),
         fmt::format("{:.3g}", s.stranded[k]), fmt::format("{:.3g}", free[k])});
  return chart;
}

std::optional<Chart> waits_by_class(const QueuePicture& p) {
  const auto classes = wait_classes(p);
  if (classes.empty()) return std::nullopt;
  double longest = 0;
  for (const WaitClass& c : classes) longest = std::max(longest, c.waits.back());
  if (longest <= 0) return std::nullopt;
  const TimeUnit unit = time_unit(longest);
  Chart chart{"waits", "How long jobs wait", "", {}, {}, {}};
  chart.numbers = {{"class", "jobs", "start at once", "p50", "p95", "longest"}, {}};
  Json values = Json::array();
  for (std::size_t k = 0; k < std::min(classes.size(), kMostClasses); ++k) {
    const WaitClass& c = classes[k];
    for (std::size_t i = 0; i <= kPointsOfCurve; ++i) {
      const double share = double(i) / double(kPointsOfCurve);
      values.push_back({{"wait", value_at(c.waits, share) / unit.seconds},
                        {"share", share},
                        {"class", c.name},
                        {"color", kClassColors[k]}});
    }
    chart.legend.push_back({kClassColors[k], fmt::format("{} ({} jobs)", c.name,
                                                         format_count(double(c.waits.size())))});
    const auto at_once = std::upper_bound(c.waits.begin(), c.waits.end(), 0.0) - c.waits.begin();
    chart.numbers.rows.push_back({c.name, format_count(double(c.waits.size())),
                                  format_percent(double(at_once) / double(c.waits.size())),
                                  format_duration(Seconds{value_at(c.waits, 0.5)}),
                                  format_duration(Seconds{value_at(c.waits, 0.95)}),
                                  format_duration(Seconds{c.waits.back()})});
  }
  chart.note =
      "The share of jobs that started within so long; the axis is the square root of the wait.";
  chart.spec = chart_head("Share of jobs that started within a wait, by class", kSeriesHeight + 40);
  chart.spec["data"] = {{"values", std::move(values)}};
  chart.spec["mark"] = {{"type", "line"}, {"interpolate", "step-after"}, {"strokeWidth", 2}};
  chart.spec["encoding"] = {
      {"x",
       {{"field", "wait"},
        {"type", "quantitative"},
        {"scale", {{"type", "sqrt"}, {"nice", false}}},
        {"axis", {{"title", long_name(unit) + " from submit to start"}, {"tickCount", 6}}}}},
      {"y",
       {{"field", "share"},
        {"type", "quantitative"},
        {"scale", {{"domain", {0, 1}}}},
        {"axis", {{"title", "share of the jobs"}, {"format", "%"}, {"tickCount", 5}}}}},
      {"detail", {{"field", "class"}}},
      {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}}};
  return chart;
}

Chart node_heat(const QueuePicture& p) {
  const auto use = node_use(p.occupancy, p.series), there = node_presence(p.occupancy, p.series);
  const bool come_and_go = !p.occupancy.stays.empty();
  // Of many nodes some share a row.
  const std::size_t rows = std::min<std::size_t>(use.size(), kMostRowsOfHeat);
  const double width = p.series.span.count() / p.unit.seconds;
  Chart chart{"nodes", "Nodes", "", {}, {}, {{"node", "GPUs in use"}, {}}};
  Json values = Json::array(), order = Json::array();
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t first = r * use.size() / rows, last = (r + 1) * use.size() / rows;
    const std::string name = last - first == 1
                                 ? p.nodes[first]
                                 : fmt::format("{} .. {}", p.nodes[first], p.nodes[last - 1]);
    order.push_back(name);
    double all = 0, present = 0;
    for (std::size_t k = 0; k < p.series.in_use.size(); ++k) {
      double in_use = 0, of = 0;
      for (std::size_t n = first; n < last; ++n) in_use += use[n][k], of += there[n][k];
      all += in_use;
      present += of;
      if (of <= 0) continue;  // nothing is drawn
      const double share = in_use / of;
      values.push_back({{"node", name},
                        {"at", double(k) * width},
                        {"to", double(k + 1) * width},
                        {"share", std::min(1.0, std::round(share * 1e4) / 1e4)}});
    }
    chart.numbers.rows.push_back({name, format_percent(present > 0 ? all / present : 0)});
  }
  chart.note = fmt::format(
      "Dark: all GPUs of the node are in use; each cell is {}{}.", format_duration(p.series.span),
      rows < use.size() ? fmt::format(" of {} nodes together", use.size() / rows) : "");
  if (come_and_go)
    chart.note += fmt::format(
        " {} nodes came and went; each row shows one of its kind after the other, from request to "
        "end.",
        p.occupancy.stays.size());
  const int height = std::clamp(int(rows) * 14, 60, rows > 32 ? int(rows) * 8 : kHeatHeight);
  chart.spec = chart_head(fmt::format("{} {} over time, by the share of their GPUs in use",
                                      use.size(), come_and_go ? "rows of nodes" : "nodes"),
                          height);
  chart.spec["data"] = {{"values", std::move(values)}};
  chart.spec["mark"] = {{"type", "bar"}, {"height", {{"band", 0.94}}}, {"color", "var(--main)"}};
  chart.spec["encoding"] = {{"x",
                             {{"field", "at"},
                              {"type", "quantitative"},
                              {"scale", time_scale(p)},
                              {"axis", time_axis(p)}}},
                            {"x2", {{"field", "to"}}},
                            {"y",
                             {{"field", "node"},
                              {"type", "nominal"},
                              {"scale", {{"domain", order}, {"padding", 0}}},
                              {"axis",
                               {{"title", nullptr},
                                {"labelLimit", 110},
                                {"labelOverlap", "greedy"},
                                {"ticks", false},
                                {"domain", false}}}}},
                            {"opacity",
                             {{"field", "share"},
                              {"type", "quantitative"},
                              {"scale", {{"domain", {0, 1}}, {"range", {0.04, 1}}}},
                              {"legend", nullptr}}},
                            {"tooltip",
                             {{{"field", "node"}, {"title", "node"}},
                              {{"field", "share"}, {"title", "in use"}, {"format", ".0%"}}}}};
  return chart;
}

}  // namespace reckon::html
