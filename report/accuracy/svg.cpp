#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "report/accuracy/accuracy.h"
#include "report/markup.h"

namespace reckon {
namespace {

constexpr double kSize = 640, kLeft = 80, kTop = 50;  // the square of the axes
constexpr double kLegend = 210;
constexpr double kPanel = 300, kPanelLabels = 210, kBar = 22;  // of what is drawn below

// Ten colours that stay apart in print and for most colour-blind readers (Tol, "muted" and greys).
constexpr std::array<std::string_view, 10> kColours{"#332288", "#88CCEE", "#44AA99", "#117733",
                                                    "#999933", "#DDCC77", "#CC6677", "#882255",
                                                    "#AA4499", "#666666"};

struct Axis {
  int low = 0, high = 1;  // powers of ten
  double at(double value) const { return (std::log10(value) - low) / double(high - low) * kSize; }
};

Axis axis_of(const AccuracyReport& report) {
  double least = 1, most = 10;
  bool first = true;
  for (const ScoredRun& r : report.runs) {
    const double a = std::min(r.measured, r.predicted), b = std::max(r.measured, r.predicted);
    least = first ? a : std::min(least, a);
    most = first ? b : std::max(most, b);
    first = false;
  }
  Axis axis{static_cast<int>(std::floor(std::log10(least))),
            static_cast<int>(std::ceil(std::log10(most)))};
  if (axis.high <= axis.low) axis.high = axis.low + 1;
  return axis;
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1,
                     x2, y2, style);
}

std::string grid(const Axis& axis) {
  std::string out;
  for (int power = axis.low; power <= axis.high; ++power) {
    const double p = axis.at(std::pow(10.0, power));
    const double x = kLeft + p, y = kTop + kSize - p;
    out += line(x, kTop, x, kTop + kSize, "stroke=\"#dddddd\"");
    out += line(kLeft, y, kLeft + kSize, y, "stroke=\"#dddddd\"");
    constexpr std::string_view kText =
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">10<tspan dy=\"-5\" "
        "font-size=\"9\">{}</tspan></text>\n";
    out += fmt::format(kText, x, kTop + kSize + 20, "middle", power);
    out += fmt::format(kText, kLeft - 8, y + 4, "end", power);
  }
  return out;
}

/// predicted = factor x measured, cut at the edges.
std::string diagonal(const Axis& axis, double factor, std::string_view style) {
  const double up = std::log10(factor) / double(axis.high - axis.low) * kSize;
  const double x1 = up < 0 ? -up : 0, x2 = up > 0 ? kSize - up : kSize;
  return line(kLeft + x1, kTop + kSize - x1 - up, kLeft + x2, kTop + kSize - x2 - up, style);
}

std::string plot_text(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     markup_text(words));
}

/// Nine of ten of each run of a source, as lines through the dots: one path.
std::string interval_lines(const Axis& axis, const std::vector<const ScoredRun*>& runs,
                           std::string_view colour) {
  const auto y = [&](double rate) { return kTop + kSize - std::clamp(axis.at(rate), 0.0, kSize); };
  std::string path;
  for (const ScoredRun* r : runs)
    if (r->low > 0 && r->high > r->low)
      path +=
          fmt::format("M{:.1f} {:.1f}V{:.1f}", kLeft + axis.at(r->measured), y(r->low), y(r->high));
  if (path.empty()) return "";
  return fmt::format(
      "<path class=\"intervals\" d=\"{}\" stroke=\"{}\" stroke-opacity=\"0.25\" "
      "stroke-width=\"0.7\" fill=\"none\"/>\n",
      path, colour);
}

/// A dot a run: one path, of lines without a length that have round ends.
std::string dots(const Axis& axis, const std::vector<const ScoredRun*>& runs,
                 std::string_view colour) {
  std::string path;
  for (const ScoredRun* r : runs)
    path += fmt::format("M{:.1f} {:.1f}h0", kLeft + axis.at(r->measured),
                        kTop + kSize - axis.at(r->predicted));
  return fmt::format(
      "<path class=\"runs\" d=\"{}\" stroke=\"{}\" stroke-opacity=\"0.55\" stroke-width=\"5\" "
      "stroke-linecap=\"round\"/>\n",
      path, colour);
}

struct PlotBar {
  std::string name;
  double share = 0;          // of the panel's width
  std::string value;         // beside it
  double low = 0, high = 0;  // a band behind it; equal: none
};

/// Bars under each other, from `left`; what a full one is stands at its end.
std::string bar_panel(double left, double top, std::string_view title,
                      const std::vector<PlotBar>& bars) {
  std::string out = plot_text(left, top, "start", title);
  const double from = left + kPanelLabels;
  for (std::size_t k = 0; k < bars.size(); ++k) {
    const PlotBar& bar = bars[k];
    const double y = top + 14 + kBar * double(k);
    const auto rect = [&](double x, double width, double height, std::string_view style) {
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" {}/>\n", x,
          y + (kBar - 4 - height) / 2, width, height, style);
    };
    if (bar.high > bar.low)
      out += rect(from + bar.low * kPanel, (bar.high - bar.low) * kPanel, kBar - 4,
                  "fill=\"#dddddd\"");
    out += rect(from, std::clamp(bar.share, 0.0, 1.0) * kPanel, kBar - 12, "fill=\"#332288\"");
    out += plot_text(from - 8, y + 13, "end", bar.name);
    out += plot_text(from + kPanel + 8, y + 13, "start", bar.value);
  }
  return out;
}

/// By what is near a run, where that is told.
const std::vector<NamedScores>* classes_of(const AccuracyReport& report) {
  for (const auto& [name, parts] : report.cold.by)
    if (name == "evidence" && !parts.empty()) return &parts;
  return nullptr;
}

/// How many runs lie within their interval: nine of ten are to. The band is where the share of so
/// many runs falls 19 times of 20 if their intervals are right.
std::vector<PlotBar> coverage_bars(const AccuracyReport& report) {
  std::vector<PlotBar> bars;
  const auto add = [&](const std::string& name, const Scores& s) {
    constexpr double kRight = 0.9, kTwoSided = 1.96;
    const double band = kTwoSided * std::sqrt(kRight * (1 - kRight) / double(s.runs));
    bars.push_back({name, s.interval_coverage,
                    fmt::format("{:.0f} % of {}", 100 * s.interval_coverage, s.runs), kRight - band,
                    std::min(1.0, kRight + band)});
  };
  if (const auto* classes = classes_of(report))
    for (const NamedScores& one : *classes) add(one.name, one.runs);
  if (report.cold.runs.runs > 0) add("all", report.cold.runs);
  return bars;
}

/// How wide intervals are at the median, before a run of one's own and after one.
std::vector<PlotBar> width_bars(const AccuracyReport& report) {
  std::vector<PlotBar> bars;
  const auto add = [&](const std::string& name, const Scores& s) {
    bars.push_back({name, s.interval_median_half_width,
                    fmt::format("+-{:.0f} %", 100 * s.interval_median_half_width)});
  };
  if (const auto* classes = classes_of(report))
    for (const NamedScores& one : *classes) add(one.name, one.runs);
  if (report.cold.runs.runs > 0) add("all, before a run", report.cold.runs);
  for (const WarmEvaluation& warm : report.warm)
    add(fmt::format("after {} of the same kind", warm.points), warm.rest.runs);
  return bars;
}

}  // namespace

std::string accuracy_svg(const AccuracyReport& report) {
  const Axis axis = axis_of(report);
  std::map<std::string_view, std::size_t> sources;
  for (const ScoredRun& r : report.runs) sources.emplace(r.at.source, 0);
  std::size_t next = 0;
  for (auto& [source, index] : sources) index = next++;

  const auto covered = coverage_bars(report), widths = width_bars(report);
  const double below = kTop + kSize + 90, second = kLeft + kPanelLabels + kPanel + 110;
  const double width = std::max(kLeft + kSize + kLegend, second + kPanelLabels + kPanel + 110);
  const double height = below + 30 + kBar * double(std::max(covered.size(), widths.size()));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  out += fmt::format(
      "<text x=\"{}\" y=\"28\" font-size=\"15\">{} runs: predicted against measured; median "
      "absolute error {:.1f} %, bias {:+.1f} %</text>\n",
      kLeft, report.runs.size(), 100 * report.cold.runs.median_absolute_error,
      100 * report.cold.runs.bias);
  out += grid(axis);
  out += diagonal(axis, 1, "stroke=\"black\"");
  out += diagonal(axis, 1.25, "stroke=\"#888888\" stroke-dasharray=\"4 4\"");
  out += diagonal(axis, 0.8, "stroke=\"#888888\" stroke-dasharray=\"4 4\"");
  std::vector<std::vector<const ScoredRun*>> by_source(sources.size());
  for (const ScoredRun& r : report.runs) by_source[sources[r.at.source]].push_back(&r);
  const auto colour_of = [](std::size_t source) { return kColours[source % kColours.size()]; };
  for (std::size_t k = 0; k < by_source.size(); ++k)
    out += interval_lines(axis, by_source[k], colour_of(k));
  for (std::size_t k = 0; k < by_source.size(); ++k) out += dots(axis, by_source[k], colour_of(k));
  for (const auto& [source, index] : sources) {
    const double y = kTop + 12 + 18 * double(index);
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        kLeft + kSize + 24, y - 4, kColours[index % kColours.size()], kLeft + kSize + 36, y,
        markup_text(source));
  }
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">measured {}</text>\n",
                     kLeft + kSize / 2, kTop + kSize + 45, markup_text(report.unit));
  out += fmt::format(
      "<text transform=\"translate(24 {:.1f}) rotate(-90)\" text-anchor=\"middle\">predicted "
      "{}</text>\n",
      kTop + kSize / 2, markup_text(report.unit));
  out += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#666666\">dashed: 25 % fast, 20 % "
      "slow</text>\n",
      kLeft + kSize + 16, kTop + kSize);
  out += bar_panel(kLeft, below, "runs within their 90 % interval (band: 19 of 20 such counts)",
                   covered);
  out += bar_panel(second, below, "half of the 90 % interval, median", widths);
  return out + "</svg>\n";
}

}  // namespace reckon
