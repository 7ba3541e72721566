#include "sim/measurement/live_forecast.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

/// Before a run is seen: how much one step differs from the next (standard deviation of the
/// logarithm). Four degrees of freedom: forgotten after a handful of blocks.
constexpr double kNoiseBefore = 0.05;
/// No forecast is so sure of a step's time that measurements could not correct it.
constexpr double kLeastSpread = 0.05;  // of ln of the mean step's time
/// What a save costs hangs on a disk, on what else writes to it, and on whether the write is hidden
/// behind the steps: a factor of four either way is no surprise, and one save differs from the next
/// more than a step does. The forecast's number is then worth a twelfth of one measured save.
constexpr double kLeastSaveSpread = 1.5, kSaveNoise = 0.3;  // standard deviations of ln
/// A save that has no time of its own has still a logarithm.
constexpr double kShortestSave = 1e-6;  // seconds

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / double(values.size());
}

double sum_of_squares_about(const std::vector<double>& values, double centre) {
  double sum = 0;
  for (const double v : values) sum += (v - centre) * (v - centre);
  return sum;
}

double share_of(const Forecast& f, Badput cause) { return f.badput[std::size_t(cause)]; }

/// Standard normal scores of n replications that drew nothing: each of the n equal parts of the law
/// once, in an order that neither they nor another stream know of (a lattice by an irrational
/// step).
double stratified_score(std::size_t k, std::size_t n, int stream) {
  const double step =
      stream == 0 ? 0.6180339887498949 : 0.4142135623730951;  // golden ratio, sqrt 2
  const double place = std::fmod(double(k + 1) * step, 1.0);
  return normal_quantile(std::clamp(place, 0.5 / double(n), 1 - 0.5 / double(n)));
}

std::vector<double> logs_of(const std::vector<double>& factors) {
  std::vector<double> logs;
  for (const double f : factors) logs.push_back(std::log(f));
  return logs;
}

}  // namespace

void BlockMeans::add(double value) {
  open_sum_ += value;
  if (++in_open_ < block_) return;
  means_.push_back(open_sum_ / double(block_));
  open_sum_ = 0;
  in_open_ = 0;
  if (means_.size() < 2 * kBlocks) return;
  for (std::size_t k = 0; k < kBlocks; ++k) means_[k] = (means_[2 * k] + means_[2 * k + 1]) / 2;
  means_.resize(kBlocks);
  block_ *= 2;
}

NormalBelief NormalBelief::before(double mean, double spread, double noise) {
  // Variance of the mean = noise^2 / weight * degrees / (degrees - 2) = spread^2.
  NormalBelief b;
  b.mean = mean;
  b.variance = noise * noise;
  b.weight = b.variance / (spread * spread) * b.degrees / (b.degrees - 2);
  return b;
}

NormalBelief NormalBelief::after(const std::vector<double>& values) const {
  if (values.empty()) return *this;
  const double n = double(values.size());
  const double average = mean_of(values);
  NormalBelief b;
  b.weight = weight + n;
  b.mean = (weight * mean + n * average) / b.weight;
  b.degrees = degrees + n;
  const double surprise = weight * n / b.weight * (average - mean) * (average - mean);
  b.variance = (degrees * variance + sum_of_squares_about(values, average) + surprise) / b.degrees;
  return b;
}

double NormalBelief::spread() const {
  return std::sqrt(variance / weight * degrees / (degrees - 2));
}

MeasuredFactor::MeasuredFactor(std::vector<double> logs, double least_spread, double noise,
                               int stream)
    : logs_(std::move(logs)) {
  const double middle = mean_of(logs_);
  const double spread = std::sqrt(sum_of_squares_about(logs_, middle) / double(logs_.size()));
  constexpr double kNone = 1e-6;  // all replications have the same
  for (std::size_t k = 0; k < logs_.size(); ++k)
    scores_.push_back(spread > kNone ? (logs_[k] - middle) / spread
                                     : stratified_score(k, logs_.size(), stream));
  middle_ = middle;
  spread_ = std::max(spread, least_spread);
  noise_ = noise;
}

/// Before it is measured the mean of a block differs from the next as that of independent values
/// does; blocks that differ more correct that.
NormalBelief MeasuredFactor::belief() const {
  const double noise = noise_ / std::sqrt(double(values_.block()));
  return NormalBelief::before(middle_, spread_, noise).after(logs_of(values_.means()));
}

/// The belief is about the mean of logarithms; what is to come adds up by the mean itself, which is
/// larger [Jensen's inequality] by what the measured values say.
double MeasuredFactor::centre() const {
  if (!is_measured()) return middle_;
  return belief().mean + std::log(sum_ / double(count_)) - mean_of(logs_of(values_.means()));
}

std::vector<double> MeasuredFactor::factors(double to_come) const {
  std::vector<double> all;
  if (!is_measured()) {
    for (const double log : logs_) all.push_back(std::exp(log));
    return all;
  }
  const NormalBelief b = belief();
  const double blocks = std::max(1.0, to_come) / double(values_.block());
  const double spread = std::sqrt(b.variance * (1 / b.weight + 1 / blocks) * b.degrees /
                                  (b.degrees - 2));  // posterior predictive, Student's t
  for (const double score : scores_) all.push_back(std::exp(centre() + score * spread));
  return all;
}

LiveForecast::LiveForecast(const Forecast& forecast, std::optional<Seconds> deadline)
    : deadline_(deadline),
      step_(forecast.step.step),
      steps_(forecast.steps),
      priced_(!forecast.costs_usd.empty()),
      step_factor_(logs_of(forecast.step_factors), kLeastSpread, kNoiseBefore, 0),
      save_factor_(std::vector<double>(forecast.step_factors.size(), 0), kLeastSaveSpread,
                   kSaveNoise, 1) {
  const std::size_t n = forecast.times_seconds.size();
  RECKON_CHECK(forecast.feasible && n > 0);
  RECKON_CHECK(forecast.step_factors.size() == n && forecast.start_seconds.size() == n);
  std::vector<double> finite;
  for (std::size_t k = 0; k < n; ++k) {
    samples_.push_back({.time = forecast.times_seconds[k],
                        .start = forecast.start_seconds[k],
                        .steps = all_steps() * step_.count() * forecast.step_factors[k],
                        .cost = priced_ ? forecast.costs_usd[k] : 0});
    if (std::isfinite(samples_.back().time)) finite.push_back(samples_.back().time);
  }
  forecast_time_ = finite.empty() ? 0 : mean_of(finite);
  for (const double count : forecast.interruptions) forecast_interruptions_ += count;
  divide_besides(forecast);
  prepare_saves(forecast);
}

/// What a replication spent besides its steps and its first start: in saves, because of
/// interruptions (lost work, restores and all starts but the first), and in evaluation. The
/// forecast has the means of these; each replication's sum is divided as they are.
void LiveForecast::divide_besides(const Forecast& forecast) {
  const double starting = share_of(forecast, Badput::provisioning) +
                          share_of(forecast, Badput::waiting) +
                          share_of(forecast, Badput::initialization);
  const double later_starts = forecast_interruptions_ / (1 + forecast_interruptions_);
  const double saves = forecast_time_ * share_of(forecast, Badput::checkpoint_save);
  const double again =
      forecast_time_ * (starting * later_starts + share_of(forecast, Badput::checkpoint_restore) +
                        share_of(forecast, Badput::lost_work));
  std::vector<double> besides;
  for (const Sample& s : samples_)
    if (std::isfinite(s.time)) besides.push_back(std::max(0.0, s.time - s.steps - s.start));
  const double all = std::max(besides.empty() ? 0 : mean_of(besides), saves + again);
  if (all <= 0) return;
  for (Sample& s : samples_) {
    const double sum = std::max(0.0, s.time - s.steps - s.start);
    s.save = sum * saves / all;
    s.again = sum * again / all;
    s.other = sum - s.save - s.again;
    if (std::isfinite(s.time)) continue;
    s.save = s.again = 0;
    s.other = s.time;
  }
}

/// What one save takes in each replication that makes any: its share of the steps' time, times the
/// interval.
void LiveForecast::prepare_saves(const Forecast& forecast) {
  interval_ = forecast.checkpoint_interval.count();
  std::vector<double> logs(samples_.size(), 0), made;
  for (std::size_t k = 0; k < samples_.size(); ++k) {
    const double one = samples_[k].save / samples_[k].steps * interval_;
    if (one > 0) made.push_back(logs[k] = std::log(one));
  }
  if (made.empty()) return;
  const double middle = mean_of(made);
  save_ = std::exp(middle);
  for (double& log : logs) log = log == 0 ? 0 : log - middle;
  save_factor_ = MeasuredFactor(std::move(logs), kLeastSaveSpread, kSaveNoise, 1);
}

void LiveForecast::add_step(Seconds measured, bool first_of_start) {
  work_ += measured.count();
  if (!first_of_start) step_factor_.add(measured / step_);
}

void LiveForecast::add_save(Seconds blocked) {
  const double one = std::max(kShortestSave, blocked.count());
  if (save_ <= 0) save_ = one;  // none were forecast
  save_factor_.add(one / save_);
  work_saved_ = work_;
  ++saves_;
}

/// Rates: Gamma prior worth one interruption at the forecast's rate, Poisson counts [Gelman et al.
/// 2013, section 2.6]: E = (1 + seen) / (1 / rate + elapsed), over the rate itself.
double LiveForecast::interruption_ratio(Seconds elapsed) const {
  if (forecast_interruptions_ <= 0 || forecast_time_ <= 0) return 1;
  const double expected = forecast_interruptions_ / forecast_time_ * elapsed.count();
  return (1 + double(interruptions_)) / (1 + expected);
}

std::vector<double> LiveForecast::saves_to_come(const std::vector<double>& work,
                                                double share_left) const {
  std::vector<double> seconds;
  if (saves_ == 0) {  // the forecast's, and fewer where one that was due has not been seen
    const double rarer = interval_ > 0 ? interval_ / std::max(interval_, work_) : 1;
    for (const Sample& s : samples_) seconds.push_back(share_left * s.save * rarer);
    return seconds;
  }
  // Saves come at even distances, and none at the very end.
  const double distance = std::max(work_saved_ / double(saves_), kShortestSave);
  const auto saves_in = [&](double to_come) {
    return std::max(0.0, std::ceil((work_ - work_saved_ + to_come) / distance) - 1);
  };
  const std::vector<double> factors = save_factor_.factors(saves_in(mean_of(work)));
  for (std::size_t k = 0; k < samples_.size(); ++k)
    seconds.push_back(saves_in(work[k]) * save_ * factors[k]);
  return seconds;
}

LiveEstimate LiveForecast::at(Seconds elapsed, std::int64_t steps_done) const {
  const bool started = steps_done > 0 || step_factor_.is_measured();
  const double left = double(std::max<std::int64_t>(0, steps_ - steps_done));
  const double share_left = left / all_steps();
  const double evaluations = evaluations_to_come_ ? evaluations_to_come_(steps_done) : share_left;
  const double ratio = interruption_ratio(elapsed);
  std::vector<double> work = step_factor_.factors(left);
  for (double& w : work) w *= left * step_.count();
  const std::vector<double> saves = saves_to_come(work, share_left);

  LiveEstimate e;
  double missed = 0, exceeded = 0;
  for (std::size_t k = 0; k < samples_.size(); ++k) {
    const Sample& s = samples_[k];
    // A replication that never finished waits for ever, until the last step is done after all.
    const double to_come =
        left > 0 ? work[k] + saves[k] + share_left * s.again * ratio + evaluations * s.other : 0;
    // Before the first step the run is in its start, which may take longer than was forecast;
    // behind it, what it took is what has passed.
    const double time =
        started ? elapsed.count() + to_come
                : std::max(elapsed.count(), s.start) + work[k] + s.save + s.again + s.other;
    e.times.push_back(time);
    if (deadline_ && time > deadline_->count()) ++missed;
    if (!priced_) continue;
    const double paid = std::max(0.0, time - paid_since_.count());
    e.costs.push_back(spent_before_.v + (std::isfinite(s.time) ? s.cost * paid / s.time : s.cost));
    if (budget_ && e.costs.back() > budget_->v) ++exceeded;
  }
  e.time_seconds = quantiles(e.times);
  if (priced_) e.cost_usd = quantiles(e.costs);
  if (deadline_) e.miss_probability = missed / double(samples_.size());
  if (budget_ && priced_) e.excess_probability = exceeded / double(samples_.size());
  e.step = step_ * std::exp(step_factor_.centre());
  e.step_spread = step_factor_.spread();
  return e;
}

}  // namespace reckon
