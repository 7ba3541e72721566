#include <rapidcheck.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "lives.h"

// What holds for every life, whatever the plan.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {

int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }
Seconds seconds_between(int low, int high) { return Seconds{double(between(low, high))}; }
bool one_in(int n) { return between(1, n) == 1; }

ReclaimSpec any_law() {
  switch (between(0, 4)) {
    case 0:
      return NoReclaim{};
    case 1:
      return ExponentialReclaim{seconds_between(500, 20'000)};
    case 2:
      return WeibullReclaim{0.5 + between(0, 20) / 10.0, seconds_between(500, 20'000)};
    case 3:
      return BathtubReclaim{.a = 0.45, .tau1 = 1h, .tau2 = 1h, .b = 24h, .limit = 24h};
    default:
      return TraceReclaim{};
  }
}

void add_fallback(Case& c) {
  PlannedPool other = c.plan.pools[0];
  other.name = "stand-in";
  other.pricing = CapacityType::on_demand;
  other.nodes_initial = other.nodes_min = 0;
  other.fallback_for = 0;
  c.plan.pools[0].patience = seconds_between(10, 600);
  c.plan.pools.push_back(other);
}

/// Any plan: synchronous or not, spot or not, autoscaled or not, everything that can break broken
/// at times.
Case any_case() {
  const int nodes = between(1, 6);
  Case c = round_case(nodes, between(1, 4));
  PlannedPool& pool = c.plan.pools[0];
  pool.nodes_initial += between(0, 2);
  pool.nodes_max = pool.nodes_initial;
  pool.provisioning = Fact<Seconds>{seconds_between(1, 300)};
  if (one_in(2)) {
    pool.provisioning.low = 0.5 * pool.provisioning.value;
    pool.provisioning.high = 3 * pool.provisioning.value;
  }
  if (one_in(2)) autoscale(c, between(0, nodes), 0, nodes + between(0, 2));
  if (one_in(2)) pool.pricing = CapacityType::spot;
  if (one_in(4)) c.plan.service.nodes_of_job = true;
  PlannedStrategy& strategy = c.plan.jobs[0].strategy;
  strategy.servers = ParameterServers{.synchronous = one_in(2)};
  if (one_in(2)) {
    c.plan.pools.push_back(round_pool("servers", Role::parameter_server, between(1, 2), 0));
    strategy.servers->count = between(1, 3);
  }
  c.plan.jobs[0].submit = seconds_between(0, 2000);
  c.plan.job_start.image_pull = Fact<Seconds>{seconds_between(0, 100)};
  c.plan.job_start.framework_start = Fact<Seconds>{seconds_between(0, 30)};

  c.pace.steps = between(1, 10'000);
  for (int live = 1; live <= nodes; ++live)
    c.pace.step_by_workers[std::size_t(live)] = Seconds{double(nodes) / live};
  c.pace.input_share = between(0, 10) / 10.0;
  c.pace.evaluation = seconds_between(0, 100);
  if (one_in(2))
    checkpoints(c, seconds_between(1, 2000), seconds_between(0, 100), seconds_between(0, 50));
  if (one_in(2)) c.pace.checkpoint_write = seconds_between(0, 3000);
  c.pace.checkpoint_writers = nodes;
  PlannedNotice& notice = c.plan.jobs[0].checkpoint.notice;
  notice = {.policy = one_in(3) ? OnNotice::none : OnNotice::save,
            .reaction = Fact<Seconds>{seconds_between(0, 20)},
            .writer_spread = Fact<double>{between(0, 5) / 10.0},
            .between_steps = one_in(2)};
  c.pace.checkpoint_size = 5.0_GB;
  c.plan.storage_per_gb = HourlyRate{30'000};

  c.plan.reclaim.law = any_law();
  c.plan.reclaim.notice = seconds_between(0, 120);
  c.plan.reclaim.trace = {{500s, 501s, 3000s}, {}, {700s}};
  c.plan.reclaim.trace_length = 5000s;
  c.plan.maintenance = {.on = one_in(2),
                        .every = Fact<Seconds>{seconds_between(2000, 50'000)},
                        .notice = seconds_between(0, 3600),
                        .duration = Fact<Seconds>{seconds_between(1, 3000)},
                        .grouped = one_in(3)};
  c.plan.failures = {.on = one_in(2),
                     .mtbf_per_accelerator = Fact<Seconds>{seconds_between(10'000, 100'000)},
                     .repair = Fact<Seconds>{seconds_between(1, 2000)},
                     .hang_share = Fact<double>{between(0, 4) / 4.0},
                     .hang_detection = Fact<Seconds>{seconds_between(0, 3000)}};
  c.plan.retry.counts_disruptions = one_in(3);
  c.plan.billing.management = HourlyRate{100'000'000};
  c.plan.billing.free_if_reclaimed_within = 60s;
  if (c.plan.pools[0].autoscaling && one_in(2)) add_fallback(c);
  c.plan.shortage = {one_in(2), Fact<Seconds>{seconds_between(500, 20'000)},
                     Fact<Seconds>{seconds_between(100, 5000)}};
  c.options.seed = std::uint64_t(between(1, 1'000'000));
  c.options.horizon = one_in(2) ? Seconds{24h * 7} : seconds_between(1, 20'000);
  return c;
}

Int128 sum_of_causes(const LifeResult& life) {
  Int128 sum = life.goodput.n;
  for (const AcceleratorTime& part : life.badput) sum += part.n;
  return sum;
}

}  // namespace

TEST_CASE(
    "goodput and badput add up to the job's accelerator time, the parts of the cost to the bill") {
  CHECK(rc::check([] {
    const Case c = any_case();
    const LifeResult life = c.run();
    const SimDuration time = life.finish.time_since_epoch() - to_clock(c.plan.jobs[0].submit);
    const int accelerators = c.plan.jobs[0].strategy.accelerators();
    RC_ASSERT(life.total == accelerator_time(accelerators, time));
    RC_ASSERT(sum_of_causes(life) == life.total.n);
    RC_ASSERT(life.goodput.n >= 0);
    for (const AcceleratorTime& part : life.badput) RC_ASSERT(part.n >= 0);
    Int128 bill = 0;
    for (const NanoUsd& part : life.cost) {
      RC_ASSERT(part.n >= 0);
      bill += part.n;
    }
    RC_ASSERT(bill == life.bill.n);
    RC_ASSERT(life.finished == life.failure.empty());
  }));
}

TEST_CASE("a finished synchronous life has kept exactly the work that there was to do") {
  int finished = 0;
  CHECK(rc::check([&finished] {
    Case c = any_case();
    c.plan.jobs[0].strategy.servers->synchronous = true;
    const LifeResult life = c.run();
    finished += life.finished;
    const SimDuration work =
        to_clock(double(c.pace.steps) * c.pace.step_by_workers.back() + c.pace.evaluation);
    const AcceleratorTime all = accelerator_time(c.plan.jobs[0].strategy.accelerators(), work);
    const AcceleratorTime kept = life.goodput + life.badput[std::size_t(Badput::data_loading)];
    const bool right = life.finished ? kept == all : kept.n < all.n;
    RC_ASSERT(right);
    RC_ASSERT(life.finished == (life.steps_done == c.pace.steps));
  }));
  CHECK(finished >= 30);
}

TEST_CASE("the recorded life is the same life, and its spans leave no gap") {
  CHECK(rc::check([] {
    Case c = any_case();
    const LifeResult life = c.run();
    c.options.record = true;
    const LifeResult recorded = c.run();
    RC_ASSERT(recorded.digest == life.digest);
    RC_ASSERT(recorded.finish == life.finish);
    RC_ASSERT(recorded.bill == life.bill);
    SimTime at{to_clock(c.plan.jobs[0].submit)};
    // Of an asynchronous job with no worker left no span says anything.
    const bool whole = c.plan.jobs[0].strategy.servers->synchronous;
    for (const Span& span : recorded.timeline.spans) {
      if (span.pool >= 0) continue;
      if (whole) RC_ASSERT(span.begin == at);
      RC_ASSERT(span.begin < span.end);
      at = span.end;
    }
    if (whole) RC_ASSERT(at == life.finish);
  }));
}

TEST_CASE(
    "all prices doubled double every part of the bill but for rounding, and change no event") {
  CHECK(rc::check([] {
    Case c = any_case();
    const LifeResult life = c.run();
    for (PlannedPool& pool : c.plan.pools) {
      pool.price.machine.nano_usd_per_hour *= 2;
      pool.price.accelerators.nano_usd_per_hour *= 2;
    }
    c.plan.billing.management.nano_usd_per_hour *= 2;
    c.plan.storage_per_gb.nano_usd_per_hour *= 2;
    const LifeResult dear = c.run();
    RC_ASSERT(dear.digest == life.digest);
    // Half a nano-dollar of rounding for each of the few charges of a lease.
    for (std::size_t k = 0; k < kCostParts; ++k) {
      const Int128 difference = dear.cost[k].n - 2 * life.cost[k].n;
      const Int128 rounding = 4 * Int128(life.events) + 8;
      RC_ASSERT(difference <= rounding);
      RC_ASSERT(difference >= -rounding);
    }
  }));
}
