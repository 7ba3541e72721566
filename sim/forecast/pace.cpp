#include "sim/forecast/pace.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/scenario/restart.h"
#include "sim/step/element_sizes.h"
#include "sim/step/servers/delayed_updates.h"
#include "sim/step/step_model.h"

namespace reckon {
namespace {

constexpr int kSolvedOneByOne = 16;
constexpr double kSolvedStride = 1.15;  // factor

/// The next larger number of live workers whose step is solved: every one of few, then strides of
/// 15 %.
int next_solved(int live, int workers) {
  if (live < kSolvedOneByOne) return std::min(live + 1, workers);
  return std::min(workers, int(std::ceil(live * kSolvedStride)));
}

/// Wall time of a step's worth of samples with so many workers; 0: the job cannot be so small.
Seconds step_of_smaller(const Plan& plan, const NetworkModel& network, int workers) {
  Plan changed = plan;
  changed.only_job() = with_fewer_workers(plan.only_job(), workers);
  const PlannedWorkload& job = changed.only_job();
  if (!estimate_memory(changed, job).fits()) return Seconds{0};
  const Seconds step = estimate_step(changed, job, network).step;
  if (job.restart->batch == ElasticBatch::fixed) return step;
  return step * (double(plan.only_job().global_batch) / double(job.global_batch));
}

/// Of an elastic job: as many workers as whole copies have, from its fewest on. Of many sizes some
/// are solved; between two the rate is interpolated.
void add_smaller_sizes(const Plan& plan, const NetworkModel& network, std::vector<Seconds>& steps) {
  const PlannedWorkload& job = plan.only_job();
  const int each = workers_of_a_copy(job);
  const int most = job.strategy.workers / each;
  const int least = std::max(1, (job.restart->min_workers + each - 1) / each);
  const auto at = [&](int copies) -> Seconds& {
    return steps[std::size_t(copies) * std::size_t(each)];
  };
  for (int solved = 0, next = least; next < most || solved < most;) {
    // Who were faster with fewer workers would have been planned so: it is a limit of the model.
    if (next < most)
      if (const Seconds step = step_of_smaller(plan, network, next * each); step.count() > 0)
        at(next) = std::max(step, steps.back());
    for (int n = solved + 1; solved > 0 && n < next; ++n) {
      if (at(solved).count() <= 0 || at(next).count() <= 0) continue;
      const double way = double(n - solved) / (next - solved);
      at(n) = Seconds{1 / ((1 - way) / at(solved).count() + way / at(next).count())};
    }
    solved = next;
    next = next_solved(next, most);
  }
}

/// Asynchronous workers go on when one is gone, so the pace depends on how many live: the wall time
/// in which all of them together work off one global batch. Their common rate is concave in their
/// number (it grows until the servers' NICs are full), so between two solved numbers it is
/// interpolated. Synchronous strategies have all workers or none.
std::vector<Seconds> step_by_workers(const PlannedWorkload& job, StepCache& cache) {
  const int workers = job.strategy.workers;
  std::vector<Seconds> by_workers(std::size_t(workers) + 1);
  by_workers.back() = cache.at(workers).step;
  if (job.strategy.synchronous()) return by_workers;
  const Samples batch{double(job.global_batch)};
  const auto rate = [&](int live) { return cache.at(live).samples_per_second; };
  by_workers[1] = batch / rate(1);
  for (int solved = 1; solved < workers;) {
    const int next = next_solved(solved, workers);
    for (int live = solved + 1; live <= next; ++live) {
      const double way = double(live - solved) / (next - solved);
      by_workers[std::size_t(live)] = batch / (rate(solved) * (1 - way) + rate(next) * way);
    }
    solved = next;
  }
  return by_workers;
}

Seconds checkpoint_interval(const Plan& plan, const PlannedWorkload& job, Seconds save) {
  switch (job.checkpoint.mode) {
    case CheckpointSpec::Mode::none:
      return Seconds{0};
    case CheckpointSpec::Mode::interval:
      return job.checkpoint.interval;
    case CheckpointSpec::Mode::optimal:
      break;
  }
  const Seconds mtti = mean_time_to_interruption(plan, job);
  if (mtti >= Seconds::max())
    return Seconds{0};  // nothing ever interrupts the job: a save would only cost time
  return optimal_checkpoint_interval(save, mtti);
}

double ratio(Seconds changed, Seconds median) {
  return median.count() > 0 ? changed.count() / median.count() : 1.0;
}

PaceFactors factors_of(const Plan& plan, const StepEstimate& step, const PacedJob& median) {
  const PlannedWorkload& job = plan.only_job();
  PaceFactors f;
  f.step = ratio(step.step, median.step.step);
  f.evaluation = ratio(evaluation_time(plan, job, step) * job.evaluations,
                       evaluation_time(plan, job, median.step) * job.evaluations);
  // Of both parts of an asynchronous save: the step beside it is the median's.
  const SaveTimes save = save_times(plan, job, median.step);
  f.save =
      ratio(save.stall + save.write, median.pace.checkpoint_save + median.pace.checkpoint_write);
  f.restore = ratio(checkpoint_restore_time(plan, job), median.pace.checkpoint_restore);
  return f;
}

/// Of a step, over the borders of the zones, where the workers' nodes lie zone by zone: a ring over
/// them crosses as many borders as there are zones, and on each of its links moves twice all
/// gradients less one node's part [Patarasuk and Yuan 2009]; parameters sharded too, half as much
/// again [Rajbhandari et al. 2020, section 7]. Of a model that is cut over accelerators every part
/// has a ring of its own, all together as much. Parameter servers: what a worker sends and gets, of
/// those that are in another zone.
Bytes gradients_between_zones(const Plan& plan, const PlannedWorkload& job) {
  const Layout layout = layout_of(job);
  const double zones = plan.egress.zones;
  const Bytes gradients = double(job.model.trainable_parameters()) * element_sizes(job).gradient;
  if (job.strategy.servers) return 2.0 * job.strategy.workers * (1 - 1 / zones) * gradients;
  const double ranks = layout.data;
  const double passes = layout.zero_stage >= 3 ? 3 : 2;
  return std::min(zones, ranks) * passes * (ranks - 1) / std::max(1.0, ranks) * gradients;
}

}  // namespace

LocalTierPace local_pace(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step) {
  if (!job.checkpoint.local) return {};
  const LocalSaveTimes times = local_save_times(plan, job, step);
  return {.every = job.checkpoint.local->every,
          .save = times.stall,
          .write = times.write,
          .restore = times.restore,
          .outlives_node = job.checkpoint.local->replicas > 1};
}

PacedJob make_pace(const Plan& plan, const NetworkModel& network) {
  RECKON_CHECK(plan.jobs.size() == 1);
  const PlannedWorkload& job = plan.only_job();
  StepCache cache(plan, job, network);
  PacedJob result;
  result.step = cache.at(job.strategy.workers);
  JobPace& pace = result.pace;
  const double longer = samples_factor_of(delayed_length(job, result.step));
  pace.steps = delayed_steps(job, result.step);
  pace.step_by_workers = step_by_workers(job, cache);
  pace.input_share = ratio(result.step.exposed_input, result.step.step);
  pace.evaluation = evaluation_time(plan, job, result.step) * (job.evaluations * longer);
  const SaveTimes save = save_times(plan, job, result.step);
  pace.checkpoint_save = save.stall;
  pace.checkpoint_write = save.write;
  pace.checkpoint_writers = checkpoint_writers(plan, job);
  pace.checkpoint_restore = checkpoint_restore_time(plan, job);
  pace.checkpoint_interval = checkpoint_interval(plan, job, pace.checkpoint_save);
  pace.checkpoint_size = checkpoint_bytes(job);
  pace.data_a_step = double(job.global_batch) * job.dataset.bytes_per_sample.value;
  if (plan.egress.zones > 1) pace.gradients_a_step = gradients_between_zones(plan, job);
  if (job.restart && job.restart->kind != RestartKind::full)
    pace.peer_restore = peer_restore_time(plan, job);
  if (job.restart && job.restart->kind == RestartKind::elastic)
    add_smaller_sizes(plan, network, pace.step_by_workers);
  pace.local = local_pace(plan, job, result.step);
  return result;
}

std::vector<Sensitivity> sensitivities(Plan& scratch,
                                       const std::vector<PlanAssumption>& assumptions,
                                       const PacedJob& median, const NetworkModel& network) {
  std::vector<Sensitivity> result(assumptions.size());
  const PlannedWorkload& job = scratch.only_job();
  std::optional<ModelFold> fold;  // no assumption changes the model
  if (!job.strategy.servers) fold.emplace(job.model);
  for (std::size_t i = 0; i < assumptions.size(); ++i) {
    const PlanAssumption& a = assumptions[i];
    if (!a.affects_step) continue;
    const auto at = [&](double value, PaceFactors& factors, StepParts& parts) {
      a.set(scratch, value);
      const StepEstimate step =
          fold ? estimate_step(scratch, job, *fold, network) : estimate_step(scratch, job, network);
      factors = factors_of(scratch, step, median);
      parts = parts_of(step);
    };
    at(a.low, result[i].low, result[i].low_step);
    at(a.high, result[i].high, result[i].high_step);
    a.set(scratch, a.value);
  }
  return result;
}

}  // namespace reckon
