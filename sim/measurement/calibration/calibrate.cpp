#include "sim/measurement/calibration/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "sim/accuracy/plan_evidence.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/calibration/calibrate_input.h"
#include "sim/measurement/calibration/calibrate_waits.h"
#include "sim/measurement/calibration/calibration_fit.h"
#include "sim/scenario/resolve/one_worker.h"

namespace reckon {
namespace {

std::string name_of(const FitRow& row) {
  std::string name = fmt::format("{}: {}", row.run->name, to_text(row.measured.what));
  if (row.measured.what == Measured::number) return row.run->name + ": " + row.measured.parameter;
  if (row.measured.size.v > 0) name += " of " + format_bytes(row.measured.size);
  return name;
}

/// By how much each parameter's range is to be narrower or wider than its own standard error says,
/// so that forecasts, which draw each parameter by itself, spread as far as the fit allows: the
/// parameters' errors lean on each other (a faster processor and a longer launch time explain the
/// same step), and what the model misses is in none of them.
double range_factor(const MapFit& fit) {
  double together = 0, apart = 0;
  for (Eigen::Index i = 0; i < fit.residuals.size(); ++i) {
    const Eigen::VectorXd slope = fit.slopes.row(i);
    together += slope.dot(fit.covariance * slope) + kModelNoise * kModelNoise;
    apart += (slope.array().square() * fit.covariance.diagonal().array()).sum();
  }
  return apart > 0 ? std::sqrt(together / apart) : 1;
}

/// Rows that tell most about parameter k first; those that tell less than a twentieth of it all are
/// left out.
std::vector<std::string> telling_rows(const MapFit& fit, std::span<const FitRow> rows,
                                      Eigen::Index k) {
  std::vector<std::pair<double, std::size_t>> told;
  double all = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double slope = fit.slopes(at, k) / rows[i].noise();
    const double information = fit.weights[at] * slope * slope;
    told.emplace_back(-information, i);
    all += information;
  }
  std::sort(told.begin(), told.end());
  std::vector<std::string> names;
  for (const auto& [less, i] : told)
    if (-less > all / 20) names.push_back(name_of(rows[i]));
  return names;
}

class Calibrator {
 public:
  /// `said`: logarithms of the forecasts of the model's rows before anything was measured.
  Calibrator(CalibrationModel& model, Eigen::VectorXd said, const Catalog& catalog)
      : model_(model), said_(std::move(said)) {
    result_.catalog_digest = catalog.digest;
  }

  Calibration make() {
    if (model_.rows().empty()) {
      result_.held_out.how = "nothing: no step was measured";
      return std::move(result_);
    }
    fit_ = model_.fit(model_.rows());
    add_corrections();
    add_rows();
    result_.held_out = hold_out(model_);
    add_warnings();
    return std::move(result_);
  }

 private:
  void add_corrections() {
    const double factor = range_factor(fit_);
    std::vector<Eigen::Index> kept;
    for (Eigen::Index k = 0; k < fit_.x.size(); ++k) {
      const auto slot = static_cast<std::size_t>(k);
      const CatalogParameter& parameter = model_.parameters()[slot];
      const double error = std::sqrt(std::max(0.0, fit_.covariance(k, k)));
      const double moved = std::abs(fit_.x[k] - model_.prior(slot));
      if (moved < 0.01 && error > 0.9 * model_.spread(slot)) continue;
      // Never surer than the fit is of the number, and never less sure than one was before.
      const double spread = std::min(model_.spread(slot), error * factor);
      const double value = std::exp(fit_.x[k]);
      Correction c{.parameter = parameter.name(), .unit = parameter.unit()};
      c.catalog = parameter.get();
      c.calibrated = {
          value, value * std::exp(-kScoreOfP95 * spread),
          std::min(std::max(value, parameter.most()), value * std::exp(kScoreOfP95 * spread))};
      c.standard_error = error;
      c.rows = telling_rows(fit_, model_.rows(), k);
      result_.corrections.push_back(std::move(c));
      kept.push_back(k);
    }
    for (const Eigen::Index a : kept)
      for (const Eigen::Index b : kept) result_.covariance.push_back(fit_.covariance(a, b));
  }

  void add_rows() {
    const Eigen::VectorXd says = model_.forecasts(model_.rows(), fit_.x);
    for (std::size_t i = 0; i < model_.rows().size(); ++i) {
      const FitRow& row = model_.rows()[i];
      const auto at = static_cast<Eigen::Index>(i);
      result_.rows.push_back({.name = name_of(row),
                              .unit = row.measured.what == Measured::number
                                          ? unit_of_parameter(row.measured.parameter)
                                          : std::string(unit_of(row.measured.what)),
                              .measured = row.measured.value,
                              .before = std::exp(said_[at]),
                              .after = std::exp(says[at]),
                              .values = row.measured.values});
    }
  }

  std::string unit_of_parameter(const std::string& name) const {
    for (const CatalogParameter& p : model_.parameters())
      if (p.name() == name) return p.unit();
    return "";
  }

  void add_warnings() {
    auto& warnings = result_.warnings;
    std::set<const MeasuredRun*> runs;
    std::set<std::string> configurations;
    for (const FitRow& row : model_.rows()) {
      if (runs.insert(row.run).second)
        warnings.insert(warnings.end(), row.run->warnings.begin(), row.run->warnings.end());
      configurations.insert(row.run->configuration);
    }
    if (!model_.rows().empty() && configurations.size() == 1)
      warnings.emplace_back(
          "one configuration was measured: forecasts of other batch sizes, models and numbers of "
          "workers are extrapolations");
    constexpr double kContradicts = 3;  // standard deviations
    for (std::size_t i = 0; i < model_.rows().size(); ++i) {
      const FitRow& row = model_.rows()[i];
      const double e = fit_.residuals[static_cast<Eigen::Index>(i)];
      if (std::abs(e) > kContradicts * row.noise())
        warnings.push_back(fmt::format(
            "{} contradicts the other rows or the model: forecast after the fit {:+.0f} %",
            name_of(row), 100 * (std::exp(e) - 1)));
    }
    std::vector<std::string_view> outside;
    for (const Correction& c : result_.corrections)
      if (c.calibrated.value < c.catalog.low || c.calibrated.value > c.catalog.high)
        outside.push_back(c.parameter);
    if (!outside.empty())
      warnings.push_back(
          fmt::format("outside of the catalog's range, so this machine is unlike its general "
                      "numbers: {}",
                      fmt::join(outside, ", ")));
  }

  CalibrationModel& model_;
  Eigen::VectorXd said_;
  MapFit fit_;
  Calibration result_;
};

}  // namespace

namespace {

/// Parts of a step, which say nothing more where all of it is a row of evidence.
bool is_of_step(Measured q) {
  return q == Measured::step || q == Measured::compute || q == Measured::update ||
         q == Measured::exchange || q == Measured::stages || q == Measured::other;
}

/// The plan that was run: all of it, or one worker by itself, as a trial runs it. nullopt: neither
/// has the run's batch.
std::optional<Plan> plan_run(const MeasuredRun& run, const Plan& plan) {
  const auto has_batch = [&](const Plan& p) {
    return run.global_batch == 0 || p.only_job().global_batch == run.global_batch;
  };
  if (has_batch(plan)) return plan;
  auto alone = one_worker(plan);
  return alone && has_batch(*alone) ? std::move(alone) : std::nullopt;
}

/// Nothing where evidence does not speak of the plan, or where its kernels were measured too: those
/// correct the catalog, and the step is what tells how far.
std::optional<OwnRow> own_row_of(const MeasuredRun& run, const Plan& plan,
                                 const NetworkModel& network) {
  const auto step = std::ranges::find(run.quantities, Measured::step, &MeasuredQuantity::what);
  if (step == run.quantities.end() || step->value <= 0 || !takes_evidence(plan))
    return std::nullopt;
  auto as_run = plan_run(run, plan);
  if (!as_run) return std::nullopt;
  OwnRow row = own_row(std::move(*as_run), network);
  row.id = run.name;
  row.step_seconds = step->value;
  row.noise = step->log_error;
  row.steps = step->values;
  return row;
}

/// Takes the steps that are rows of evidence out of the runs.
std::vector<OwnRow> take_own_rows(std::vector<MeasuredRun>& runs, const Catalog& catalog,
                                  const NetworkModel& network) {
  std::vector<OwnRow> rows;
  const bool kernels = std::ranges::any_of(runs, [](const MeasuredRun& r) {
    return std::ranges::find(r.quantities, Measured::kernel, &MeasuredQuantity::what) !=
           r.quantities.end();
  });
  for (MeasuredRun& run : runs) {
    if (kernels || run.scenario.scenario.name.empty()) continue;
    const auto plan = plan_as_run(run, catalog);
    auto row = plan ? own_row_of(run, *plan, network) : std::nullopt;
    if (!row) continue;
    rows.push_back(std::move(*row));
    for (auto* all : {&run.quantities, &run.first_half, &run.second_half})
      std::erase_if(*all, [](const MeasuredQuantity& q) { return is_of_step(q.what); });
  }
  return rows;
}

/// Logarithms of what the catalog says of the rows, whose runs are those of `runs`, by the
/// scenarios of `given`.
Eigen::VectorXd forecasts_before(std::vector<FitRow> rows, const std::vector<MeasuredRun>& runs,
                                 std::span<const MeasuredRun> given, const Catalog& catalog,
                                 const NetworkModel& network) {
  for (FitRow& row : rows) row.run = &given[static_cast<std::size_t>(row.run - runs.data())];
  return CalibrationModel(catalog, network).forecasts(rows, {});
}

}  // namespace

Expected<Calibration> calibrate(std::span<const MeasuredRun> given, const Catalog& catalog,
                                const NetworkModel& network) {
  std::vector<MeasuredRun> runs(given.begin(), given.end());
  Catalog with_input = catalog;
  MeasuredInput input = take_input(runs, with_input);
  std::vector<OwnRow> own = take_own_rows(runs, with_input, network);
  CalibrationModel model(with_input, network);
  Diagnostics problems;
  for (const MeasuredRun& run : runs) {
    const Diagnostics found = model.add(run);
    problems.insert(problems.end(), found.begin(), found.end());
  }
  const bool waited =
      std::any_of(runs.begin(), runs.end(), [](const MeasuredRun& r) { return !r.waits.empty(); });
  if (problems.empty() && model.rows().empty() && !waited && own.empty() && input.empty())
    problems.push_back({Severity::error,
                        {runs.empty() ? std::string() : runs.front().file},
                        "no measurement of anything that the forecast uses",
                        "steps at steady state are needed: let it run for longer"});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  model.find_parameters();
  Eigen::VectorXd said = forecasts_before(model.rows(), runs, given, catalog, network);
  Calibration result = Calibrator(model, std::move(said), catalog).make();
  for (Correction& correction : input.corrections) add_alone(result, std::move(correction));
  result.rows.insert(result.rows.end(), input.rows.begin(), input.rows.end());
  result.own_data = std::move(input.own_data);
  calibrate_waits(runs, catalog, result);
  if (model.rows().empty() && !own.empty())
    result.held_out.how = "nothing: the steps are evidence, no number of the catalog is corrected";
  result.own_runs = std::move(own);
  for (const MeasuredRun& run : runs) result.measurements.push_back(run.file);
  return result;
}

}  // namespace reckon
