#include "sim/measurement/calibration/explaining.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/random.h"
#include "sim/forecast/effects.h"
#include "sim/forecast/replicate.h"
#include "sim/measurement/log_spread.h"

namespace reckon {
namespace {

PlanAssumption distribution_of(const AssumptionEffect& a) {
  PlanAssumption p;
  p.unit = a.unit;
  p.value = a.median;
  p.low = a.low;
  p.high = a.high;
  return p;
}

/// In which what is compared is linear.
double linear_in(double value, bool inverse) { return inverse ? 1 / value : value; }

/// Mean over the draws of a forecast, by the quantiles in the middle of equal slices.
double mean_over_draws(const AssumptionEffect& a, bool inverse) {
  const PlanAssumption distribution = distribution_of(a);
  constexpr int kSlices = 400;
  double sum = 0;
  for (int k = 0; k < kSlices; ++k) {
    const double score = normal_quantile((k + 0.5) / kSlices) / kScoreOfP95;
    sum += linear_in(value_at(distribution, std::clamp(score, -kScoreLimit, kScoreLimit)), inverse);
  }
  return sum / kSlices;
}

/// The inverse of value_at(): how far from the median, in half-ranges.
double score_of(const AssumptionEffect& a, double value) {
  const double end = value < a.median ? a.low : a.high;
  if (end == a.median) return value == a.median ? 0 : std::copysign(kScoreLimit, value - a.median);
  const double way = a.median > 0 && end > 0 ? std::log(value / a.median) / std::log(end / a.median)
                                             : (value - a.median) / (end - a.median);
  return value < a.median ? -way : way;
}

}  // namespace

std::optional<Explaining> explaining(const AssumptionEffect& a, double effect, double difference,
                                     Around around) {
  const bool inverse = effect < 0;
  if (!(a.low < a.high) || effect == 0 || (inverse && a.low <= 0)) return std::nullopt;
  const double slope = effect / (linear_in(a.high, inverse) - linear_in(a.low, inverse));
  const double centre =
      around == Around::medians ? linear_in(a.median, inverse) : mean_over_draws(a, inverse);
  const double wanted = centre + difference / slope;
  if (!(wanted > 0)) return std::nullopt;
  Explaining e{a, linear_in(wanted, inverse), 0};
  if (a.unit == "fraction" && *e.value > 1) return std::nullopt;
  e.percentile = 0.5 * std::erfc(-kScoreOfP95 * score_of(a, *e.value) / std::sqrt(2.0));
  return e;
}

std::vector<Explaining> most_plausible(const std::vector<EffectOn>& effects, double difference,
                                       Around around, std::size_t most) {
  // What hardly moves the number would have to be orders of magnitude off: that names no culprit.
  constexpr double kLeastEffect = 0.05;  // of the difference, a share
  std::vector<Explaining> found;
  for (const EffectOn& e : effects) {
    if (std::abs(e.effect) < kLeastEffect * std::abs(difference)) continue;
    if (auto one = explaining(*e.assumption, e.effect, difference, around))
      found.push_back(std::move(*one));
  }
  const auto how_far = [](const Explaining& e) {
    return std::abs(score_of(e.assumption, *e.value));
  };
  std::stable_sort(found.begin(), found.end(), [&](const Explaining& a, const Explaining& b) {
    return how_far(a) < how_far(b);
  });
  if (found.empty()) {
    std::vector<EffectOn> rests_on = effects;
    std::erase_if(rests_on, [](const EffectOn& e) { return e.effect == 0; });
    std::stable_sort(rests_on.begin(), rests_on.end(), [](const EffectOn& a, const EffectOn& b) {
      return std::abs(a.effect) > std::abs(b.effect);
    });
    for (const EffectOn& e : rests_on) found.push_back({*e.assumption, std::nullopt, 0});
  }
  if (found.size() > most) found.resize(most);
  return found;
}

std::string to_text(const Explaining& e) {
  const AssumptionEffect& a = e.assumption;
  const std::string assumed = fmt::format("assumed {} [{}; {}]", a.value, a.key, a.source);
  if (!e.value)
    return fmt::format("{}: no value near its range explains the difference; {}", a.what, assumed);
  std::string where = fmt::format("percentile {:.0f} of that range", 100 * e.percentile);
  if (!e.within_range()) where = *e.value < a.median ? "below that range" : "above that range";
  return fmt::format("{}: {} would explain it, {}; {}", a.what, format_in_unit(*e.value, a.unit),
                     where, assumed);
}

}  // namespace reckon
