#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

// A Gaussian process with mean zero, conditioned on observations whose errors have heavy tails
// [Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", algorithm 2.1].
namespace reckon {

struct Observation {
  double value = 0;
  double noise = 0;  // standard deviation
};

class Posterior {
 public:
  /// covariance(i, j) of what observations i >= j observe, without noise; positive semi-definite.
  ///
  /// Errors are Student's with four degrees of freedom, as a Gaussian mixture: an observation that
  /// the others contradict weighs (nu + 1) / (nu + (residual / noise)^2) [Lange, Little and Taylor
  /// 1989, "Robust statistical modeling using the t distribution"], found by reweighting.
  Posterior(std::span<const Observation> observations,
            const std::function<double(std::size_t, std::size_t)>& covariance);
  ~Posterior();
  Posterior(Posterior&&) noexcept;

  /// Of something whose covariances with the observations are `with`.
  double mean(std::span<const double> with) const;
  /// By how much the observations lower the covariance of two such things. Observations count in
  /// full here, however far off their values are: one more never makes a variance larger.
  double explained(std::span<const double> with, std::span<const double> with_other) const;
  /// What weighs in mean().
  double weight(std::size_t observation) const;

 private:
  struct Solved;
  std::unique_ptr<const Solved> solved_;
};

}  // namespace reckon
