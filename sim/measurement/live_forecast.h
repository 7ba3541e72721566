#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
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
  void add(double value);  // of any one unit, as the means
  const std::vector<double>& means() const { return means_; }
  std::int64_t block() const { return block_; }  // values a block

 private:
  std::vector<double> means_;
  std::int64_t block_ = 1, in_open_ = 0;
  double open_sum_ = 0;  // of the values of the block that is not full
};

/// Belief about the mean of normally distributed values of unknown variance: the conjugate prior
/// and its update [Gelman et al. 2013, "Bayesian Data Analysis", 3rd ed., section 3.3]. The mean is
/// then Student's t with `degrees`, centre `mean`, squared scale `variance / weight`.
struct NormalBelief {
  double mean = 0, weight = 1, degrees = 4, variance = 1;
  /// The belief before any value, of which the mean has the given spread (one standard deviation).
  static NormalBelief before(double mean, double spread, double noise);
  NormalBelief after(const std::vector<double>& values) const;  // in the unit of `mean`
  double spread() const;  // standard deviation of the mean; degrees > 2
};

/// By how much something takes longer than a common middle: as each replication of the forecast
/// drew it until it is measured, then by the posterior predictive of its mean over what is to come.
class MeasuredFactor {
 public:
  /// `logs`: of the replications' factors. `least_spread` (of the mean) and `noise` (from one value
  /// to the next): standard deviations of the logarithm before anything is measured. `stream`
  /// tells the factors of one forecast apart.
  MeasuredFactor(std::vector<double> logs, double least_spread, double noise, int stream);
  void add(double factor) { values_.add(factor), sum_ += factor, ++count_; }  // > 0
  bool is_measured() const { return !values_.means().empty(); }

  /// Logarithm of the mean of the values to come: its centre, and the standard deviation of what is
  /// not known of that mean.
  double centre() const;                               // ln of a factor
  double spread() const { return belief().spread(); }  // of ln, one standard deviation
  /// By replication: of the mean of `to_come` values (at least one), whose own noise is in it.
  /// Factors, not their logarithms.
  std::vector<double> factors(double to_come) const;

 private:
  NormalBelief belief() const;

  std::vector<double> logs_;    // ln of the replications' factors
  std::vector<double> scores_;  // by replication: where in the law it stands, in deviations
  double middle_ = 0, spread_ = 0, noise_ = 0;  // of ln, before any value
  BlockMeans values_;
  double sum_ = 0;  // of the factors
  std::int64_t count_ = 0;
};

/// Quantiles from the run's begin; the forecast's own before anything is measured.
struct LiveEstimate {
  Quantiles time_seconds;
  std::optional<Quantiles> cost_usd;
  std::optional<double> miss_probability;    // of the deadline
  std::optional<double> excess_probability;  // of costing more than the budget
  /// By replication, seconds from the run's begin and USD; no prices: costs is empty.
  std::vector<double> times, costs;
  Seconds step{};          // of the steps to come: measured belief, median
  double step_spread = 0;  // one standard deviation of its logarithm
};

class LiveForecast {
 public:
  /// `deadline`: from the run's begin. The forecast must be feasible.
  LiveForecast(const Forecast& forecast, std::optional<Seconds> deadline);

  /// A step that training took, whatever became of its result, without what a save of it cost. Of
  /// the first of a start only the work counts: it warms caches and connections up.
  void add_step(Seconds measured, bool first_of_start = false);
  /// A checkpoint behind the last step, for which training stood still so long (0: no time of its
  /// own; it is among the steps). Not one of an emergency, which nobody planned.
  void add_save(Seconds blocked);
  void add_interruption() { ++interruptions_; }
  /// What parts of the run have cost that ended before `since`; this part pays from then on.
  void set_spent(Usd before, Seconds since) { spent_before_ = before, paid_since_ = since; }
  /// Of the whole run. Without prices it is nobody's limit.
  void set_budget(Usd budget) { budget_ = budget; }

  /// Which share of all evaluations comes after so many steps; else they are spread evenly.
  void set_evaluations(std::function<double(std::int64_t steps_done)> to_come) {
    evaluations_to_come_ = std::move(to_come);
  }

  /// `elapsed`: since the run's begin; `steps_done`: safe or not, as training counts.
  LiveEstimate at(Seconds elapsed, std::int64_t steps_done) const;

 private:
  struct Sample {
    double time = 0;   // seconds, as the next five: all of it; infinite: never finishes
    double start = 0;  // of it, before the first step
    double steps = 0;  // of it, in the job's steps, each once
    double save = 0;   // of it, in checkpoints
    double again = 0;  // of it, because of interruptions
    double other = 0;  // of it, besides those and the steps: evaluation
    double cost = 0;   // USD
  };
  /// By how much interruptions are more frequent than was forecast.
  double interruption_ratio(Seconds elapsed) const;
  void divide_besides(const Forecast& forecast);
  void prepare_saves(const Forecast& forecast);
  double all_steps() const { return double(steps_ > 0 ? steps_ : 1); }
  /// By replication: seconds of the saves to come, with so many seconds of steps to come.
  std::vector<double> saves_to_come(const std::vector<double>& work, double share_left) const;

  std::vector<Sample> samples_;
  std::optional<Seconds> deadline_;
  std::optional<Usd> budget_;
  Usd spent_before_{};
  Seconds paid_since_{};
  Seconds step_{};
  std::int64_t steps_ = 0;
  bool priced_ = false;
  double forecast_interruptions_ = 0, forecast_time_ = 0;  // of a mean run: a count, seconds
  MeasuredFactor step_factor_, save_factor_;
  std::int64_t interruptions_ = 0;
  // Of saves: seconds of steps between two of them and of one, in the middle, as forecast (0: none
  // are); seconds of steps that were measured, until now and until the last save.
  double interval_ = 0, save_ = 0, work_ = 0, work_saved_ = 0;
  std::int64_t saves_ = 0;
  std::function<double(std::int64_t)> evaluations_to_come_;
};

}  // namespace reckon
