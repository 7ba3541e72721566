#include "sim/accuracy/evidence/posterior.h"

#include <Eigen/Dense>
#include <algorithm>
#include <utility>

namespace reckon {

struct Posterior::Solved {
  Eigen::LLT<Eigen::MatrixXd> full;  // covariance and noise, all weights 1
  Eigen::VectorXd alpha;             // of the reweighted observations
  Eigen::VectorXd weights;
};

Posterior::Posterior(std::span<const Observation> observations, const Covariance& covariance,
                     const Covariance& besides) {
  constexpr int kReweighted = 2;
  // Degrees of freedom; an observation's weight, 0..1.
  constexpr double kFreedom = 4, kLeast = 0.02;
  const auto n = static_cast<Eigen::Index>(observations.size());
  Eigen::MatrixXd k(n, n);
  Eigen::VectorXd y(n), noise(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const Observation& o = observations[static_cast<std::size_t>(i)];
    y[i] = o.value;
    noise[i] = o.noise * o.noise;
    for (Eigen::Index j = 0; j <= i; ++j)
      k(i, j) = k(j, i) = covariance(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
  }
  Solved s{{}, {}, Eigen::VectorXd::Ones(n)};
  Eigen::MatrixXd noisy = k;
  noisy.diagonal() += noise;
  s.full.compute(noisy);
  if (besides) {
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j <= i; ++j) {
        k(i, j) += besides(static_cast<std::size_t>(i), static_cast<std::size_t>(j));
        k(j, i) = k(i, j);
      }
    noisy = k;
    noisy.diagonal() += noise;
    s.alpha = noisy.llt().solve(y);
  } else {
    s.alpha = s.full.solve(y);
  }
  for (int i = 0; i < kReweighted; ++i) {
    const Eigen::VectorXd residual = noise.cwiseQuotient(s.weights).cwiseProduct(s.alpha);
    for (Eigen::Index j = 0; j < n; ++j)
      if (!observations[static_cast<std::size_t>(j)].certain)
        s.weights[j] = std::clamp(
            (kFreedom + 1) / (kFreedom + residual[j] * residual[j] / noise[j]), kLeast, 1.0);
    noisy = k;
    noisy.diagonal() += noise.cwiseQuotient(s.weights);
    s.alpha = noisy.llt().solve(y);
  }
  solved_ = std::make_unique<const Solved>(std::move(s));
}

Posterior::~Posterior() = default;
Posterior::Posterior(Posterior&&) noexcept = default;

namespace {

Eigen::Map<const Eigen::VectorXd> vector_of(std::span<const double> values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

}  // namespace

double Posterior::mean(std::span<const double> with) const {
  return vector_of(with).dot(solved_->alpha);
}

double Posterior::explained(std::span<const double> with, std::span<const double> other) const {
  const auto l = solved_->full.matrixL();
  const Eigen::VectorXd a = l.solve(vector_of(with));
  if (with.data() == other.data()) return a.squaredNorm();
  return a.dot(l.solve(vector_of(other)));
}

double Posterior::weight(std::size_t observation) const {
  return solved_->weights[static_cast<Eigen::Index>(observation)];
}

}  // namespace reckon
