#include "sim/forecast/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "sim/base/unit_text.h"
#include "sim/cluster/disruptions.h"
#include "sim/cluster/event_queue.h"
#include "sim/cluster/job.h"
#include "sim/cluster/node_pool.h"
#include "sim/cluster/placement.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/resolve/training/size.h"

namespace reckon {
namespace {

// Measured on one core of a busy server in November 2026 (release build, a job of resnet18 that is
// submitted again and again): 65,536 nodes and one job take 0.04 s a life, 65,536 nodes and 1,000
// jobs 0.22 s, 100 nodes and 3,000 jobs that wait for one another 0.18 s.
constexpr double kSecondsOfNode = 3e-7;         // made, with its random streams
constexpr double kSecondsOfEvent = 3e-7;        // with what it makes one node do
constexpr double kSecondsOfLookAtJob = 2e-9;    // each event looks at the jobs at once, by pool
constexpr double kSecondsOfLookAtPhase = 5e-9;  // each event of a job looks at all jobs
constexpr double kSecondsOfLookAtNode = 3e-9;   // the end of a job looks at all nodes
constexpr double kEventsOfNode = 1, kEventsOfDisruption = 3, kEventsOfJob = 3;
constexpr double kBytesOfEvents = 3 * sizeof(Event);  // of a node in the queue: some are stale
constexpr double kHopelessSaving = 1000, kHopeless = 10'000;  // interruptions: Life::is_hopeless()

int cores_of(int threads) {
  return threads > 0 ? threads : int(std::max(1u, std::thread::hardware_concurrency()));
}

double horizon() { return LifeOptions{}.horizon.count(); }

/// Times that a node goes, a second.
double rate_of_going(const Plan& plan, const PlannedPool& pool) {
  double rate = 0;
  if (pool.pricing == CapacityType::spot) {
    const ReclaimLaw law{plan.reclaim.law};
    if (law.from_trace() && plan.reclaim.trace_length.count() > 0) {
      double times = 0;
      for (const auto& slot : plan.reclaim.trace) times += double(slot.size());
      rate += times / (double(plan.reclaim.trace.size()) * plan.reclaim.trace_length.count());
    } else if (!law.from_trace() && !law.never()) {
      rate += 1 / (law.mean() + pool.provisioning.value).count();
    }
  }
  if (plan.maintenance.on && has_maintenance(pool))
    rate += 1 / (plan.maintenance.every.value + plan.maintenance.duration.value).count();
  if (plan.failures.on && pool.accelerators_per_node > 0)
    rate += 1 / (plan.failures.mtbf_per_accelerator.value / pool.accelerators_per_node +
                 plan.failures.repair.value)
                    .count();
  return rate;
}

struct JobWork {
  double seconds = 0;  // from its gang's first start to its end
  double nodes = 0;
  double interruptions = 0;
};

/// With M the mean time to an interruption, R what a start costs and checkpoints every I seconds:
/// M exp(R/M) (exp(I/M) - 1) a stretch [Daly 2006, Eq. 13], I the whole work where none are made. A
/// start waits until no node of the gang is missing.
JobWork work_of_job(const Plan& plan, std::size_t k, const JobPace& pace) {
  const PlannedWorkload& job = plan.jobs[k];
  JobWork out;
  const Placement placement = place_gang(plan, request_of(job, {}));
  double missing = 0, longest_delay = 0;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const double nodes = placement.pools[p].nodes;
    out.nodes += nodes;
    if (nodes == 0) continue;
    const double delay = plan.pools[p].provisioning.value.count();
    missing += nodes * rate_of_going(plan, plan.pools[p]) * delay;
    longest_delay = std::max(longest_delay, delay);
  }
  const Seconds step = pace.step_by_workers.back() * pace.step_factor;
  const double work = double(pace.steps) * step.count() + pace.evaluation.count();
  const double mean = mean_time_to_interruption(plan, job).count();
  const double saves = pace.checkpoint_interval.count();
  const double stretch = saves > 0 ? std::min(saves, work) : work;
  const JobStartRules& start = plan.job_start;
  // While nodes go as fast as they come no gang is ever whole; below that it waits a few delays.
  constexpr double kNeverWhole = 60, kMostDelays = 3;  // nodes missing in the mean; delays
  const double delays = missing > kNeverWhole ? std::numeric_limits<double>::infinity()
                                              : std::min(kMostDelays, std::exp(missing));
  const double restart =
      longest_delay * delays + pace.checkpoint_restore.count() +
      (start.image_pull.value + start.framework_start.value + start.compile.value).count();
  const double each = mean * std::exp(restart / mean) * std::expm1(stretch / mean);
  const double tried = stretch > 0 ? each * work / stretch : 0;
  const double hopeless = (saves > 0 ? kHopelessSaving : kHopeless) * (mean + restart);
  // Not below it is also what is infinite or no number.
  out.seconds = tried < horizon() ? tried : std::min(horizon(), hopeless);
  out.interruptions = out.seconds / (mean + restart);
  return out;
}

/// The jobs one behind the other, each on its part of the nodes: none starts before there is room.
void queue_jobs(const Plan& plan, const std::vector<JobWork>& jobs, double nodes, LifeWork& work) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return plan.jobs[k].submit; });
  const double first = plan.jobs[order.front()].submit.count();
  const double latest = plan.jobs[order.back()].submit.count() + horizon();
  double busy_until = first, job_seconds = 0, last = first;
  for (const std::size_t k : order) {
    const double submit = plan.jobs[k].submit.count();
    const double share = std::min(1.0, jobs[k].nodes / std::max(nodes, 1.0));
    busy_until = std::max(busy_until, submit) + jobs[k].seconds * share;
    const double finish = std::min(latest, std::max(busy_until, submit + jobs[k].seconds));
    job_seconds += finish - submit;
    last = std::max(last, finish);
  }
  work.seconds_of_life = last - first;
  work.jobs_at_once = job_seconds / std::max(last - first, 1e-9);
}

std::string count_text(double n) {
  return n < 1e15 ? format_count(std::round(n)) : fmt::format("{:.3g}", n);
}

}  // namespace

LifeWork work_of_life(const ForecastSetup& setup) {
  const Plan& plan = setup.plan;
  LifeWork work;
  const double jobs = double(plan.jobs.size()), pools = double(plan.pools.size());
  double nodes = 0;
  for (const PlannedPool& pool : plan.pools) nodes += node_limit(plan, pool);
  std::vector<JobWork> each(plan.jobs.size());
  double workers = 0, job_events = 0;
  for (std::size_t k = 0; k < each.size(); ++k) {
    const auto same = plan.jobs[k].same_as;
    each[k] = same ? each[*same] : work_of_job(plan, k, setup.jobs[k].paced.pace);
    workers += plan.jobs[k].strategy.workers + 1;
    job_events += kEventsOfJob + kEventsOfDisruption * each[k].interruptions;
  }
  queue_jobs(plan, each, nodes, work);
  work.events = job_events;
  for (const PlannedPool& pool : plan.pools)
    work.events +=
        node_limit(plan, pool) *
        (kEventsOfNode + kEventsOfDisruption * rate_of_going(plan, pool) * work.seconds_of_life);
  work.cpu_seconds =
      nodes * kSecondsOfNode +
      work.events * (kSecondsOfEvent + kSecondsOfLookAtJob * work.jobs_at_once * pools) +
      job_events * jobs * kSecondsOfLookAtPhase + (jobs - 1) * nodes * kSecondsOfLookAtNode;
  work.bytes = nodes * (double(sizeof(Node)) + kBytesOfEvents) + workers * double(sizeof(double)) +
               jobs * (double(sizeof(Job)) + pools * double(sizeof(PoolShare) + sizeof(Holding)));
  work.bytes_of_result =
      double(sizeof(LifeResult)) + jobs * sizeof(JobOutcome) + pools * sizeof(NodeTime);
  return work;
}

void check_setup(const Plan& plan, int threads, const WorkLimits& limits) {
  constexpr double kAssumptions = 24;   // usual plans rest on 10 to 20
  constexpr double kHeapOfStep = 2000;  // bytes
  const double copies = kCopiesOfPlan + cores_of(threads);
  double bytes = 0;
  for (const PlannedWorkload& job : plan.jobs) {
    const double paces = 8.0 * (job.strategy.workers + 1) * (1 + cores_of(threads));
    bytes += bytes_of(job) * copies + paces + double(sizeof(JobSetup) + sizeof(JobForecast)) +
             kHeapOfStep +
             kAssumptions * double(sizeof(std::optional<Sensitivity>) + sizeof(AssumedRange));
  }
  if (!(bytes <= limits.bytes))
    throw TooMuchWork(fmt::format("{} jobs take about {} of memory",
                                  count_text(double(plan.jobs.size())), format_bytes(Bytes{bytes})),
                      hint_of_memory("fewer jobs, or fewer threads", bytes));
}

void check_work(const ForecastSetup& setup, double lives, int threads, const WorkLimits& limits) {
  const LifeWork work = work_of_life(setup);
  const Plan& plan = setup.plan;
  double nodes = 0;
  for (const PlannedPool& pool : plan.pools) nodes += node_limit(plan, pool);
  const std::string of =
      fmt::format("{} {} of {} job{} on {} nodes", count_text(lives),
                  lives == 1 ? "replication" : "replications", count_text(double(plan.jobs.size())),
                  plan.jobs.size() == 1 ? "" : "s", count_text(nodes));
  const double seconds = lives * work.cpu_seconds;
  if (!(seconds <= limits.cpu_seconds))
    throw TooMuchWork(
        fmt::format("{} take about {} of one core: {} events each", of,
                    format_duration(Seconds{std::min(seconds, 1e10)}), count_text(work.events)),
        hint_of_time("fewer replications, jobs or nodes, or fewer interruptions", seconds));
  const double bytes = work.bytes * cores_of(threads) + work.bytes_of_result * lives;
  if (!(bytes <= limits.bytes))
    throw TooMuchWork(fmt::format("{} take about {} of memory", of, format_bytes(Bytes{bytes})),
                      hint_of_memory("fewer replications, jobs, nodes or threads", bytes));
}

}  // namespace reckon
