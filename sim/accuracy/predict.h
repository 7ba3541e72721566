#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "sim/accuracy/run/plan.h"
#include "sim/step/network/network.h"
#include "sim/step/step.h"

namespace reckon {

/// Logarithms of how much slower than predicted devices (arithmetic, memory, launches, host) and
/// the links between them are.
struct Slowness {
  double devices = 0, links = 0;  // ln of factors; 0: as predicted
};

/// How the rate falls when the devices are slower by a factor and the links are as predicted.
class Slowing {
 public:
  /// The factors at which the step model is asked; in between and beyond it is log-linear.
  static constexpr std::array kFactors{1.0 / 16, 1.0 / 4, 1.0 / 2, 1.0 / 1.41, 1.0,
                                       1.41,     2.0,     4.0,     16.0};
  /// All in proportion: what is timed has no links.
  Slowing();
  /// log(rate at each factor / rate at 1).
  explicit Slowing(const std::array<double, kFactors.size()>& log_rates) : log_rates_(log_rates) {}

  /// log(rate / predicted rate). Devices and links slower by the same factor slow the step by it.
  double log_rate(Slowness slowness) const;
  /// The least of both, alike uncertain, that explains log(measured / predicted rate): a run on one
  /// accelerator speaks of the device alone, one that waits for its links speaks of them.
  Slowness explained(double log_ratio) const;

 private:
  double of_devices(double log_factor) const;
  std::array<double, kFactors.size()> log_rates_{};
};

/// What the step model says of a run, with the range that holds the truth nine times of ten
/// (the fit's residuals, step_spread).
struct Prediction {
  SamplesPerSecond rate{}, low{}, high{};
  bool stack_known = false;  // the catalog has efficiencies of the run's own stack
  MemoryEstimate memory;     // of the accelerator that holds most
  /// False: the run's columns do not say what it keeps, and what is assumed of it does not fit.
  bool memory_known = true;
  double device_share = 1;  // of the step (evidence.h)
  Slowing slowing;
};
/// The error: why there is none, in words that can be counted.
using Predicted = tl::expected<Prediction, std::string>;

/// Predicts runs, each configuration once.
class Predictor {
 public:
  explicit Predictor(const Catalog& catalog);
  ~Predictor();
  const Predicted& operator()(const RunConfiguration& run);

 private:
  const Catalog& catalog_;
  std::unique_ptr<NetworkModel> network_;
  std::map<RunConfiguration, Predicted> known_;
};

}  // namespace reckon
