#include "sim/calibration/live_forecast.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Before a run is seen: how much one step differs from the next (standard deviation of the
/// logarithm). Four degrees of freedom: forgotten after a handful of blocks.
constexpr double kNoiseBefore = 0.05;
/// No forecast is so sure of a step's time that measurements could not correct it.
constexpr double kLeastSpread = 0.02;

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

LiveForecast::LiveForecast(const Forecast& forecast, std::optional<Seconds> deadline)
    : deadline_(deadline), step_(forecast.step.step), steps_(forecast.steps) {
  RECKON_CHECK(forecast.feasible && !forecast.times_seconds.empty());
  RECKON_CHECK(forecast.step_factors.size() == forecast.times_seconds.size());
  RECKON_CHECK(forecast.start_seconds.size() == forecast.times_seconds.size());
  priced_ = !forecast.costs_usd.empty();
  std::vector<double> logs, finite;
  for (std::size_t k = 0; k < forecast.times_seconds.size(); ++k) {
    logs.push_back(std::log(forecast.step_factors[k]));
    samples_.push_back({logs.back(), forecast.times_seconds[k], forecast.start_seconds[k],
                        priced_ ? forecast.costs_usd[k] : 0});
    if (std::isfinite(forecast.times_seconds[k])) finite.push_back(forecast.times_seconds[k]);
  }
  const double centre = mean_of(logs);
  const double spread = std::sqrt(sum_of_squares_about(logs, centre) / double(logs.size()));
  prior_ = NormalBelief::before(centre, std::max(spread, kLeastSpread), kNoiseBefore);

  forecast_time_ = finite.empty() ? 0 : mean_of(finite);
  for (const double count : forecast.interruptions) forecast_interruptions_ += count;
  const double starting = share_of(forecast, Badput::provisioning) +
                          share_of(forecast, Badput::waiting) +
                          share_of(forecast, Badput::initialization);
  // Of what is neither steps nor the first start: how much comes of interruptions.
  const double again = starting * forecast_interruptions_ / (1 + forecast_interruptions_) +
                       share_of(forecast, Badput::checkpoint_restore) +
                       share_of(forecast, Badput::lost_work);
  const double all = again + share_of(forecast, Badput::checkpoint_save);
  interrupted_share_ = all > 0 ? again / all : 0;
}

void LiveForecast::add_step(Seconds measured) { measured_.add(measured.count()); }

/// Rates: Gamma prior worth one interruption at the forecast's rate, Poisson counts [Gelman et al.
/// 2013, section 2.6]: E = (1 + seen) / (1 / rate + elapsed), over the rate itself.
double LiveForecast::interruption_ratio(Seconds elapsed) const {
  if (forecast_interruptions_ <= 0 || forecast_time_ <= 0) return 1;
  const double expected = forecast_interruptions_ / forecast_time_ * elapsed.count();
  return (1 + double(interruptions_)) / (1 + expected);
}

LiveEstimate LiveForecast::at(Seconds elapsed, std::int64_t steps_done) const {
  std::vector<double> logs;
  for (const double mean : measured_.means()) logs.push_back(std::log(mean / step_.count()));
  const NormalBelief belief = prior_.after(logs);
  const double narrower = belief.spread() / prior_.spread();
  const bool started = steps_done > 0 || !logs.empty();
  const double left = double(std::max<std::int64_t>(0, steps_ - steps_done));
  const double all = double(std::max<std::int64_t>(1, steps_));
  const double again = 1 + interrupted_share_ * (interruption_ratio(elapsed) - 1);

  std::vector<double> times, costs;
  double missed = 0;
  for (const Sample& s : samples_) {
    const double factor = std::exp(belief.mean + (s.log_factor - prior_.mean) * narrower);
    const double forecast_steps = all * step_.count() * std::exp(s.log_factor);
    const double steps_to_come = left * step_.count() * factor;
    const double besides = std::max(0.0, s.time - forecast_steps - s.start);
    // A replication that never finished waits for ever, until the last step is done after all.
    const double besides_to_come = left > 0 ? left / all * besides * again : 0;
    // Before the first step the run is in its start, which may take longer than was forecast.
    const double time = started ? elapsed.count() + steps_to_come + besides_to_come
                                : std::max(elapsed.count(), s.start) + steps_to_come + besides;
    times.push_back(time);
    costs.push_back(std::isfinite(s.time) ? s.cost * time / s.time : s.cost);
    if (deadline_ && time > deadline_->count()) ++missed;
  }
  LiveEstimate e;
  e.time_seconds = quantiles(times);
  if (priced_) e.cost_usd = quantiles(costs);
  if (deadline_) e.miss_probability = missed / double(samples_.size());
  e.step = step_ * std::exp(belief.mean);
  e.step_spread = belief.spread();
  return e;
}

}  // namespace reckon
