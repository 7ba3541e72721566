#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/forecast/forecast.h"

// A forecast that a run corrects while it goes on: docs/MODELS.md, "The live forecast".
namespace reckon {

/// Means of equal blocks of consecutive values, so that neighbours that resemble each other do not
/// count as independent. From kBlocks to twice as many: then pairs are merged, and blocks are twice
/// as long [Schmeiser 1982, "Batch size effects in the analysis of simulation output", Operations
/// Research 30(3): 10 to 30 batches].
class BlockMeans {
 public:
  static constexpr std::size_t kBlocks = 10;
  void add(double value);
  const std::vector<double>& means() const { return means_; }
  std::int64_t block() const { return block_; }  // values a block

 private:
  std::vector<double> means_;
  std::int64_t block_ = 1, in_open_ = 0;
  double open_sum_ = 0;
};

/// Belief about the mean of normally distributed values of unknown variance: the conjugate prior
/// and its update [Gelman et al. 2013, "Bayesian Data Analysis", 3rd ed., section 3.3]. The mean is
/// then Student's t with `degrees`, centre `mean`, squared scale `variance / weight`.
struct NormalBelief {
  double mean = 0, weight = 1, degrees = 4, variance = 1;
  /// The belief before any value, of which the mean has the given spread (one standard deviation).
  static NormalBelief before(double mean, double spread, double noise);
  NormalBelief after(const std::vector<double>& values) const;
  double spread() const;  // standard deviation of the mean; degrees > 2
};

/// Quantiles from the run's begin; the forecast's own before anything is measured.
struct LiveEstimate {
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;
  std::optional<double> miss_probability;  // of the deadline
  Seconds step{};                          // of the steps to come: measured belief, median
  double step_spread = 0;                  // one standard deviation of its logarithm
};

class LiveForecast {
 public:
  /// `deadline`: from the run's begin. The forecast must be feasible.
  LiveForecast(const Forecast& forecast, std::optional<Seconds> deadline);

  /// A step that training took, whatever became of its result. Leave out the first of a start.
  void add_step(Seconds measured);
  void add_interruption() { ++interruptions_; }

  /// `elapsed`: since the run's begin; `steps_done`: safe or not, as training counts.
  LiveEstimate at(Seconds elapsed, std::int64_t steps_done) const;

 private:
  struct Sample {
    double log_factor = 0;  // of the step's time, against the forecast's medians
    double time = 0;        // all of it; infinite: never finishes
    double start = 0;       // of it, before the first step
    double cost = 0;
  };
  /// By how much interruptions are more frequent than was forecast.
  double interruption_ratio(Seconds elapsed) const;

  std::vector<Sample> samples_;
  std::optional<Seconds> deadline_;
  Seconds step_{};
  std::int64_t steps_ = 0;
  bool priced_ = false;
  double forecast_interruptions_ = 0, forecast_time_ = 0, interrupted_share_ = 0;
  NormalBelief prior_;
  BlockMeans measured_;
  std::int64_t interruptions_ = 0;
};

}  // namespace reckon
