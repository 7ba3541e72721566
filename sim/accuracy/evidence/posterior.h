#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

// A Gaussian process with mean zero, conditioned on observations whose errors have heavy tails
// [Rasmussen and Williams 2006, "Gaussian Processes for Machine Learning", algorithm 2.1].
namespace reckon {

struct Observation {
  double value = 0;  // in one unit for all observations, as noise and mean(); here logarithms
  double noise = 0;  // standard deviation
  /// Whoever asks knows how it was measured: it weighs in full, whatever the others say.
  bool certain = false;
};

class Posterior {
 public:
  /// Of observations i >= j.
  using Covariance = std::function<double(std::size_t, std::size_t)>;

  /// covariance(i, j) of what observations observe, without noise; positive semi-definite.
  /// `besides`: what mean() takes them to have in common beyond it, and explained() does not.
  ///
  /// Errors are Student's with four degrees of freedom, as a Gaussian mixture: an observation that
  /// the others contradict weighs (nu + 1) / (nu + (residual / noise)^2) [Lange, Little and Taylor
  /// 1989, "Robust statistical modeling using the t distribution"], found by reweighting. Those of
  /// certain observations are Gaussian.
  Posterior(std::span<const Observation> observations, const Covariance& covariance,
            const Covariance& besides = {});
  ~Posterior();
  Posterior(Posterior&&) noexcept;

  /// Of something whose covariances with the observations are `with`, what is besides included.
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
