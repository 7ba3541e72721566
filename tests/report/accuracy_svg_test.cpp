#include <catch2/catch.hpp>
#include <vector>

#include "report/accuracy/accuracy.h"
#include "support/text.h"

// The plot of `reckon accuracy --plot`.
namespace {
using namespace reckon;

ScoredRun plotted_run(double measured, double predicted, double low, double high) {
  ScoredRun r;
  r.at.source = "somebody";
  r.at.run.accelerators = 8;
  r.measured = measured;
  r.predicted = predicted;
  r.low = low;
  r.high = high;
  r.evidence = "nothing near";
  return r;
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++count;
  return count;
}

}  // namespace

TEST_CASE("the plot of accuracy has intervals, coverage by class, and widths before and after") {
  AccuracyReport report;
  report.runs = {plotted_run(100, 110, 80, 150), plotted_run(1000, 2000, 1500, 2600),
                 plotted_run(50, 50, 0, 0)};  // the last has no interval
  report.cold = evaluate(report.runs);
  WarmEvaluation warm;
  warm.rest.runs = {.runs = 2, .interval_median_half_width = 0.125};
  report.warm = {warm};
  const std::string svg = accuracy_svg(report);
  CHECK(times(svg, "<circle") == 1);  // the legend's
  const auto path_of = [&](const std::string& kind) {
    const std::size_t at = svg.find("<path class=\"" + kind);
    REQUIRE(at != std::string::npos);
    return svg.substr(at, svg.find("/>", at) - at);
  };
  CHECK(times(path_of("runs"), "h0") == 3);
  CHECK(times(path_of("intervals"), "V") == 2);
  CHECK(test::contains(svg, "runs within their 90 % interval"));
  CHECK(test::contains(svg, ">nothing near</text>"));
  CHECK(test::contains(svg, ">33 % of 3</text>"));
  CHECK(test::contains(svg, ">after 1 of the same kind</text>"));
  CHECK(test::contains(svg, ">+-12 %</text>"));
  CHECK(test::contains(svg, "</svg>"));
}
