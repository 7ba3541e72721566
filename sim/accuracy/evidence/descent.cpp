#include "sim/accuracy/evidence/descent.h"

#include <Eigen/Cholesky>
#include <cmath>

namespace reckon {
namespace {

Eigen::VectorXd rounded(Eigen::VectorXd x, double grid) {
  if (grid > 0)
    for (double& value : x) value = std::round(value / grid) * grid;
  return x;
}

}  // namespace

Descent descend(const DescentProblem& p, const Eigen::VectorXd& start) {
  constexpr double kMostDamping = 1e8;  // factor on the Hessian's diagonal
  Descent best;
  best.x = p.limited(start);
  best.cost = p.cost(best.x);
  best.slope = p.slope(best.x);
  double damping = 1e-2;
  for (int round = 0; round < p.most_rounds && damping < kMostDamping; ++round) {
    Eigen::MatrixXd damped = best.slope.hessian;
    damped.diagonal() *= 1 + damping;
    const Eigen::VectorXd y =
        p.limited(rounded(best.x - damped.ldlt().solve(best.slope.gradient), p.grid));
    const double cost = p.cost(y);
    if (!(cost < best.cost)) {
      damping *= 8;
      continue;
    }
    const bool done = best.cost - cost < p.enough;
    best.cost = cost;
    best.x = y;
    damping /= 4;
    best.slope = p.slope(best.x);
    if (done) break;
  }
  return best;
}

}  // namespace reckon
