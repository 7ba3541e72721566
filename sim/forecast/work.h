#pragma once
#include "sim/base/limits.h"
#include "sim/forecast/replicate.h"

// How much work a forecast is, before any of it is done.
namespace reckon {

/// Of one life, as far as its plan tells: which nodes are asked for, how often they go, how many
/// jobs wait at once. Within a factor of 1.5 of what was measured for up to 65,536 nodes, 3,000
/// waiting jobs and spot nodes that live for hours (tests/sim/forecast/work_test.cpp); too high
/// where spot nodes live for minutes and a gang waits for all of them.
struct LifeWork {
  double seconds_of_life = 0;  // simulated, from the first submit to the last finish
  double jobs_at_once = 0;     // submitted and not done, in the mean
  double events = 0;           // a count
  double cpu_seconds = 0;
  double bytes = 0;            // while it is simulated: nodes, jobs, events
  double bytes_of_result = 0;  // kept until all lives are over
};
LifeWork work_of_life(const ForecastSetup& setup);

/// Errors: TooMuchWork where what all lives share, and each thread's copy of the plan, takes more
/// than the limits. Before the setup is made.
void check_setup(const Plan& plan, int threads, const WorkLimits& limits);
/// Errors: TooMuchWork where `lives` of them, on so many threads (0: one a core), take more than
/// the limits.
void check_work(const ForecastSetup& setup, double lives, int threads, const WorkLimits& limits);

}  // namespace reckon
