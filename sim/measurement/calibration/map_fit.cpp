#include "sim/measurement/calibration/map_fit.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "sim/accuracy/evidence/descent.h"

namespace reckon {
namespace {

// Standard deviations within which errors count in full: of what was measured, and of what was
// believed.
constexpr double kHuberOfResidual = 3, kHuberOfPrior = 2;

/// Huber's loss; its derivative's share of the square's is min(1, limit / e).
double loss(double e, double limit) {
  e = std::abs(e);
  return e < limit ? e * e : limit * (2 * e - limit);
}

Eigen::VectorXd weights(const Eigen::VectorXd& e, double limit) {
  return (limit * e.array().abs().max(1e-12).inverse()).min(1.0);
}

double cost_of(const MapProblem& p, const Eigen::VectorXd& x) {
  const Eigen::VectorXd residuals = p.residuals(x);
  double total = 0;
  for (Eigen::Index k = 0; k < x.size(); ++k)
    total += loss((x[k] - p.prior[k]) / p.spread[k], kHuberOfPrior);
  for (Eigen::Index i = 0; i < residuals.size(); ++i)
    total += loss(residuals[i] / p.noise[i], kHuberOfResidual);
  return total;
}

/// Fills in the fit's residuals, slopes and weights at its x.
Slope slope_at(const MapProblem& p, MapFit& fit) {
  constexpr double kStep = 0.01;  // of the natural logarithm, of a difference quotient
  fit.residuals = p.residuals(fit.x);
  fit.slopes.resize(fit.residuals.size(), fit.x.size());
  for (Eigen::Index k = 0; k < fit.x.size(); ++k) {
    Eigen::VectorXd y = fit.x;
    y[k] -= kStep;  // downwards: never above `most`
    fit.slopes.col(k) = (fit.residuals - p.residuals(y)) / kStep;
  }
  fit.weights = weights(fit.residuals.cwiseQuotient(p.noise), kHuberOfResidual);
  const Eigen::VectorXd precision = fit.weights.array() / p.noise.array().square();
  const Eigen::VectorXd believed =
      weights((fit.x - p.prior).cwiseQuotient(p.spread), kHuberOfPrior);
  const Eigen::VectorXd belief = believed.array() / p.spread.array().square();
  Slope slope;
  slope.gradient = fit.slopes.transpose() * (precision.asDiagonal() * fit.residuals) +
                   belief.asDiagonal() * (fit.x - p.prior);
  slope.hessian = fit.slopes.transpose() * precision.asDiagonal() * fit.slopes;
  slope.hessian += belief.asDiagonal();
  return slope;
}

}  // namespace

MapFit fit_map(const MapProblem& p) {
  MapFit fit;
  DescentProblem problem;
  problem.cost = [&](const Eigen::VectorXd& x) { return cost_of(p, x); };
  problem.slope = [&](const Eigen::VectorXd& x) {
    fit.x = x;
    return slope_at(p, fit);
  };
  problem.limited = [&](const Eigen::VectorXd& x) -> Eigen::VectorXd { return x.cwiseMin(p.most); };
  const Descent found = descend(problem, p.prior);
  fit.covariance =
      found.slope.hessian.ldlt().solve(Eigen::MatrixXd::Identity(found.x.size(), found.x.size()));
  return fit;
}

}  // namespace reckon
