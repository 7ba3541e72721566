#include "sim/cluster/disruptions.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/cluster/never.h"

namespace reckon {

std::uint32_t node_entity(std::string_view pool, std::uint32_t slot) {
  RECKON_CHECK(slot < 65536);
  std::uint32_t hash = 2166136261u;
  for (const char c : pool) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return ((hash ^ hash >> 16) << 16) | slot;
}

DelayLaw::DelayLaw(const Fact<Seconds>& fact) : median_seconds_(fact.value.count()) {
  constexpr double kZ95 = 1.6448536269514722;  // standard normal, 95th percentile
  if (fact.low.count() > 0 && fact.high > fact.low) {
    sigma_ = std::log(fact.high / fact.low) / (2 * kZ95);
  }
}

SimDuration DelayLaw::draw(RandomStream& stream) const {
  if (sigma_ == 0) return clock_or_never(Seconds{median_seconds_});
  return clock_or_never(Seconds{median_seconds_ * std::exp(sigma_ * stream.normal())});
}

SimDuration DelayLaw::least() const {
  return sigma_ == 0 ? clock_or_never(Seconds{median_seconds_}) : SimDuration{0};
}

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;
constexpr std::size_t kKnots = 1024;
}  // namespace

ReclaimLaw::ReclaimLaw(const ReclaimSpec& spec) {
  std::visit(Overloaded{[](const NoReclaim&) {},
                        [&](const ExponentialReclaim& e) {
                          kind_ = Kind::exponential;
                          scale_ = e.mean.count();
                        },
                        [&](const WeibullReclaim& w) {
                          kind_ = Kind::weibull;
                          scale_ = w.scale.count();
                          shape_ = w.shape;
                        },
                        [&](const BathtubReclaim& b) {
                          kind_ = Kind::bathtub;
                          a_ = b.a;
                          tau1_ = b.tau1.count();
                          tau2_ = b.tau2.count();
                          b_ = b.b.count();
                          limit_ = b.limit.count();
                        },
                        [&](const TraceReclaim&) { kind_ = Kind::trace; }},
             spec);
  if (kind_ != Kind::bathtub) return;
  knots_.resize(kKnots + 1);
  for (std::size_t i = 0; i <= kKnots; ++i) {
    knots_[i] = bathtub_cdf(limit_ * double(i) / double(kKnots));
  }
}

double ReclaimLaw::bathtub_cdf(double t) const {
  return a_ * (1 - std::exp(-t / tau1_) + std::exp((t - b_) / tau2_));
}

// F grows with t, so the table brackets the root and bisection closes in: to a microsecond.
double ReclaimLaw::bathtub_quantile(double u) const {
  if (u <= knots_.front()) return 0;
  if (u >= knots_.back()) return limit_;
  const auto above = std::upper_bound(knots_.begin(), knots_.end(), u) - knots_.begin();
  double low = limit_ * double(above - 1) / double(kKnots);
  double high = limit_ * double(above) / double(kKnots);
  while (high - low > 1e-6) {
    const double middle = 0.5 * (low + high);
    (bathtub_cdf(middle) < u ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Seconds ReclaimLaw::quantile(double u) const {
  switch (kind_) {
    case Kind::exponential:
      return Seconds{-scale_ * std::log1p(-u)};
    case Kind::weibull:
      return Seconds{scale_ * std::pow(-std::log1p(-u), 1 / shape_)};
    case Kind::bathtub:
      return Seconds{bathtub_quantile(u)};
    case Kind::never:
    case Kind::trace:
      break;
  }
  RECKON_CHECK(false && "no law of age");
  return {};
}

SimDuration ReclaimLaw::draw(RandomStream& stream) const {
  return clock_or_never(quantile(stream.uniform()));
}

Seconds ReclaimLaw::mean() const {
  switch (kind_) {
    case Kind::exponential:
      return Seconds{scale_};
    case Kind::weibull:
      return Seconds{scale_ * std::tgamma(1 + 1 / shape_)};
    case Kind::bathtub: {  // trapezoid over the table; F above 1 cannot be
      const double step = limit_ / double(kKnots);
      double area = 0;
      for (std::size_t i = 0; i < kKnots; ++i) {
        area += step * (1 - 0.5 * (std::min(knots_[i], 1.0) + std::min(knots_[i + 1], 1.0)));
      }
      return Seconds{area};
    }
    case Kind::never:
    case Kind::trace:
      break;
  }
  return Seconds::max();
}

Shortages::Shortages(const ShortageRules& rules, std::uint64_t seed, std::uint32_t replication,
                     std::uint32_t market)
    : stream_(seed, replication, kShortage, market) {
  if (!rules.on) return;
  every_ = rules.every.value.count() * 1e9;
  lasts_ = rules.lasts.value.count() * 1e9;
  // In the long run it is short for lasts / (every + lasts) of the time, and what is left of an
  // exponential time is as long as a whole one.
  const bool short_now = stream_.uniform() * (every_ + lasts_) < lasts_;
  draw_next(SimTime{});
  if (short_now) {
    end_ = SimTime{} + (end_ - begin_);
    begin_ = SimTime{};
  }
}

void Shortages::draw_next(SimTime from) {
  const auto draw = [&](double mean) {
    return SimDuration{std::llrint(std::min(mean * stream_.exponential(), kNeverNanoseconds))};
  };
  begin_ = from + draw(every_);
  end_ = begin_ + draw(lasts_);
}

SimTime Shortages::over_at(SimTime now) {
  if (lasts_ == 0) return now;
  while (end_ <= now) draw_next(end_);
  return now < begin_ ? now : end_;
}

SimTime next_in_trace(std::span<const Seconds> times, Seconds length, SimTime after) {
  if (times.empty()) return SimTime::max();
  const SimDuration round = to_clock(length);
  const SimDuration since = after.time_since_epoch();
  const bool again = round.count() > 0 && since >= round;
  const SimDuration base = again ? since / round * round : SimDuration{0};
  const auto later = [&](SimDuration t, Seconds entry) { return t < to_clock(entry); };
  const auto it = std::upper_bound(times.begin(), times.end(), since - base, later);
  if (it != times.end()) return SimTime{base + to_clock(*it)};
  return round.count() > 0 ? SimTime{base + round + to_clock(times.front())} : SimTime::max();
}

bool has_maintenance(const PlannedPool& pool) {
  return pool.accelerators_per_node > 0 || pool.slice.has_value();
}

}  // namespace reckon
