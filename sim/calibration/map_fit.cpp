#include "sim/calibration/map_fit.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

constexpr double kHuber = 2;  // standard deviations within which errors count in full

double cost_of(const MapProblem& p, const Eigen::VectorXd& x, const Eigen::VectorXd& residuals) {
  double total = ((x - p.prior).array() / p.spread.array()).square().sum();
  for (Eigen::Index i = 0; i < residuals.size(); ++i) {
    const double e = std::abs(residuals[i]) / p.noise[i];
    total += e < kHuber ? e * e : kHuber * (2 * e - kHuber);
  }
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
  fit.weights.resize(fit.residuals.size());
  for (Eigen::Index i = 0; i < fit.residuals.size(); ++i)
    fit.weights[i] =
        std::min(1.0, kHuber * p.noise[i] / std::max(std::abs(fit.residuals[i]), 1e-12));
  const Eigen::VectorXd precision = fit.weights.array() / p.noise.array().square();
  const Eigen::VectorXd belief = p.spread.array().square().inverse();
  Slope slope;
  slope.gradient = fit.slopes.transpose() * (precision.asDiagonal() * fit.residuals) +
                   belief.asDiagonal() * (fit.x - p.prior);
  slope.hessian = fit.slopes.transpose() * precision.asDiagonal() * fit.slopes;
  slope.hessian += belief.asDiagonal();
  return slope;
}

}  // namespace

MapFit fit_map(const MapProblem& p) {
  constexpr int kMostRounds = 40;
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
