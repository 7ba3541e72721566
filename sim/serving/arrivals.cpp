#include "sim/serving/arrivals.h"

#include <algorithm>

namespace reckon {
namespace {

constexpr Purpose kRequests{"serving_requests"};
constexpr SimDuration kHour{3'600'000'000'000};
constexpr std::int64_t kHoursOfDay = 24;

}  // namespace

RequestStream::RequestStream(const ServiceSetting& setting, std::uint64_t seed, SimTime begin)
    : setting_(setting), random_(seed, 0, kRequests, 0), now_(begin) {}

double RequestStream::rate_at(SimTime at) const {
  const auto& rates = setting_.requests_per_second;
  if (rates.size() == 1) return rates.front();
  const SimDuration since = std::max(SimDuration{}, at.time_since_epoch());
  const std::int64_t hour = (since + to_clock(setting_.starts_at)) / kHour;
  return rates[std::size_t(hour % kHoursOfDay)];
}

SimTime RequestStream::end_of_rate(SimTime at) const {
  if (setting_.requests_per_second.size() == 1) return SimTime::max();
  const SimDuration of_day = to_clock(setting_.starts_at);
  const SimDuration since = std::max(SimDuration{}, at.time_since_epoch());
  return SimTime{((since + of_day) / kHour + 1) * kHour - of_day};
}

SimTime RequestStream::next() {
  const SimTime end{to_clock(setting_.period)};
  double gap = setting_.arrivals == Arrivals::regular ? 1.0 : random_.exponential();
  while (now_ < end) {
    const double rate = rate_at(now_);
    const SimTime border = end_of_rate(now_);
    if (rate > 0) {
      const double seconds = gap / rate;
      const SimTime at = seconds < 1e9 ? now_ + to_clock(Seconds{seconds}) : SimTime::max();
      if (at < border) {
        now_ = at;
        return at < end ? at : SimTime::max();
      }
      gap = std::max(0.0, gap - rate * to_seconds(border - now_).count());
    }
    now_ = border;
  }
  return SimTime::max();
}

}  // namespace reckon
