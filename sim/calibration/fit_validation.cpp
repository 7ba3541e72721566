#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/calibration/fit.h"
#include "sim/forecast/forecast.h"

// Fits without each source in turn: how wrong predictions of what was not seen are, and how wide
// intervals must therefore be.
namespace reckon {
namespace {

/// log(measured / predicted) of runs that rest on one row.
struct Residual {
  std::string_view row, source;
  Precision precision = Precision::fp32;
  bool stack_known = false;
  double value = 0;
};

std::vector<Residual> residuals_of(std::span<const ScoredRun> runs, const Catalog& catalog) {
  // What was submitted often counts once: the middle of its group.
  using Group = std::tuple<std::string_view, std::string_view, std::string_view, int,
                           std::string_view, Precision, bool>;
  std::map<Group, std::vector<double>> groups;
  for (const ScoredRun& r : runs) {
    const RunConfiguration& run = r.at.run;
    const Accelerator* accelerator = catalog.find_accelerator(run.accelerator);
    const auto precision = precision_of_run(run, *accelerator);
    if (!precision) continue;
    groups[{row_name(*accelerator, catalog), r.at.source, model_name(run), run.accelerators,
            run.accelerator, *precision, r.stack_known}]
        .push_back(std::log(r.measured / r.predicted));
  }
  std::vector<Residual> result;
  for (const auto& [key, values] : groups)
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<5>(key), std::get<6>(key),
                      quantile(values, 0.5)});
  return result;
}

constexpr double kNine = 0.9;  // the share of runs that an interval holds

/// Symmetric in logarithms around the prediction: what nine of ten residuals stay below.
double reach(const std::vector<double>& values) {
  std::vector<double> sizes;
  for (const double v : values) sizes.push_back(std::abs(v));
  return quantile(sizes, kNine);
}

/// For runs of a row whose stack is known, or not. Rows with few residuals are drawn towards all.
double half_width(std::span<const Residual> residuals, std::string_view row, Precision precision,
                  bool stack_known, std::string_view without_source) {
  constexpr double kDraw = 10;           // residuals that the whole weighs
  constexpr double kNothingKnown = 0.3;  // general knowledge of models never checked
  std::vector<double> own, all;
  for (const Residual& r : residuals) {
    if (r.source == without_source || r.stack_known != stack_known) continue;
    all.push_back(r.value);
    if (r.row == row && r.precision == precision) own.push_back(r.value);
  }
  const double whole = all.empty() ? kNothingKnown : reach(all);
  if (own.empty()) return whole;
  const double n = double(own.size());
  return (n * reach(own) + kDraw * whole) / (n + kDraw);
}

}  // namespace

ScoredRuns score_cross_validated(std::span<const PublishedRun> runs, const Catalog& catalog) {
  std::set<std::string_view> sources;
  for (const PublishedRun& r : runs) sources.insert(r.source);
  const EfficiencyFit fit(runs, catalog);
  ScoredRuns result;
  for (const std::string_view source : sources) {
    const Catalog others = with_fitted(catalog, fit.rows(source));
    std::vector<PublishedRun> own;
    for (const PublishedRun& r : runs)
      if (r.source == source) own.push_back(r);
    ScoredRuns scored = score_cold(own, others);
    result.runs.insert(result.runs.end(), scored.runs.begin(), scored.runs.end());
    for (const auto& [reason, count] : scored.skipped) result.skipped[reason] += count;
  }
  std::sort(result.runs.begin(), result.runs.end(),
            [](const ScoredRun& a, const ScoredRun& b) { return a.at.line < b.at.line; });
  const auto residuals = residuals_of(result.runs, catalog);
  for (ScoredRun& r : result.runs) {
    const Accelerator& accelerator = *catalog.find_accelerator(r.at.run.accelerator);
    const auto precision = precision_of_run(r.at.run, accelerator);
    const double reach = half_width(residuals, row_name(accelerator, catalog), *precision,
                                    r.stack_known, r.at.source);
    r.low = r.predicted * std::exp(-reach);
    r.high = r.predicted * std::exp(reach);
  }
  return result;
}

void set_spreads(std::vector<FittedRow>& rows, std::span<const ScoredRun> cross_validated,
                 const Catalog& catalog) {
  const auto residuals = residuals_of(cross_validated, catalog);
  for (FittedRow& row : rows) {
    Efficiency& e = row.efficiency;
    const double reach =
        half_width(residuals, e.accelerator, e.precision, !e.stack.empty(), /*without_source=*/"");
    e.step_spread = Fact<double>{1.0, std::exp(-reach), std::exp(reach), e.convolution.source};
  }
}

}  // namespace reckon
