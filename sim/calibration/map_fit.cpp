#include "sim/calibration/map_fit.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

// Standard deviations within which errors count in full: of what was measured, and of what was
// believed.
constexpr double kHuber = 3, kHuberOfPrior = 2;

/// Huber's loss; its derivative's share of the square's is min(1, limit / e).
double loss(double e, double limit) {
  e = std::abs(e);
  return e < limit ? e * e : limit * (2 * e - limit);
}

Eigen::VectorXd weights(const Eigen::VectorXd& e, double limit) {
  return (limit * e.array().abs().max(1e-12).inverse()).min(1.0);
}

double cost_of(const MapProblem& p, const Eigen::VectorXd& x, const Eigen::VectorXd& residuals) {
  double total = 0;
  for (Eigen::Index k = 0; k < x.size(); ++k)
    total += loss((x[k] - p.prior[k]) / p.spread[k], kHuberOfPrior);
  for (Eigen::Index i = 0; i < residuals.size(); ++i)
    total += loss(residuals[i] / p.noise[i], kHuber);
  return total;
}

struct Slope {
  Eigen::VectorXd gradient;
  Eigen::MatrixXd hessian;
};

/// Fills in the fit's slopes and weights at its x.
Slope slope_at(const MapProblem& p, MapFit& fit) {
  constexpr double kStep = 0.01;
  fit.slopes.resize(fit.residuals.size(), fit.x.size());
  for (Eigen::Index k = 0; k < fit.x.size(); ++k) {
    Eigen::VectorXd y = fit.x;
    y[k] -= kStep;  // downwards: never above `most`
    fit.slopes.col(k) = (fit.residuals - p.residuals(y)) / kStep;
  }
  fit.weights = weights(fit.residuals.cwiseQuotient(p.noise), kHuber);
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
  constexpr int kMostRounds = 200;
  constexpr double kEnough = 1e-4;  // of the cost, whose unit is a standard deviation squared
  MapFit fit;
  fit.x = p.prior.cwiseMin(p.most);
  fit.residuals = p.residuals(fit.x);
  double cost = cost_of(p, fit.x, fit.residuals);
  Slope slope = slope_at(p, fit);
  double damping = 1e-2;
  for (int round = 0; round < kMostRounds && damping < 1e8; ++round) {
    Eigen::MatrixXd damped = slope.hessian;
    damped.diagonal() *= 1 + damping;
    const Eigen::VectorXd y = (fit.x - damped.ldlt().solve(slope.gradient)).cwiseMin(p.most);
    const Eigen::VectorXd residuals = p.residuals(y);
    const double now = cost_of(p, y, residuals);
    if (!(now < cost)) {
      damping *= 8;
      continue;
    }
    const bool done = cost - now < kEnough;
    cost = now;
    fit.x = y;
    fit.residuals = residuals;
    damping /= 4;
    slope = slope_at(p, fit);
    if (done) break;
  }
  fit.covariance =
      slope.hessian.ldlt().solve(Eigen::MatrixXd::Identity(fit.x.size(), fit.x.size()));
  return fit;
}

}  // namespace reckon
