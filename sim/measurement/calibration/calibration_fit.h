#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/measurement/calibration/calibration.h"
#include "sim/measurement/calibration/map_fit.h"
#include "sim/measurement/log_spread.h"
#include "sim/measurement/measured_run.h"

// The fit behind calibrate(). Included by calibrat*.cpp only: Eigen is heavy.
namespace reckon {

/// How well the step model itself explains a quantity once its numbers are right: the floor of
/// each residual's noise, as in the fit of the catalog's own efficiencies
/// (sim/accuracy/scoring/fit/group.cpp).
inline constexpr double kModelNoise = 0.10;  // standard deviation of ln(forecast / measured)

/// The run's plan, of which files that were read from its machine's memory are no part.
Expected<Plan> plan_as_run(const MeasuredRun& run, const Catalog& catalog);

/// One quantity of one run, as a residual.
struct FitRow {
  const MeasuredRun* run = nullptr;
  MeasuredQuantity measured;
  double noise() const;  // standard deviation of ln(forecast / measured)
};

/// Forecasts of rows from a catalog whose numbers are set again and again.
class CalibrationModel {
 public:
  CalibrationModel(const Catalog& catalog, const NetworkModel& network)
      : catalog_(catalog), network_(network) {}
  CalibrationModel(const CalibrationModel&) = delete;
  CalibrationModel& operator=(const CalibrationModel&) = delete;

  /// All mistakes of scenarios that cannot be planned.
  Diagnostics add(const MeasuredRun& run);
  /// Keeps the parameters that move a row. The rest of the catalog has no say.
  void find_parameters();

  const std::vector<FitRow>& rows() const { return rows_; }
  const std::vector<CatalogParameter>& parameters() const { return parameters_; }
  double prior(std::size_t k) const;   // natural logarithm of the catalog's value
  double spread(std::size_t k) const;  // one standard deviation of it

  /// Logarithms of the forecasts of `rows` with the parameters' logarithms at x.
  Eigen::VectorXd forecasts(std::span<const FitRow> rows, const Eigen::VectorXd& x);
  Eigen::VectorXd priors() const;
  MapFit fit(std::span<const FitRow> rows);

 private:
  Catalog catalog_;
  const NetworkModel& network_;
  std::vector<FitRow> rows_;
  std::vector<CatalogParameter> parameters_;
  std::vector<ParameterValue> before_;
  std::vector<std::string> candidates_;
};

/// Forecasts of rows that the fit did not see, by the catalog and by a fit to the other rows.
HeldOut hold_out(CalibrationModel& model);

}  // namespace reckon
