#include "sim/calibration/predict.h"

#include <algorithm>

#include "sim/step/step.h"

namespace reckon {
namespace {

Predicted predict(const RunConfiguration& run, const Catalog& catalog,
                  const NetworkModel& network) {
  const auto plan = plan_of_run(run, catalog);
  if (!plan) return tl::unexpected(plan.error());
  const PlannedWorkload& job = plan->jobs.front();
  const Efficiency& efficiency = plan->pool_with(Role::worker)->efficiency;
  Prediction p;
  p.rate = estimate_step(*plan, job, network).samples_per_second;
  // step_spread is a factor on the step's time.
  p.low = p.rate / efficiency.step_spread.high;
  p.high = p.rate / efficiency.step_spread.low;
  p.stack_known = !efficiency.stack.empty() && !efficiency.stack.starts_with('*');
  p.fits = estimate_memory(*plan, job).fits();
  return p;
}

}  // namespace

Predictor::Predictor(const Catalog& catalog) : catalog_(catalog), network_(make_fluid_network()) {}
Predictor::~Predictor() = default;

const Predicted& Predictor::operator()(const RunConfiguration& run) {
  const auto at = known_.find(run);
  if (at != known_.end()) return at->second;
  return known_.emplace(run, predict(run, catalog_, *network_)).first->second;
}

}  // namespace reckon
