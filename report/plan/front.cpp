#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/markup.h"
#include "report/plan/plan.h"
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
double mean_cost_of(const RankedPlan& p) { return p.result.forecast.cost_usd->mean; }

/// A zero cannot stand on a logarithmic axis.
bool can_be_drawn(const std::vector<RankedPlan>& front) {
  return front.size() >= 2 && std::ranges::all_of(front, [](const RankedPlan& p) {
           return time_of(p) > 0 && mean_cost_of(p) > 0;
         });
}

char mark(std::size_t k) { return k < 26 ? char('a' + k) : '*'; }

}  // namespace

std::string front_text(const Answer& a, int width) {
  if (!can_be_drawn(a.front)) return "";
  constexpr int kRows = 10, kColumns = 60;
  const Range time = range_of(a.front, time_of), cost = range_of(a.front, mean_cost_of);
  std::vector<std::string> field(kRows, std::string(kColumns, ' '));
  std::string list;
  for (std::size_t k = 0; k < a.front.size(); ++k) {
    const RankedPlan& p = a.front[k];
    const auto column = std::size_t(std::lround(time.share(time_of(p)) * (kColumns - 1)));
    const auto row = std::size_t(std::lround((1 - cost.share(mean_cost_of(p))) * (kRows - 1)));
    field[row][column] = mark(k);
    const std::string line =
        fmt::format("{}, {}: {}{}", time_value(Seconds{time_of(p)}), usd_value(mean_cost_of(p)),
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

namespace {

/// One line for each point below the plot, so that a print or a picture in a page has the names
/// too.
struct SvgFront {
  static constexpr double kWidth = 900, kLeft = 110, kTop = 50, kPlot = 380, kPlotWidth = 740;
  static constexpr double kLegend = kTop + kPlot + 84, kLine = 17;
  const Answer& a;
  Range time = range_of(a.front, time_of), cost = range_of(a.front, mean_cost_of);
  std::string out;

  /// Long names make a wider picture.
  double width() const {
    constexpr double kLetter = 6.6;
    std::size_t longest = 0;
    for (const RankedPlan& p : a.front) longest = std::max(longest, words_of(p).size());
    return std::max(kWidth, kLeft + 38 + kLetter * double(longest));
  }
  double height() const { return kLegend + kLine * double(a.front.size()) + 20; }
  double x(double seconds) const { return kLeft + 20 + time.share(seconds) * (kPlotWidth - 40); }
  double y(double usd) const { return kTop + 20 + (1 - cost.share(usd)) * (kPlot - 40); }
  void text(double at_x, double at_y, const char* anchor, const std::string& words) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at_x, at_y,
                       anchor, markup_text(words));
  }

  void axes() {
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
        "stroke=\"#bbbbbb\"/>\n",
        kLeft, kTop, kPlotWidth, kPlot);
    const double usd = std::sqrt(cost.low * cost.high);
    const double seconds = std::sqrt(time.low * time.high);
    for (const double value : {cost.low, usd, cost.high})
      text(kLeft - 8, y(value) + 4, "end", usd_value(value));
    for (const double value : {time.low, seconds, time.high})
      text(x(value), kTop + kPlot + 20, "middle", time_value(Seconds{value}));
    text(kLeft + kPlotWidth / 2, kTop + kPlot + 42, "middle", "time to the end");
    text(kLeft - 8, kTop - 8, "end", "cost");
    text(kLeft, kTop + kPlot + 64, "start",
         "Means, both axes logarithmic. Blue: meets all limits; red: misses one; in a ring: the "
         "recommendation.");
  }

  void points() {
    std::string path, circles;
    for (const RankedPlan& p : a.front) {
      const double px = x(time_of(p)), py = y(mean_cost_of(p));
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", px, py);
      const bool chosen = !a.plans.empty() &&
                          planner::same_changes(p.result.changes, a.plans.front().result.changes);
      if (chosen)
        circles += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\" fill=\"none\" stroke=\"#332288\"/>\n", px,
            py);
      circles += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\"><title>{}</title></circle>\n",
          px, py, p.result.meets_all() ? "#332288" : "#CC6677", markup_text(words_of(p)));
    }
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#88CCEE\"/>\n", path) + circles;
  }

  void names() {
    double last_x = -1e9, last_y = -1e9;
    for (std::size_t k = 0; k < a.front.size(); ++k) {
      const double px = x(time_of(a.front[k])), py = y(mean_cost_of(a.front[k]));
      // Close neighbours: below the curve instead of on top of the one before.
      const bool close = px - last_x < 12 && py - last_y < 14;
      text(px + (close ? -8 : 8), py + (close ? 16 : -8), close ? "end" : "start",
           std::string(1, mark(k)));
      last_x = px;
      last_y = py;
      const double line = kLegend + kLine * double(k);
      text(kLeft, line, "start", std::string(1, mark(k)));
      text(kLeft + 18, line, "start", words_of(a.front[k]));
    }
  }

  static std::string words_of(const RankedPlan& p) {
    return fmt::format("{}, {}: {}; {}", time_value(Seconds{time_of(p)}),
                       usd_value(mean_cost_of(p)), place_text(p), strategy_text(p.split));
  }
};

std::string svg_head(double width, double height, const Answer& a) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"28\" font-size=\"16\">{3}: time against cost</text>\n",
      width, height, SvgFront::kLeft, markup_text(a.scenario));
}

}  // namespace

std::string front_svg(const Answer& a) {
  if (!can_be_drawn(a.front))
    return svg_head(SvgFront::kWidth, 120, a) +
           fmt::format("<text x=\"{}\" y=\"80\">no two plans to compare</text>\n</svg>\n",
                       SvgFront::kLeft);
  SvgFront front{a};
  front.axes();
  front.points();
  front.names();
  return svg_head(front.width(), front.height(), a) + front.out + "</svg>\n";
}

}  // namespace reckon
