#include "sim/forecast/rates.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/forecast/explain/explain.h"
#include "sim/forecast/warnings.h"
#include "sim/step/step.h"

namespace reckon {

RunRates rates_of(const Plan& plan) {
  RECKON_CHECK(prices_known(plan));
  RunRates rates;
  rates.billing = plan.billing;
  for (const PlannedPool& pool : plan.pools) {
    if (pool.fallback_for) continue;  // its nodes come in place of others that were counted
    int used = 0;
    for (const PlannedWorkload& job : plan.jobs) used = std::max(used, nodes_used(plan, job, pool));
    const int nodes = pool.autoscaling ? std::max(used, pool.nodes_min) : pool.nodes_initial;
    if (nodes > 0)
      rates.pools.push_back({pool.name, nodes, pool.price, pool.reservation, pool.minimum_rental});
  }
  Int128 storage = 0;
  for (const PlannedWorkload& job : plan.jobs) {
    if (job.checkpoint.mode == CheckpointSpec::Mode::none) continue;
    const double gigabytes = checkpoint_bytes(job).v / 1e9;
    storage += scaled(plan.storage_per_gb, gigabytes).nano_usd_per_hour;
  }
  rates.storage = scaled({1}, double(storage));
  return rates;
}

std::int64_t tokens_per_sample(const PlannedWorkload& job) {
  return job.model.sample_unit() == SampleUnit::sequence ? job.model.sequence_length() : 0;
}

}  // namespace reckon
