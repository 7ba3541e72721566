#include "sim/scenario/resolve/here.h"

#include <algorithm>
#include <memory>

#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/draft.h"

namespace reckon {

namespace {

/// Processes of a job divide the machine's cores evenly; those of parameter servers wait while
/// workers compute.
void compute_here(Plan& plan, const ProcessorRates& rates) {
  const PlannedStrategy& strategy = plan.only_job().strategy;
  // Where the chief's host has the variables, here a process of its own has them.
  const bool served = strategy.servers.has_value();
  const int processes = strategy.workers + (served ? std::max(1, strategy.server_count()) : 0);
  const int threads = std::max(1, rates.cores / processes);
  const auto worker =
      std::make_shared<const WorkerRates>(rates.of_worker(threads, strategy.workers));
  const ProcessLink& link = served ? rates.message : rates.reduce;
  const Bytes largest = worker->streams.passes.back().bytes;
  for (PlannedPool& pool : plan.pools) {
    if (computes(plan, pool)) pool.measured_rates = worker;
    const double vcpus = std::max(1, pool.machine.vcpus);
    pool.cpu_memory_bandwidth_per_vcpu =
        Fact<BytesPerSecond>{worker->streams.rate(largest) / vcpus};
    if (link.bandwidth.v <= 0) continue;
    pool.machine.network = Fact<BytesPerSecond>{link.bandwidth};
    pool.network_link.efficiency = Fact<double>{1.0};
    pool.network_link.latency = Fact<Seconds>{link.latency};
  }
}

}  // namespace

bool computes_on_processors(const Plan& plan) {
  return std::ranges::none_of(plan.pools,
                              [](const PlannedPool& pool) { return pool.accelerator.has_value(); });
}

void run_here(Plan& plan, const OperationalDefaults& operations, bool ours,
              const ProcessorRates* rates) {
  const Fact<Seconds> nothing{Seconds{0}};
  for (PlannedPool& pool : plan.pools) pool.provisioning = nothing;
  plan.job_start.image_pull = nothing;
  if (!ours || !computes_on_processors(plan)) return;
  plan.job_start.compile = nothing;
  plan.job_start.framework_start = planning::seconds_fact(operations.at(keys::kWorkerStart));
  for (PlannedWorkload& job : plan.jobs)
    job.checkpoint.save_overhead = planning::seconds_fact(operations.at(keys::kWorkerSave));
  if (rates != nullptr) compute_here(plan, *rates);
}

}  // namespace reckon
