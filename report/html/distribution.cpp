#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/html/charts.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon::html {
namespace {

constexpr int kPlotHeight = 220, kLabelHeight = 16;  // px
constexpr std::size_t kFewestBins = 8, kMostBins = 60;
/// A limit so many ranges away from the replications is said, not drawn: it would squeeze them.
constexpr double kFarAway = 2.0;

struct Bin {
  double from = 0, to = 0;
  std::size_t count = 0;
  double share_up_to = 0;  // of all replications, those that never finish too
};

/// The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `width`.
double round_up(double width) {
  const double power = std::pow(10.0, std::floor(std::log10(width)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= width * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

/// Bins as wide as 2 IQR n^(-1/3), rounded up [Freedman & Diaconis 1981]. `values` are finite and
/// not empty.
std::vector<Bin> bins_of(std::vector<double> values, std::size_t replications) {
  std::sort(values.begin(), values.end());
  const double low = values.front(), high = values.back();
  const std::size_t n = values.size();
  double width = 2 * (values[3 * (n - 1) / 4] - values[(n - 1) / 4]) / std::cbrt(double(n));
  width = std::clamp(width, (high - low) / double(kMostBins), (high - low) / double(kFewestBins));
  const double least = 1e-3 * std::max(std::abs(high), 1e-9);  // all are one value, or nearly
  width = round_up(std::max(width, least));
  const double begin = std::floor(low / width);
  std::vector<Bin> bins;
  std::size_t seen = 0;
  while (seen < n) {
    Bin bin{(begin + double(bins.size())) * width, (begin + double(bins.size() + 1)) * width};
    const auto end = std::lower_bound(values.begin(), values.end(), bin.to);
    bin.count = std::size_t(end - values.begin()) - seen;
    seen += bin.count;
    bin.share_up_to = double(seen) / double(replications);
    bins.push_back(bin);
  }
  return bins;
}

struct Line {
  double at = 0;
  std::string text, align, color;
  int row = 0;  // of the labels, counted from the plot upwards
  bool dashed = false;
};

Json lines_layer(const std::vector<Line>& lines, bool dashed) {
  Json values = Json::array();
  for (const Line& l : lines)
    if (l.dashed == dashed) values.push_back({{"at", l.at}, {"text", l.text}, {"color", l.color}});
  Json mark = {{"type", "rule"}, {"strokeWidth", dashed ? 2 : 1.5}};
  if (dashed) mark["strokeDash"] = {6, 4};
  return {{"data", {{"values", values}}},
          {"mark", mark},
          {"encoding",
           {{"x", {{"field", "at"}, {"type", "quantitative"}}},
            {"color", {{"field", "color"}, {"type", "nominal"}, {"scale", nullptr}}},
            {"tooltip", {{"field", "text"}, {"title", "line"}}}}}};
}

Json label_layer(const Line& line) {
  return {{"data", {{"values", {{{"at", line.at}}}}}},
          {"mark",
           {{"type", "text"},
            {"text", line.text},
            {"align", line.align},
            {"baseline", "bottom"},
            {"color", line.color}}},
          {"encoding",
           {{"x", {{"field", "at"}, {"type", "quantitative"}}},
            {"y", {{"value", -4 - line.row * kLabelHeight}}}}}};
}

/// What is drawn: time or cost, in the unit of its axis.
struct DistributionMeasure {
  std::string name;       // "time"
  std::string axis;       // "hours from the submit to the last step"
  std::string unit_name;  // "h"
  double unit = 1;        // SI or USD in one unit of the axis
  std::function<std::string(double)> text;
};

/// Each line's label has a row of its own: on a narrow screen they would meet.
std::vector<Line> lines_of(const Quantiles& q, const std::vector<Limit>& limits,
                           const DistributionMeasure& m, double low, double high) {
  std::vector<Line> lines;
  const auto add = [&](double value, std::string text, const char* color, bool dashed) {
    const double at = value / m.unit;
    const double place = (at - low) / std::max(high - low, 1e-12);
    const char* align = place < 1.0 / 3 ? "left" : place > 2.0 / 3 ? "right" : "center";
    lines.push_back({at, std::move(text), align, color, int(lines.size()), dashed});
  };
  const auto quantile = [&](double value, const char* name) {
    if (std::isfinite(value))
      add(value, fmt::format("{} {}", name, m.text(value)), "var(--ink)", false);
  };
  const bool spread = q.p95 - q.p5 > 0.02 * (high - low) * m.unit;
  if (spread) quantile(q.p5, "p5");
  quantile(q.p50, "median");
  if (spread) quantile(q.p95, "p95");
  for (const Limit& limit : limits)
    add(limit.at, limit.text + (limit.passed ? ": holds" : ": does not hold"),
        limit.passed ? "var(--good)" : "var(--bad)", true);
  return lines;
}

Json bins_layer(const std::vector<Bin>& bins, const DistributionMeasure& m) {
  Json values = Json::array();
  for (const Bin& b : bins)
    values.push_back({{"from", b.from},
                      {"to", b.to},
                      {"count", b.count},
                      {"range", fmt::format("{:.6g} to {:.6g} {}", b.from, b.to, m.unit_name)},
                      {"up_to", format_percent(b.share_up_to)}});
  return {{"data", {{"values", values}}},
          {"mark", {{"type", "bar"}, {"color", "var(--second)"}, {"binSpacing", 1}}},
          {"encoding",
           {{"x",
             {{"field", "from"},
              {"type", "quantitative"},
              {"bin", {{"binned", true}}},
              {"scale", {{"zero", false}, {"nice", true}}},
              {"axis", {{"title", m.axis}, {"tickCount", 6}, {"grid", false}}}}},
            {"x2", {{"field", "to"}}},
            {"y",
             {{"field", "count"},
              {"type", "quantitative"},
              {"axis", {{"title", "replications"}, {"tickCount", 4}, {"format", "d"}}}}},
            {"tooltip",
             {{{"field", "range"}, {"title", m.name}},
              {{"field", "count"}, {"title", "replications"}},
              {{"field", "up_to"}, {"title", "up to here"}}}}}}};
}

Table bins_table(const std::vector<Bin>& bins, const DistributionMeasure& m) {
  Table table{{fmt::format("{} ({})", m.name, m.unit_name), "replications", "share up to here"},
              {}};
  for (const Bin& b : bins)
    table.rows.push_back({fmt::format("{:.6g} to {:.6g}", b.from, b.to),
                          format_count(double(b.count)), format_percent(b.share_up_to)});
  return table;
}

std::optional<Chart> distribution(const std::vector<double>& all, const Quantiles& q,
                                  const std::vector<Limit>& limits, const DistributionMeasure& m,
                                  Chart chart) {
  std::vector<double> values;
  for (const double v : all)
    if (std::isfinite(v)) values.push_back(v / m.unit);
  if (values.empty()) return std::nullopt;
  const std::size_t never = all.size() - values.size();
  const std::vector<Bin> bins = bins_of(std::move(values), all.size());
  double low = bins.front().from, high = bins.back().to;
  const double span = high - low;
  std::vector<Limit> drawn;
  std::string note =
      never == 0 ? ""
                 : fmt::format("{} of {} replications never finish and are not drawn. ",
                               format_count(double(never)), format_count(double(all.size())));
  for (const Limit& limit : limits) {
    const double at = limit.at / m.unit;
    if (at < low - kFarAway * span || at > high + kFarAway * span)
      note += fmt::format("{} {} and lies outside the plot. ", limit.text,
                          limit.passed ? "holds" : "does not hold");
    else
      drawn.push_back(limit);
  }
  for (const Limit& limit : drawn) {
    low = std::min(low, limit.at / m.unit);
    high = std::max(high, limit.at / m.unit);
  }
  const std::vector<Line> lines = lines_of(q, drawn, m, low, high);
  Json layers = {bins_layer(bins, m), lines_layer(lines, false)};
  if (!drawn.empty()) layers.push_back(lines_layer(lines, true));
  for (const Line& line : lines) layers.push_back(label_layer(line));
  std::string description = chart.title + ": ";
  for (const Line& line : lines) description += line.text + ", ";
  description += fmt::format("{} replications", format_count(double(all.size())));
  chart.note += note;
  chart.spec = chart_head(description, kPlotHeight);
  chart.spec["padding"] = {{"top", 4}, {"left", 2}, {"right", 8}, {"bottom", 5}};
  chart.spec["layer"] = std::move(layers);
  chart.numbers = bins_table(bins, m);
  return chart;
}

}  // namespace

std::optional<Chart> time_distribution(const Forecast& f, const std::vector<Limit>& limits) {
  const double scale = std::isfinite(f.time_seconds.p50) ? f.time_seconds.p50 : f.time_seconds.p5;
  const TimeUnit unit = time_unit(std::isfinite(scale) ? scale : 0);
  Chart chart{"time", "How long it takes", "", {}, {}, {}};
  return distribution(f.times_seconds, f.time_seconds, limits,
                      {"time", long_name(unit) + " from the submit to the last step", unit.name,
                       unit.seconds, [](double s) { return time_value(Seconds{s}); }},
                      std::move(chart));
}

std::optional<Chart> cost_distribution(const Forecast& f, const std::vector<Limit>& limits) {
  if (!f.cost_usd) return std::nullopt;
  Chart chart{"cost", "What it costs", "", {}, {}, {}};
  const std::string& code = printed_currency().code;
  return distribution(f.costs_usd, *f.cost_usd, limits,
                      {"cost", code + " from the first node to the last", code,
                       1 / printed_currency().usd_rate, [](double usd) { return usd_value(usd); }},
                      std::move(chart));
}

}  // namespace reckon::html
