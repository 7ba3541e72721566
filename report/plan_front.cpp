#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plan.h"
#include "report/table.h"
#include "report/text.h"
#include "sim/base/unit_text.h"

// Time against cost of the plans that no other beats in both.
namespace reckon {
namespace {

using planner::Answer;
using planner::RankedPlan;

struct Range {
  double low = 0, high = 1;
  /// 0..1 on a logarithmic axis.
  double share(double value) const {
    return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
  }
};
template <class Value>
Range range_of(const std::vector<RankedPlan>& front, Value value) {
  Range r{value(front.front()), value(front.front())};
  for (const RankedPlan& p : front) {
    r.low = std::min(r.low, value(p));
    r.high = std::max(r.high, value(p));
  }
  return r;
}
double time_of(const RankedPlan& p) { return p.result.forecast.time_seconds.mean; }
double cost_of(const RankedPlan& p) { return p.result.forecast.cost_usd->mean; }

/// A zero cannot stand on a logarithmic axis.
bool can_be_drawn(const std::vector<RankedPlan>& front) {
  return front.size() >= 2 && std::ranges::all_of(front, [](const RankedPlan& p) {
           return time_of(p) > 0 && cost_of(p) > 0;
         });
}

char mark(std::size_t k) { return k < 26 ? char('a' + k) : '*'; }

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

}  // namespace

std::string front_text(const Answer& a, int width) {
  if (!can_be_drawn(a.front)) return "";
  constexpr int kRows = 10, kColumns = 60;
  const Range time = range_of(a.front, time_of), cost = range_of(a.front, cost_of);
  std::vector<std::string> field(kRows, std::string(kColumns, ' '));
  std::string list;
  for (std::size_t k = 0; k < a.front.size(); ++k) {
    const RankedPlan& p = a.front[k];
    const auto column = std::size_t(std::lround(time.share(time_of(p)) * (kColumns - 1)));
    const auto row = std::size_t(std::lround((1 - cost.share(cost_of(p))) * (kRows - 1)));
    field[row][column] = mark(k);
    const std::string line =
        fmt::format("{}, {}: {}{}", time_value(Seconds{time_of(p)}), usd_value(cost_of(p)),
                    place_text(p), p.result.meets_all() ? "" : " (misses a limit)");
    const auto lines = wrap(line, width - 5);
    for (std::size_t l = 0; l < lines.size(); ++l)
      list += fmt::format("  {:<3}{}\n", l == 0 ? std::string(1, mark(k)) : "", lines[l]);
  }
  std::string out = "\nTime against cost (means; nothing forecast is both faster and cheaper)\n";
  for (int r = 0; r < kRows; ++r) {
    const std::string label = r == 0           ? usd_value(cost.high)
                              : r == kRows - 1 ? usd_value(cost.low)
                                               : std::string();
    const std::string& line = field[std::size_t(r)];
    out += fmt::format("  {:>16} |{}\n", label, line.substr(0, line.find_last_not_of(' ') + 1));
  }
  out += fmt::format("  {:>16} +{}\n", "", std::string(kColumns, '-'));
  out += fmt::format("  {:>16}  {:<{}}{:>{}}\n", "", time_value(Seconds{time.low}), kColumns / 2,
                     time_value(Seconds{time.high}), kColumns / 2);
  return out + list;
}

std::string front_svg(const Answer& a) {
  constexpr double kWidth = 900, kHeight = 560, kLeft = 110, kTop = 50, kPlot = 380;
  constexpr double kPlotWidth = 740;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  out += fmt::format("<text x=\"{}\" y=\"28\" font-size=\"16\">{}: time against cost</text>\n",
                     kLeft, escaped(a.scenario));
  if (!can_be_drawn(a.front))
    return out +
           fmt::format("<text x=\"{}\" y=\"80\">no two plans to compare</text>\n</svg>\n", kLeft);
  const Range time = range_of(a.front, time_of), cost = range_of(a.front, cost_of);
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#bbbbbb\"/>\n",
      kLeft, kTop, kPlotWidth, kPlot);
  std::string path, points;
  for (const RankedPlan& p : a.front) {
    const double x = kLeft + 20 + time.share(time_of(p)) * (kPlotWidth - 40);
    const double y = kTop + 20 + (1 - cost.share(cost_of(p))) * (kPlot - 40);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x, y);
    points += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}; {}: {}, {}</title>"
        "</circle>\n",
        x, y, p.result.meets_all() ? "#332288" : "#CC6677", escaped(place_text(p)),
        escaped(strategy_text(p.shape)), time_value(Seconds{time_of(p)}), usd_value(cost_of(p)));
  }
  out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#88CCEE\"/>\n", path) + points;
  const auto label = [&](double x, double y, const char* anchor, const std::string& text) {
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                       escaped(text));
  };
  label(kLeft - 8, kTop + 24, "end", usd_value(cost.high));
  label(kLeft - 8, kTop + kPlot - 16, "end", usd_value(cost.low));
  label(kLeft + 20, kTop + kPlot + 20, "start", time_value(Seconds{time.low}));
  label(kLeft + kPlotWidth - 20, kTop + kPlot + 20, "end", time_value(Seconds{time.high}));
  label(kLeft, kTop + kPlot + 50, "start",
        "Means, both axes logarithmic. Blue: meets all limits; red: misses one. Names: point at a "
        "circle.");
  return out + "</svg>\n";
}

}  // namespace reckon
