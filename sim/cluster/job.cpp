#include "sim/cluster/job.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/cluster/never.h"
#include "sim/cluster/save_interval.h"
#include "sim/scenario/restart.h"

namespace reckon {

SimDuration retry_delay(const RetryRules& rules, int failures) {
  SimDuration delay = clock_or_never(rules.base);
  const SimDuration cap = clock_or_never(rules.cap);
  for (int k = 1; k < failures && delay < cap; ++k) delay *= 2;
  return std::min(delay, cap);
}

namespace {

/// Work of fixed time is one step that takes it, without checkpoints.
JobPace pace_of_fixed(const JobRequest& request) {
  const auto* fixed = std::get_if<FixedTime>(&request.work);
  RECKON_CHECK(fixed != nullptr && request.synchronous);
  JobPace pace;
  pace.steps = 1;
  pace.step_by_workers = {to_seconds(fixed->time)};
  return pace;
}

/// Pace by live workers, relative to all of them.
std::vector<double> relative_pace(const JobPace& pace, std::size_t workers, bool synchronous) {
  std::vector<double> speed(workers + 1, 0.0);
  speed[workers] = 1;
  const bool elastic = synchronous && pace.step_by_workers.size() == workers + 1;
  for (std::size_t live = 1; elastic && live < workers; ++live)
    if (pace.step_by_workers[live].count() > 0)
      speed[live] = pace.step_by_workers.back() / pace.step_by_workers[live];
  for (std::size_t live = 1; !synchronous && live < workers; ++live) {
    RECKON_CHECK(live < pace.step_by_workers.size() && pace.step_by_workers[live].count() > 0);
    speed[live] = pace.step_by_workers.back() / pace.step_by_workers[live];
  }
  return speed;
}

}  // namespace

JobRequest request_of(const PlannedWorkload& job, JobPace pace) {
  const PlannedNotice& notice = job.checkpoint.notice;
  JobRequest request;
  request.submit = SimTime{} + to_clock(job.submit);
  request.workers = job.strategy.workers;
  request.worker = pod_of_gpus(job.strategy.accelerators_per_worker);
  request.server_nodes = job.strategy.server_nodes();
  request.synchronous = job.strategy.synchronous();
  request.work = std::move(pace);
  request.on_notice = {.policy = notice.policy,
                       .reaction = notice.reaction.value,
                       .writer_spread = notice.writer_spread.value,
                       .between_steps = notice.between_steps};
  if (!job.restart) return request;
  request.restart = {.kind = job.restart->kind,
                     .regroup = job.restart->regroup.value,
                     .copies_hold_all = copies_hold_all(job),
                     .workers_of_a_copy = workers_of_a_copy(job),
                     .least = job.restart->min_workers};
  return request;
}

namespace {

constexpr double kMostStragglers = 0.95;  // of a step

/// The storage gets every so many of the checkpoints on the nodes.
void add_local_tier(const LocalTierPace& local, CheckpointCycle& cycle) {
  SimDuration every = clock_or_never(local.every);
  if (!cycle.on() || every.count() <= 0) return;
  // A copy waits until the one before it is written.
  every = std::max(every, clock_or_never(local.write));
  const auto interval = interval_of_storage(cycle.interval, every);
  if (!interval) return;
  cycle.interval = *interval;
  cycle.local = {every, clock_or_never(local.save), clock_or_never(local.write)};
}

}  // namespace

Job::Job(const PlannedCluster& cluster, std::uint32_t which, const JobRequest& request,
         const LifeFactors& factors)
    : index(which), placement(place_gang(cluster, request)), submit(request.submit) {
  const auto* planned = std::get_if<JobPace>(&request.work);
  const JobPace fixed = planned != nullptr ? JobPace{} : pace_of_fixed(request);
  const JobPace& pace = planned != nullptr ? *planned : fixed;
  for (const PoolShare& share : placement.pools) holdings.push_back({0, share.workers});
  outcome.submit = submit;
  steps = pace.steps;
  checkpoint_size = pace.checkpoint_size;
  data_a_step = pace.data_a_step;
  gradients_a_step = pace.gradients_a_step;
  workers = request.workers;
  accelerators_per_worker = std::max(request.worker.gpus, 1);
  synchronous = request.synchronous;
  cycle = {clock_or_never(pace.checkpoint_interval), clock_or_never(pace.checkpoint_save),
           clock_or_never(pace.checkpoint_write)};
  // A copy waits until the one before it is written.
  if (cycle.on()) cycle.interval = std::max(cycle.interval, cycle.write);
  add_local_tier(pace.local, cycle);
  if (cycle.has_tiers()) local = pace.local;
  restart_rules = request.restart;
  keeps_state = reckon::keeps_state(cluster, request);
  regroup = clock_or_never(restart_rules.regroup);
  peer_restore = clock_or_never(pace.peer_restore);
  local_restore = clock_or_never(pace.local.restore);
  image_pull = clock_or_never(cluster.job_start.image_pull.value);
  start_up = clock_or_never(cluster.job_start.framework_start.value) +
             clock_or_never(cluster.job_start.compile.value);
  restore = clock_or_never(pace.checkpoint_restore);

  RECKON_CHECK(!pace.step_by_workers.empty());
  const Seconds step = pace.step_by_workers.back();
  speed = relative_pace(pace, static_cast<std::size_t>(workers), synchronous);
  const Seconds undisturbed = double(pace.steps) * step * (factors.step_time * pace.step_factor);
  const double slow = synchronous ? cluster.failures.straggler_share.value : 0.0;
  const Seconds training = undisturbed / (1 - std::clamp(slow, 0.0, kMostStragglers));
  const ProgramOnNotice& rules = request.on_notice;
  notice = {
      .policy = rules.policy,
      .reaction = rules.reaction,
      .step = rules.between_steps ? step * (factors.step_time * pace.step_factor) : Seconds{0},
      .save = {},
      .writers = pace.checkpoint_writers,
      .writer_spread = rules.writer_spread};
  const Seconds work = training + pace.evaluation;
  // A century is as good as never and leaves the clock room.
  constexpr Seconds kCentury = std::chrono::hours(100 * 365 * 24);
  progress.total = to_clock(std::min(work, kCentury));
  if (work.count() > 0) input_share = pace.input_share * (undisturbed / work);
  if (slow > 0 && work.count() > 0)
    straggler_share = (training - undisturbed) / (work * (1 - std::min(input_share, 1.0)));
}

}  // namespace reckon
