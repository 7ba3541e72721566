#include "sim/queue/trials.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/queue/arrivals.h"

using namespace reckon;

namespace {

std::vector<double> trial_shares(const TrialsSpec& trials, std::uint32_t which = 0) {
  RandomStream stream(5, which, Purpose{"trials test"}, 0);
  return shares_of_trials(trials, stream);
}
double part_above(const std::vector<double>& shares, double bound) {
  return double(std::ranges::count_if(shares, [&](double s) { return s > bound * 1.0001; })) /
         double(shares.size());
}

}  // namespace

TEST_CASE("without a rule every trial runs to its end") {
  CHECK(trial_shares({.count = 7}) == std::vector<double>(7, 1.0));
}

TEST_CASE("of ASHA one trial in eta goes on from each rung") {
  const TrialsSpec trials{20'000, EarlyStopping::asha, 4, 1.0 / 64, 0.3};
  const std::vector<double> shares = trial_shares(trials);
  CHECK(shares.front() == 1);  // nothing to hold it against
  CHECK(part_above(shares, 1.0 / 64) == Approx(1.0 / 4).epsilon(0.03));
  CHECK(part_above(shares, 1.0 / 16) == Approx(1.0 / 16).epsilon(0.08));
  CHECK(part_above(shares, 1.0 / 4) == Approx(1.0 / 64).epsilon(0.15));
  for (const double share : shares)
    CHECK((share == 1 || share == 1.0 / 64 || share == 1.0 / 16 || share == 1.0 / 4));
}

TEST_CASE("of the median rule half go on from the first look, whatever the noise") {
  for (const double noise : {0.0, 1.0}) {
    const std::vector<double> shares =
        trial_shares({20'000, EarlyStopping::median, 3, 1.0 / 16, noise});
    CHECK(part_above(shares, 1.0 / 16) == Approx(0.5).epsilon(0.03));
    CHECK(part_above(shares, 1.0 / 2) < part_above(shares, 1.0 / 16));
  }
}

TEST_CASE("without noise the best trial so far is never stopped") {
  // Each that runs to its end under eta 2 was in the upper half of those before it at each rung, so
  // of two trials one of them does.
  for (std::uint32_t which = 0; which < 50; ++which) {
    const auto shares = trial_shares({2, EarlyStopping::asha, 2, 0.5, 0}, which);
    CHECK(shares.front() == 1);
    CHECK((shares.back() == 1 || shares.back() == 0.5));
  }
}

TEST_CASE("a search is so many jobs at one time, of one user, as long as its trials") {
  ArrivalsSpec spec;
  spec.period = Seconds{3600.0 * 500};
  ArrivalClassSpec searches;
  searches.name = "searches";
  searches.jobs_per_hour = 1;
  searches.gpus = {{2, 1}};
  searches.duration = Seconds{2700};
  searches.teams = {{"vision", 1}};
  searches.users = 4;
  searches.trials = TrialsSpec{27, EarlyStopping::asha, 3, 1.0 / 9, 0.2};
  spec.classes = {searches};
  CHECK(expected_jobs(spec) == Approx(500 * 27));
  const JobList list = draw_arrivals(spec, week_profile({}), 0, 7, 0);
  REQUIRE(list.jobs.size() % 27 == 0);
  for (std::size_t k = 0; k < list.jobs.size(); k += 27) {
    int full = 0;
    for (std::size_t t = 0; t < 27; ++t) {
      const JobRequest& job = list.jobs[k + t];
      CHECK(job.submit == list.jobs[k].submit);
      CHECK(job.owner == list.jobs[k].owner);
      const double seconds = to_seconds(std::get<FixedTime>(job.work).time).count();
      CHECK((seconds == 300 || seconds == 900 || seconds == 2700));
      full += seconds == 2700 ? 1 : 0;
    }
    CHECK(full >= 1);
  }
  // Another number of trials moves no arrival.
  ArrivalsSpec more = spec;
  more.classes[0].trials->count = 3;
  const JobList other = draw_arrivals(more, week_profile({}), 0, 7, 0);
  REQUIRE(other.jobs.size() == list.jobs.size() / 9);
  for (std::size_t k = 0; k < other.jobs.size(); k += 3)
    CHECK(other.jobs[k].submit == list.jobs[9 * k].submit);
}
