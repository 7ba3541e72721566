#include "sim/scenario/resolve/here.h"

#include <catch2/catch.hpp>

#include "sim/catalog/operations_keys.h"
#include "support/plans.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

Plan on(bool accelerators) {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
  for (PlannedPool& pool : plan.pools) {
    if (!accelerators) pool.accelerator.reset();
    pool.provisioning = Fact<Seconds>{Seconds{300}};
  }
  plan.job_start = {Fact<Seconds>{Seconds{70}}, Fact<Seconds>{Seconds{40}},
                    Fact<Seconds>{Seconds{5}}};
  return plan;
}
const OperationalDefaults& operations() { return test::shipped_catalog().operations; }

}  // namespace

TEST_CASE("our worker on this machine's processors waits for no node, image or compiler") {
  Plan plan = on(false);
  run_here(plan, operations(), true, nullptr);
  CHECK(plan.pools.front().provisioning.value.count() == 0);
  CHECK(plan.job_start.image_pull.value.count() == 0);
  CHECK(plan.job_start.compile.value.count() == 0);
  const Fact<double>& start = operations().at(keys::kWorkerStart);
  CHECK(plan.job_start.framework_start.value.count() == start.value);
  CHECK(plan.job_start.framework_start.high.count() == start.high);
  CHECK(plan.jobs.front().checkpoint.save_overhead.value.count() ==
        operations().at(keys::kWorkerSave).value);
}

TEST_CASE("another program, and one with accelerators, starts here as it does anywhere") {
  for (const bool ours : {true, false}) {
    Plan plan = on(ours);
    const Fact<Seconds> save = plan.jobs.front().checkpoint.save_overhead;
    run_here(plan, operations(), ours, nullptr);
    CHECK(plan.pools.front().provisioning.value.count() == 0);
    CHECK(plan.job_start.image_pull.value.count() == 0);
    CHECK(plan.job_start.framework_start.value.count() == 40);
    CHECK(plan.jobs.front().checkpoint.save_overhead.value == save.value);
  }
}

TEST_CASE("workers on a machine that was probed share its cores and its links") {
  ProcessorRates rates;
  rates.cores = 2;
  rates.together = {{8}, {Seconds{1e-6}}};
  rates.apart = {{8}, {Seconds{3e-6}}};
  rates.streams = {{{Bytes{1e6}, Seconds{1e-4}}}};
  rates.streams_apart = {{{Bytes{1e6}, Seconds{2e-4}}}};
  rates.reduce = {Seconds{1e-4}, BytesPerSecond{2e9}};
  Plan plan = on(false);
  run_here(plan, operations(), true, &rates);
  const PlannedPool& pool = plan.pools.front();
  REQUIRE(pool.measured_rates);
  CHECK(pool.measured_rates->threads == 1);
  CHECK(pool.measured_rates->products.time(8, 8, 8).count() == Approx(3e-6));
  CHECK(pool.machine.network.value.v == 2e9);
  CHECK(pool.network_link.latency.value.count() == 1e-4);
}
