#include "sim/queue/arrivals.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/queue/lists/job_lists.h"

using namespace reckon;

namespace {

constexpr std::int64_t kMonday = 1'704'067'200;  // 2024-01-01T00:00:00Z

ArrivalClassSpec kind(const std::string& name, double jobs_per_hour, TimeLaw duration) {
  ArrivalClassSpec spec;
  spec.name = name;
  spec.jobs_per_hour = jobs_per_hour;
  spec.gpus = {{1, 0.6}, {8, 0.4}};
  spec.duration = std::move(duration);
  return spec;
}
ArrivalsSpec arrivals(std::vector<ArrivalClassSpec> classes, double hours) {
  ArrivalsSpec spec;
  spec.period = Seconds{3600 * hours};
  spec.classes = std::move(classes);
  return spec;
}
JobList drawn(const ArrivalsSpec& spec, std::span<const double> hours = {},
              std::uint32_t replication = 0) {
  return draw_arrivals(spec, week_profile(hours), kMonday, 7, replication);
}
double seconds(SimDuration time) { return to_seconds(time).count(); }
double length(const JobRequest& job) { return seconds(std::get<FixedTime>(job.work).time); }

}  // namespace

TEST_CASE("drawn jobs have the rate, the sizes and the lengths of their class") {
  const JobList list = drawn(arrivals({kind("a", 100, ExponentialTime{Seconds{1800}})}, 400));
  const double n = double(list.jobs.size());
  CHECK(n == Approx(40'000).margin(4 * 200));  // Poisson: standard deviation 200
  double gpus = 0, time = 0, between = 0;
  for (const JobRequest& job : list.jobs) {
    gpus += job.gpus();
    time += length(job);
    CHECK(job.submit < SimTime{} + std::chrono::hours(400));
  }
  for (std::size_t k = 1; k < list.jobs.size(); ++k)
    between += std::pow(seconds(list.jobs[k].submit - list.jobs[k - 1].submit), 2);
  CHECK(gpus / n == Approx(0.6 * 1 + 0.4 * 8).epsilon(0.02));
  CHECK(time / n == Approx(1800).epsilon(0.03));
  CHECK(between / n == Approx(2 * 36.0 * 36.0).epsilon(0.05));  // of an exponential
}

TEST_CASE("a lognormal length has its median and its 95 %, a list each of its values") {
  const JobList list =
      drawn(arrivals({kind("a", 100, LognormalTime{Seconds{600}, Seconds{36'000}})}, 400));
  std::vector<double> times;
  for (const JobRequest& job : list.jobs) times.push_back(length(job));
  std::sort(times.begin(), times.end());
  CHECK(times[times.size() / 2] == Approx(600).epsilon(0.05));
  CHECK(times[times.size() * 95 / 100] == Approx(36'000).epsilon(0.1));
  const JobList listed = drawn(
      arrivals({kind("a", 100, std::vector<Seconds>{Seconds{60}, Seconds{60}, Seconds{90}})}, 90));
  const auto short_ones = std::count_if(listed.jobs.begin(), listed.jobs.end(),
                                        [](const JobRequest& j) { return length(j) < 75; });
  CHECK(double(short_ones) / double(listed.jobs.size()) == Approx(2 / 3.0).margin(0.02));
}

TEST_CASE("another class changes no job of the first, another replication all") {
  const auto a = kind("a", 5, ExponentialTime{Seconds{60}});
  const JobList alone = drawn(arrivals({a}, 100));
  const JobList beside = drawn(arrivals({kind("z", 9, Seconds{5}), a}, 100));
  std::vector<SimTime> of_a;
  for (const JobRequest& job : beside.jobs)
    if (std::abs(length(job) - 5) > 1e-6) of_a.push_back(job.submit);
  REQUIRE(of_a.size() == alone.jobs.size());
  for (std::size_t k = 0; k < of_a.size(); ++k) CHECK(of_a[k] == alone.jobs[k].submit);
  CHECK(drawn(arrivals({a}, 100), {}, 1).jobs.front().submit != alone.jobs.front().submit);
}

TEST_CASE("jobs come by the hours of the day, on average at the rate of the class") {
  std::vector<double> hours(24, 1.0);
  for (std::size_t h = 0; h < 6; ++h) hours[h] = 0;
  for (std::size_t h = 9; h < 17; ++h) hours[h] = 4;
  const JobList list = drawn(arrivals({kind("a", 60, Seconds{60})}, 24 * 70), hours);
  std::vector<double> by_hour(24, 0);
  for (const JobRequest& job : list.jobs)
    by_hour[std::size_t(seconds(job.submit - SimTime{}) / 3600) % 24] += 1;
  CHECK(double(list.jobs.size()) == Approx(60 * 24 * 70).epsilon(0.02));
  CHECK(by_hour[3] == 0);
  // 8 hours of 4, 10 of 1: 42 parts of a day's 24 hours of 60.
  CHECK(by_hour[12] / 70 == Approx(60 * 24 * 4 / 42.0).epsilon(0.04));
  CHECK(by_hour[20] / 70 == Approx(60 * 24 * 1 / 42.0).epsilon(0.06));
}

TEST_CASE("a recorded list gives its rate by hour of the week") {
  // Two jobs on a Monday at 10, one on a Sunday at 23.
  const auto list = read_philly("p.csv",
                                "timestamp,duration,num_gpus\n2024-01-01 10:00:00,1,1\n"
                                "2024-01-01 10:59:59,1,1\n2024-01-07 23:30:00,1,1\n");
  REQUIRE(list);
  const WeekProfile profile = recorded_profile(*list);
  CHECK(profile[10] == Approx(168 * 2 / 3.0));
  CHECK(profile[167] == Approx(168 / 3.0));
  CHECK(profile[11] == 0);
  ArrivalsSpec spec = arrivals({kind("a", 10, Seconds{60})}, 24 * 28);
  for (const JobRequest& job : draw_arrivals(spec, profile, kMonday, 1, 0).jobs) {
    const auto hour = std::size_t(seconds(job.submit - SimTime{}) / 3600) % 168;
    CHECK((hour == 10 || hour == 167));
  }
  // A scenario that starts on the Sunday begins with its last hours.
  const JobList sunday = draw_arrivals(spec, profile, kMonday + 6 * 86'400, 1, 0);
  CHECK(sunday.jobs.front().submit >= SimTime{} + std::chrono::hours(23));
  CHECK(sunday.jobs.front().submit < SimTime{} + std::chrono::hours(24));
}

TEST_CASE("teams have their shares, and their users are alike") {
  auto a = kind("a", 100, Seconds{60});
  a.teams = {{"vision", 3}, {"language", 1}};
  a.users = 4;
  a.queue = "batch";
  a.limit = 2;
  const JobList list = drawn(arrivals({a}, 200));
  std::map<std::string, double> by_team, by_user;
  for (const JobRequest& job : list.jobs) {
    by_team[list.names.teams.name(job.owner.team)] += 1 / double(list.jobs.size());
    by_user[list.names.users.name(job.owner.user)] += 1 / double(list.jobs.size());
    CHECK(list.names.queues.name(job.owner.queue) == "batch");
    CHECK(std::get<FixedTime>(job.work).limit == std::chrono::seconds(120));
  }
  CHECK(by_team["vision"] == Approx(0.75).margin(0.02));
  CHECK(by_user.size() == 8);
  CHECK(by_user["vision-3"] == Approx(0.75 / 4).margin(0.02));
}
