#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/random.h"
#include "sim/queue/job_list.h"
#include "sim/queue/pace/own_jobs.h"
#include "sim/scenario/spec/trace.h"

// Jobs that are drawn at random, where no trace is there.
namespace reckon {

inline constexpr std::size_t kHoursOfWeek = 168;
/// Rate by hour of the week from Monday 00:00 UTC on, over the mean of the week.
using WeekProfile = std::array<double, kHoursOfWeek>;

/// Of `hours` as written (none, 24 or 168 numbers, of which one is above 0).
WeekProfile week_profile(std::span<const double> hours);
/// Submits of a recorded list by hour of the week. Needs an epoch and a job.
WeekProfile recorded_profile(const JobList& list);

/// Jobs of all classes in order of submit (of equals in that of the classes). Each class is a
/// Poisson process with the rate jobs_per_hour x profile, drawn by the inverse of the integrated
/// rate, so that jobs do not move where one hour changes and the hours before it do not. Draws are
/// of (seed, replication, purpose, name of the class): another class changes none of them. A job's
/// length and size are independent of each other, of the time and of the user. The users of team T
/// are T-1, T-2, ... alike. `begins`: seconds since 1970 of the time 0. `paces`: by class, of those
/// whose pace follows their nodes.
JobList draw_arrivals(const ArrivalsSpec& arrivals, const WeekProfile& profile, std::int64_t begins,
                      std::uint64_t seed, std::uint32_t replication,
                      std::span<const ClassPaces> paces = {});

/// Seconds from the start, before `end`, of a Poisson process with the rate per_hour x profile.
std::vector<double> arrival_times(const WeekProfile& profile, double per_hour, std::int64_t begins,
                                  double end, RandomStream& stream);

/// A time by its law.
Seconds draw_time(const TimeLaw& law, RandomStream& stream);

/// Jobs of all classes that are expected.
/// A count, mean over the replications.
double expected_jobs(const ArrivalsSpec& arrivals);

}  // namespace reckon
