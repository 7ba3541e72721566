#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/measurement/calibration/calibration_fit.h"

// Whether an overlay helps where it was not made.
namespace reckon {
namespace {

/// What a forecast is asked for first is the step.
bool counts(const FitRow& row) {
  return row.measured.what == Measured::step || row.measured.what == Measured::reduce;
}

struct Errors {
  double before = 0, after = 0, noise = 0;
  int rows = 0;

  void add(CalibrationModel& model, std::span<const FitRow> rows, const MapFit& fit) {
    const Eigen::VectorXd said = model.forecasts(rows, model.priors());
    const Eigen::VectorXd says = model.forecasts(rows, fit.x);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!counts(rows[i])) continue;
      const double measured = std::log(rows[i].measured.value);
      before += std::abs(said[static_cast<Eigen::Index>(i)] - measured);
      after += std::abs(says[static_cast<Eigen::Index>(i)] - measured);
      noise += rows[i].measured.log_error;
      ++this->rows;
    }
  }
  HeldOut result(std::string how) const {
    HeldOut held{.how = std::move(how), .rows = rows};
    if (rows == 0) return held;
    held.error_before = before / rows;
    held.error_after = after / rows;
    held.worse = held.error_after > held.error_before + noise / rows;
    return held;
  }
};

/// Of one half of its steps, what the model has a row of.
void add_half(const CalibrationModel& model, const MeasuredRun& run,
              const std::vector<MeasuredQuantity>& half, std::vector<FitRow>& rows) {
  for (const MeasuredQuantity& q : half)
    for (const FitRow& row : model.rows())
      if (row.run == &run && row.measured.what == q.what && q.value > 0) rows.push_back({&run, q});
}

HeldOut second_halves(CalibrationModel& model) {
  std::vector<FitRow> first, second;
  std::set<const MeasuredRun*> seen;
  for (const FitRow& row : model.rows()) {
    if (!seen.insert(row.run).second) continue;
    add_half(model, *row.run, row.run->first_half, first);
    add_half(model, *row.run, row.run->second_half, second);
  }
  Errors errors;
  if (!first.empty()) errors.add(model, second, model.fit(first));
  return errors.result(errors.rows > 0 ? "the second half of the steps, by a fit to the first"
                                       : "nothing: too few steps");
}

}  // namespace

HeldOut hold_out(CalibrationModel& model) {
  std::vector<std::string> configurations;
  for (const FitRow& row : model.rows())
    if (counts(row) && std::find(configurations.begin(), configurations.end(),
                                 row.run->configuration) == configurations.end())
      configurations.push_back(row.run->configuration);
  if (configurations.size() < 2) return second_halves(model);
  Errors errors;
  for (const std::string& left_out : configurations) {
    std::vector<FitRow> seen, held;
    for (const FitRow& row : model.rows())
      (row.run->configuration == left_out ? held : seen).push_back(row);
    errors.add(model, held, model.fit(seen));
  }
  return errors.result(
      fmt::format("each of {} configurations, by a fit to the others", configurations.size()));
}

}  // namespace reckon
