#include "sim/queue/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/queue/lists/inline_jobs.h"
#include "sim/queue/trials.h"

namespace reckon {
namespace {

constexpr std::int64_t kSecondsOfHour = 3600;
constexpr std::int64_t kSecondsOfWeek = 604'800;
constexpr std::int64_t kFirstMonday = 4 * 86'400;  // 1970-01-05, since 1970
constexpr double kNormal95 = 1.6448536269514722;   // standard normal quantile of 95 %

constexpr Purpose kArrivalTimes{"queue_arrival"}, kSizes{"queue_job_size"},
    kLengths{"queue_job_length"}, kOwners{"queue_job_owner"}, kResults{"queue_trial_result"};

/// Of a name, for its streams: FNV-1a, 32 bits.
std::uint32_t entity_of(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::int64_t second_of_week(std::int64_t epoch) {
  const std::int64_t second = (epoch - kFirstMonday) % kSecondsOfWeek;
  return second < 0 ? second + kSecondsOfWeek : second;
}

WeekProfile over_its_mean(WeekProfile profile) {
  const double sum = std::accumulate(profile.begin(), profile.end(), 0.0);
  RECKON_CHECK(sum > 0);
  for (double& rate : profile) rate *= double(kHoursOfWeek) / sum;
  return profile;
}

/// Of keys with shares, the one at a uniform number.
template <class Key>
const Key& chosen(const std::map<Key, double>& shares, double uniform) {
  double sum = 0;
  for (const auto& [key, share] : shares) sum += share;
  double left = uniform * sum;
  const Key* last = nullptr;
  for (const auto& [key, share] : shares) {
    if (share <= 0) continue;
    last = &key;
    if ((left -= share) < 0) break;
  }
  RECKON_CHECK(last != nullptr);
  return *last;
}

/// Turns unit-rate exponentials into times of a process with the rate of the profile.
class ProfileClock {
 public:
  ProfileClock(const WeekProfile& profile, double per_hour, std::int64_t begins)
      : profile_(profile), per_second_(per_hour / double(kSecondsOfHour)), begins_(begins) {
    end_of_hour_ = double(kSecondsOfHour - second_of_week(begins) % kSecondsOfHour);
  }
  /// Seconds from the start; the integral of the rate since the last call is `expected`. Beyond
  /// `end` it may be any time beyond it.
  double after(double expected, double end) {
    while (now_ <= end) {
      const double rate = per_second_ * rate_of_hour();
      if (rate > 0 && expected <= rate * (end_of_hour_ - now_)) return now_ += expected / rate;
      expected -= rate * (end_of_hour_ - now_);
      now_ = end_of_hour_;
      end_of_hour_ += double(kSecondsOfHour);
    }
    return now_;
  }

 private:
  double rate_of_hour() const {
    const auto last_second = static_cast<std::int64_t>(end_of_hour_) - 1;
    return profile_[static_cast<std::size_t>(second_of_week(begins_ + last_second) /
                                             kSecondsOfHour)];
  }
  const WeekProfile& profile_;
  double per_second_;
  std::int64_t begins_;
  double now_ = 0, end_of_hour_ = 0;
};

}  // namespace

Seconds draw_time(const TimeLaw& law, RandomStream& stream) {
  if (const auto* fixed = std::get_if<Seconds>(&law)) return *fixed;
  if (const auto* exponential = std::get_if<ExponentialTime>(&law))
    return stream.exponential() * exponential->mean;
  if (const auto* lognormal = std::get_if<LognormalTime>(&law)) {
    const double sigma = std::log(lognormal->p95 / lognormal->median) / kNormal95;
    return std::exp(sigma * stream.normal()) * lognormal->median;
  }
  const auto& list = std::get<std::vector<Seconds>>(law);
  return list[static_cast<std::size_t>(stream.uniform() * double(list.size()))];
}

WeekProfile week_profile(std::span<const double> hours) {
  WeekProfile profile;
  profile.fill(1);
  for (std::size_t h = 0; h < kHoursOfWeek && !hours.empty(); ++h)
    profile[h] = hours[h % hours.size()];
  return over_its_mean(profile);
}

WeekProfile recorded_profile(const JobList& list) {
  RECKON_CHECK(list.epoch.has_value());
  WeekProfile profile{};
  for (const JobRequest& job : list.jobs) {
    const auto at = std::chrono::duration_cast<std::chrono::seconds>(job.submit - SimTime{});
    profile[static_cast<std::size_t>(second_of_week(*list.epoch + at.count()) / kSecondsOfHour)] +=
        1;
  }
  return over_its_mean(profile);
}

std::vector<double> arrival_times(const WeekProfile& profile, double per_hour, std::int64_t begins,
                                  double end, RandomStream& stream) {
  std::vector<double> times;
  ProfileClock clock(profile, per_hour, begins);
  for (double at = clock.after(stream.exponential(), end); at < end;
       at = clock.after(stream.exponential(), end))
    times.push_back(at);
  return times;
}

double expected_jobs(const ArrivalsSpec& arrivals) {
  double jobs = 0;
  for (const ArrivalClassSpec& c : arrivals.classes)
    jobs += (c.trials ? c.trials->count : 1) * c.jobs_per_hour * arrivals.period.count() /
            double(kSecondsOfHour);
  return jobs;
}

JobList draw_arrivals(const ArrivalsSpec& arrivals, const WeekProfile& profile, std::int64_t begins,
                      std::uint64_t seed, std::uint32_t replication,
                      std::span<const ClassPaces> paces) {
  JobList list;
  list.epoch = begins;
  const double end = arrivals.period.count();
  for (std::size_t k = 0; k < arrivals.classes.size(); ++k) {
    const ArrivalClassSpec& kind = arrivals.classes[k];
    std::map<int, std::int32_t> numbers;  // of their paces, by GPUs
    if (k < paces.size())
      for (const auto& [gpus, own] : paces[k]) {
        numbers[gpus] = static_cast<std::int32_t>(list.paces.size());
        list.paces.push_back(own.pace);
      }
    const std::uint32_t entity = entity_of(kind.name);
    RandomStream times(seed, replication, kArrivalTimes, entity);
    RandomStream sizes(seed, replication, kSizes, entity);
    RandomStream lengths(seed, replication, kLengths, entity);
    RandomStream owners(seed, replication, kOwners, entity);
    RandomStream results(seed, replication, kResults, entity);
    for (const double at : arrival_times(profile, kind.jobs_per_hour, begins, end, times)) {
      const int gpus = chosen(kind.gpus, sizes.uniform());
      const ClassPace* own = numbers.empty() ? nullptr : &paces[k].at(gpus);
      const Seconds length =
          own != nullptr && own->length ? *own->length : draw_time(kind.duration, lengths);
      std::optional<SimDuration> limit;
      if (kind.limit > 0) limit = to_clock(kind.limit * length);
      const double of_team = owners.uniform(), of_user = owners.uniform();
      const std::string team = kind.teams.empty() ? "" : chosen(kind.teams, of_team);
      const int user = 1 + static_cast<int>(of_user * kind.users);
      const JobOwner owner{
          list.names.users.number(fmt::format("{}-{}", team.empty() ? "user" : team, user)),
          list.names.teams.number(team),
          list.names.queues.number(kind.queue),
          list.names.qos.number(kind.qos),
          kind.priority,
          list.names.topologies.number(kind.required_topology.empty() ? kind.preferred_topology
                                                                      : kind.required_topology),
          !kind.required_topology.empty(),
          {},
          list.names.resources.number(kind.resource)};
      const std::vector<double> shares =
          kind.trials ? shares_of_trials(*kind.trials, results) : std::vector<double>{1};
      for (const double share : shares) {
        list.jobs.push_back(
            recorded_job(SimTime{} + to_clock(Seconds{at}), to_clock(share * length), gpus, limit));
        list.jobs.back().owner = owner;
        set_pods(list.jobs.back(), kind.pod);
        if (own != nullptr) list.jobs.back().pace = numbers.at(gpus);
      }
    }
  }
  std::stable_sort(list.jobs.begin(), list.jobs.end(),
                   [](const JobRequest& a, const JobRequest& b) { return a.submit < b.submit; });
  return list;
}

}  // namespace reckon
