#pragma once
#include <Eigen/Core>
#include <functional>

// Maximum a posteriori of a few logarithms from many measured ones. Included by .cpp files only:
// Eigen is heavy.
namespace reckon {

/// x around prior with spread, each by itself, normal within two of them and with Huber's tails
/// beyond, for what is believed of a number may be wrong by orders of magnitude; residual_i(x) ~
/// noise_i times Huber's distribution [Huber 1964, "Robust estimation of a location parameter",
/// Ann. Math. Statist. 35(1)], so that a measurement that contradicts all others moves them little.
struct MapProblem {
  Eigen::VectorXd prior, spread;
  Eigen::VectorXd most;   // of x
  Eigen::VectorXd noise;  // one standard deviation of each residual
  std::function<Eigen::VectorXd(const Eigen::VectorXd&)> residuals;  // predicted - measured
};

struct MapFit {
  Eigen::VectorXd x;
  Eigen::VectorXd residuals;
  Eigen::MatrixXd slopes;      // of the residuals, residuals by x
  Eigen::VectorXd weights;     // of the residuals: 1, or less where Huber's tails begin
  Eigen::MatrixXd covariance;  // Laplace's approximation: the inverse of the posterior's curvature
};

/// From the prior (descent.h); slopes by differences.
MapFit fit_map(const MapProblem& problem);

}  // namespace reckon
