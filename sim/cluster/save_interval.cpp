#include "sim/cluster/save_interval.h"

#include <cmath>

#include "sim/cluster/life/life.h"

namespace reckon {
namespace {

Seconds optimal_for(const Plan& plan, const PlannedWorkload& job, Seconds save) {
  const Seconds best = optimal_checkpoint_interval(save, mean_time_to_interruption(plan, job));
  return best > Seconds{0} ? best : Seconds::max();  // nothing will interrupt it
}

}  // namespace

Seconds planned_save_interval(const Plan& plan, const PlannedWorkload& job) {
  const PlannedCheckpoint& checkpoint = job.checkpoint;
  if (checkpoint.mode == CheckpointSpec::Mode::none) return Seconds::max();
  if (checkpoint.mode == CheckpointSpec::Mode::interval || checkpoint.interval > Seconds{0})
    return checkpoint.interval;
  return optimal_for(plan, job, checkpoint.save_overhead.value);
}

std::optional<Seconds> amended_save_interval(const Plan& plan, const PlannedWorkload& job,
                                             Seconds now, Seconds measured) {
  constexpr double kWorthIt = 0.1;  // change of the interval, a share
  if (job.checkpoint.mode != CheckpointSpec::Mode::optimal) return std::nullopt;
  const Seconds best = optimal_for(plan, job, measured);
  if (std::abs(best / now - 1) <= kWorthIt) return std::nullopt;
  return best;
}

std::optional<SimDuration> interval_of_storage(SimDuration interval, SimDuration every) {
  if (every >= interval) return std::nullopt;
  return std::llround(double(interval.count()) / double(every.count())) * every;
}

}  // namespace reckon
