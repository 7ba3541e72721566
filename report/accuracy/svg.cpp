#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "report/accuracy/accuracy.h"
#include "report/markup.h"

namespace reckon {
namespace {

constexpr double kSize = 640, kLeft = 80, kTop = 50;  // the square of the axes
constexpr double kLegend = 210;

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

}  // namespace

std::string accuracy_svg(const AccuracyReport& report) {
  const Axis axis = axis_of(report);
  std::map<std::string_view, std::size_t> sources;
  for (const ScoredRun& r : report.runs) sources.emplace(r.at.source, 0);
  std::size_t next = 0;
  for (auto& [source, index] : sources) index = next++;

  const double width = kLeft + kSize + kLegend, height = kTop + kSize + 60;
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
  for (const ScoredRun& r : report.runs)
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.55\"/>\n",
        kLeft + axis.at(r.measured), kTop + kSize - axis.at(r.predicted),
        kColours[sources[r.at.source] % kColours.size()]);
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
  return out + "</svg>\n";
}

}  // namespace reckon
