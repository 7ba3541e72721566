#include "sim/measurement/calibration/calibration_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/measurement/calibration/predicted.h"
#include "sim/scenario/resolve/one_job.h"

namespace reckon {
namespace {

/// Of the logarithm of a forecast, over the whole range of a parameter: less is no influence.
constexpr double kMoves = 1e-3;

}  // namespace

Expected<Plan> plan_as_run(const MeasuredRun& run, const Catalog& catalog) {
  auto plan = make_plan(run.scenario, catalog);
  if (plan && run.reads_files)
    for (PlannedWorkload& job : plan->jobs) job.dataset.bytes_per_sample = Fact<Bytes>{Bytes{0}};
  return plan;
}

double FitRow::noise() const { return std::hypot(kModelNoise, measured.log_error); }

double CalibrationModel::prior(std::size_t k) const { return std::log(before_[k].value); }
double CalibrationModel::spread(std::size_t k) const { return log_spread(before_[k]); }

Eigen::VectorXd CalibrationModel::priors() const {
  Eigen::VectorXd x(static_cast<Eigen::Index>(parameters_.size()));
  for (std::size_t k = 0; k < parameters_.size(); ++k) x[static_cast<Eigen::Index>(k)] = prior(k);
  return x;
}

Diagnostics CalibrationModel::add(const MeasuredRun& run) {
  for (const MeasuredQuantity& q : run.quantities)
    if (q.what == Measured::number && q.value > 0) {
      rows_.push_back({&run, q});
      candidates_.push_back(q.parameter);
    }
  if (run.scenario.scenario.name.empty()) return {};  // of no plan
  const auto plan = plan_as_run(run, catalog_);
  if (!plan) return plan.error();
  if (!run.quantities.empty()) {  // waits are of the pools, whoever runs on them
    if (auto several = why_not_one_job(*plan, run.scenario.places, "a measured run"))
      return {std::move(*several)};
    const StepEstimate step = estimate_step(*plan, plan->only_job(), network_);
    for (const MeasuredQuantity& q : run.quantities)
      if (q.value > 0 && predicted(q, *plan, step, network_) > 0) rows_.push_back({&run, q});
  }
  for (std::string& name : parameters_of(*plan, catalog_))
    if (std::find(candidates_.begin(), candidates_.end(), name) == candidates_.end())
      candidates_.push_back(std::move(name));
  return {};
}

void CalibrationModel::find_parameters() {
  const Eigen::VectorXd none;
  const Eigen::VectorXd now = forecasts(rows_, none);
  for (const std::string& name : candidates_) {
    auto parameter = find_parameter(catalog_, name);
    RECKON_CHECK(parameter.has_value());  // parameters_of() names what is there
    const ParameterValue v = parameter->get();
    if (!v.uncertain() || v.value <= 0 || v.high <= v.value) continue;
    double moved = 0;
    for (const double end : {v.low > 0 ? v.low : v.value / 2, v.high}) {
      parameter->set({end, end, end}, SourceId::user);
      const Eigen::VectorXd there = forecasts(rows_, none);
      if (there.size() > 0) moved = std::max(moved, (there - now).cwiseAbs().maxCoeff());
    }
    parameter->set(v, SourceId::user);
    if (moved < kMoves) continue;
    before_.push_back(v);
    parameters_.push_back(std::move(*parameter));
  }
}

Eigen::VectorXd CalibrationModel::forecasts(std::span<const FitRow> rows,
                                            const Eigen::VectorXd& x) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(x.size()); ++k) {
    const double value = std::exp(x[static_cast<Eigen::Index>(k)]);
    parameters_[k].set({value, value, value}, SourceId::user);
  }
  const auto number = [&](const std::string& name) {
    const auto parameter = find_parameter(catalog_, name);
    return parameter ? parameter->get().value : 0;
  };
  Eigen::VectorXd logs(static_cast<Eigen::Index>(rows.size()));
  const MeasuredRun* planned = nullptr;
  tl::expected<Plan, Diagnostics> plan;
  StepEstimate step;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    constexpr double kLeast = 1e-12;  // in the row's unit: what ln is taken of
    const auto at = static_cast<Eigen::Index>(i);
    if (rows[i].measured.what == Measured::number) {
      logs[at] = std::log(std::max(kLeast, number(rows[i].measured.parameter)));
      continue;
    }
    if (rows[i].run != planned) {
      planned = rows[i].run;
      plan = plan_as_run(*planned, catalog_);
      RECKON_CHECK(plan.has_value());  // add() planned it, and numbers refuse no plan
      step = estimate_step(*plan, plan->only_job(), network_);
    }
    logs[at] = std::log(std::max(kLeast, predicted(rows[i].measured, *plan, step, network_)));
  }
  // Back, so that the catalog is the one that was given whoever asks next.
  for (std::size_t k = 0; k < static_cast<std::size_t>(x.size()); ++k)
    parameters_[k].set(before_[k], SourceId::user);
  return logs;
}

MapFit CalibrationModel::fit(std::span<const FitRow> rows) {
  const auto n = static_cast<Eigen::Index>(parameters_.size());
  const auto m = static_cast<Eigen::Index>(rows.size());
  MapProblem problem;
  problem.prior = priors();
  problem.spread.resize(n);
  problem.most.resize(n);
  for (Eigen::Index k = 0; k < n; ++k) {
    problem.spread[k] = spread(static_cast<std::size_t>(k));
    problem.most[k] = std::log(parameters_[static_cast<std::size_t>(k)].most());
  }
  Eigen::VectorXd measured(m);
  problem.noise.resize(m);
  for (Eigen::Index i = 0; i < m; ++i) {
    const FitRow& row = rows[static_cast<std::size_t>(i)];
    measured[i] = std::log(row.measured.value);
    problem.noise[i] = row.noise();
  }
  problem.residuals = [&](const Eigen::VectorXd& x) -> Eigen::VectorXd {
    return forecasts(rows, x) - measured;
  };
  return fit_map(problem);
}

}  // namespace reckon
