#include "sim/accuracy/scoring/held_out_intervals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include "sim/accuracy/run/plan.h"
#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

/// What errors depend on: how the work is shared out, and whether the stack was seen.
enum class Sharing { copies, cut_model, servers };
struct Kind {
  Sharing sharing = Sharing::copies;
  bool stack_known = false;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

Kind kind_of(const ScoredRun& r) {
  const std::string_view strategy = r.at.run.strategy;
  const bool cut = strategy == "model_parallel" || strategy.starts_with("zero");
  return {cut                              ? Sharing::cut_model
          : strategy == "parameter_server" ? Sharing::servers
                                           : Sharing::copies,
          r.stack_known};
}

/// log(measured / predicted) of runs that rest on one row.
struct Residual {
  std::string_view row;
  std::string fold;
  Precision precision = Precision::fp32;
  Kind kind;
  double value = 0;
};

std::vector<Residual> residuals_of(std::span<const ScoredRun> runs, const Catalog& catalog,
                                   HoldOut by) {
  // What was submitted often counts once: the middle of its group.
  using Group = std::tuple<std::string_view, std::string, std::string_view, int, std::string_view,
                           Precision, Kind>;
  std::map<Group, std::vector<double>> groups;
  for (const ScoredRun& r : runs) {
    const RunConfiguration& run = r.at.run;
    const Accelerator* accelerator = catalog.find_accelerator(run.accelerator);
    const auto precision = precision_of_run(run, *accelerator);
    if (!precision) continue;
    groups[{row_name(*accelerator, catalog), fold_of(r.at, by), model_name(run), run.accelerators,
            run.accelerator, *precision, kind_of(r)}]
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

/// Residuals of one group; those of one fold resemble each other, so folds count.
struct Sample {
  std::vector<double> values;
  std::set<std::string_view> folds;
  void add(const Residual& r) {
    values.push_back(r.value);
    folds.insert(r.fold);
  }
};

/// The reach of `own` where it has many folds, else drawn towards what is known of more.
double drawn(const Sample& own, double towards) {
  constexpr double kDraw = 2;  // folds that the more general weighs
  if (own.values.empty()) return towards;
  const double n = double(own.folds.size());
  return (n * reach(own.values) + kDraw * towards) / (n + kDraw);
}

/// From all runs whose stack is known or not alike, to those of the same kind, to those of the row.
double half_width(std::span<const Residual> residuals, std::string_view row, Precision precision,
                  Kind kind, std::string_view without) {
  constexpr double kNothingKnown = 0.3;  // general knowledge of models never checked
  Sample all, alike, own;
  for (const Residual& r : residuals) {
    if (r.fold == without || r.kind.stack_known != kind.stack_known) continue;
    all.add(r);
    if (r.kind != kind) continue;
    alike.add(r);
    if (r.row == row && r.precision == precision) own.add(r);
  }
  return drawn(own, drawn(alike, all.values.empty() ? kNothingKnown : reach(all.values)));
}

/// How most runs of a row share their work out: a row does not say.
Sharing usual_sharing(std::span<const Residual> residuals, const Efficiency& row) {
  std::array<int, 3> runs{};
  for (const Residual& r : residuals)
    if (r.row == row.accelerator && r.precision == row.precision)
      ++runs[static_cast<std::size_t>(r.kind.sharing)];
  const auto most = std::max_element(runs.begin(), runs.end());
  return static_cast<Sharing>(most - runs.begin());
}

}  // namespace

void set_held_out_intervals(std::vector<ScoredRun>& runs, const Catalog& catalog, HoldOut by) {
  const auto residuals = residuals_of(runs, catalog, by);
  using Key = std::tuple<std::string, std::string_view, Precision, Kind>;
  std::map<Key, double> known;
  for (ScoredRun& r : runs) {
    const Accelerator& accelerator = *catalog.find_accelerator(r.at.run.accelerator);
    const auto precision = precision_of_run(r.at.run, accelerator);
    if (!precision) continue;
    const Key key{fold_of(r.at, by), row_name(accelerator, catalog), *precision, kind_of(r)};
    auto at = known.find(key);
    if (at == known.end()) {
      const double reach =
          half_width(residuals, std::get<1>(key), *precision, kind_of(r), std::get<0>(key));
      at = known.emplace(key, reach).first;
    }
    r.low = r.predicted * std::exp(-at->second);
    r.high = r.predicted * std::exp(at->second);
  }
}

void set_spreads(std::vector<FittedRow>& rows, std::span<const ScoredRun> cross_validated,
                 const Catalog& catalog) {
  const auto residuals = residuals_of(cross_validated, catalog, HoldOut::source);
  for (FittedRow& row : rows) {
    Efficiency& e = row.efficiency;
    const bool own = !e.stack.empty() && catalog.class_of_stack(e.stack) != e.stack;
    const Kind kind{usual_sharing(residuals, e), own};
    const double reach = half_width(residuals, e.accelerator, e.precision, kind, /*without=*/"");
    e.step_spread = Fact<double>{1.0, std::exp(-reach), std::exp(reach), e.convolution.source};
  }
}

}  // namespace reckon
