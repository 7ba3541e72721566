#include "sim/cluster/job.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/cluster/never.h"

namespace reckon {

SimDuration retry_delay(const RetryRules& rules, int failures) {
  SimDuration delay = clock_or_never(rules.base);
  const SimDuration cap = clock_or_never(rules.cap);
  for (int k = 1; k < failures && delay < cap; ++k) delay *= 2;
  return std::min(delay, cap);
}

Job::Job(const Plan& plan, std::uint32_t which, const JobPace& pace, const LifeFactors& factors)
    : index(which),
      planned_pace(&pace),
      placement(place_gang(plan, plan.jobs[which])),
      submit(to_clock(plan.jobs[which].submit)) {
  const PlannedWorkload& planned = plan.jobs[which];
  for (const PoolShare& share : placement.pools) holdings.push_back({0, share.workers});
  outcome.submit = submit;
  workers = planned.strategy.workers;
  accelerators_per_worker = std::max(planned.strategy.accelerators_per_worker, 1);
  synchronous = planned.strategy.synchronous;
  cycle = {clock_or_never(pace.checkpoint_interval), clock_or_never(pace.checkpoint_save),
           clock_or_never(pace.checkpoint_write)};
  // A copy waits until the one before it is written.
  if (cycle.on()) cycle.interval = std::max(cycle.interval, cycle.write);
  image_pull = clock_or_never(plan.job_start.image_pull.value);
  start_up = clock_or_never(plan.job_start.framework_start.value) +
             clock_or_never(plan.job_start.compile.value);
  restore = clock_or_never(pace.checkpoint_restore);

  RECKON_CHECK(!pace.step_by_workers.empty());
  const Seconds step = pace.step_by_workers.back();
  const auto all = static_cast<std::size_t>(workers);
  speed.assign(all + 1, 0.0);
  speed[all] = 1;
  for (std::size_t live = 1; !synchronous && live < all; ++live) {
    RECKON_CHECK(live < pace.step_by_workers.size() && pace.step_by_workers[live].count() > 0);
    speed[live] = step / pace.step_by_workers[live];
  }
  const Seconds training = double(pace.steps) * step * (factors.step_time * pace.step_factor);
  const PlannedNotice& rules = planned.checkpoint.notice;
  notice = {
      .policy = rules.policy,
      .reaction = rules.reaction.value,
      .step = rules.between_steps ? step * (factors.step_time * pace.step_factor) : Seconds{0},
      .save = {},
      .writers = pace.checkpoint_writers,
      .writer_spread = rules.writer_spread.value};
  const Seconds work = training + pace.evaluation;
  // A century is as good as never and leaves the clock room.
  constexpr Seconds kCentury = std::chrono::hours(100 * 365 * 24);
  progress.total = to_clock(std::min(work, kCentury));
  if (work.count() > 0) input_share = pace.input_share * (training / work);
}

}  // namespace reckon
