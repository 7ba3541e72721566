#pragma once
#include <Eigen/Core>
#include <functional>

// The one minimiser of the fits. Included by .cpp files only: Eigen is heavy.
namespace reckon {

struct Slope {
  Eigen::VectorXd gradient;  // of half the cost
  Eigen::MatrixXd hessian;   // its Gauss-Newton approximation
};

struct DescentProblem {
  std::function<double(const Eigen::VectorXd&)> cost;
  std::function<Slope(const Eigen::VectorXd&)> slope;
  std::function<Eigen::VectorXd(Eigen::VectorXd)> limited;  // the nearest x that may be
  int most_rounds = 200;
  double enough = 1e-4;  // in the unit of `cost`: a step that gains less of it is the last
  /// x is rounded to multiples of it: two machines whose last digits differ walk the same way. 0: x
  /// is not rounded.
  double grid = 0;
};

struct Descent {
  double cost = 0;  // in the unit of DescentProblem::cost, as `enough` is
  Eigen::VectorXd x;
  Slope slope;  // at x
};

/// Levenberg-Marquardt [Madsen, Nielsen, Tingleff 2004, "Methods for non-linear least squares
/// problems", Sec. 3.2] from `start`, which is limited first.
Descent descend(const DescentProblem& problem, const Eigen::VectorXd& start);

}  // namespace reckon
