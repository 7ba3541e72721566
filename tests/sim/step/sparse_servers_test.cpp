#include <numeric>

#include <catch2/catch.hpp>

#include "sim/model/lookup_tables.h"
#include "sim/step/memory/server_memory.h"
#include "sim/step/network/network.h"
#include "sim/step/servers/delayed_updates.h"
#include "sim/step/servers/parameter_server.h"
#include "sim/step/step.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

Plan dlrm(int workers, int servers, double exponent) {
  Plan plan = make_round_plan(zoo_model("dlrm_mlperf").value(), StrategyKind::parameter_server,
                              workers, 1, servers);
  plan.jobs[0].strategy.layout.micro_batch = 2048;
  change_batch(plan.jobs[0], std::int64_t{2048} * workers);
  plan.jobs[0].zipf_exponent = Fact<double>{exponent};
  return plan;
}

std::vector<ServerGroup> groups_of(const Plan& plan, int servers) {
  const PlannedWorkload& job = plan.jobs[0];
  const ComputeTimes times = compute_times(job, processor_of(plan.pools[0], job.precision), 2048);
  return server_groups(job, times, 16, servers, job.strategy.workers);
}

struct Totals {
  double values = 0, ids = 0, updated = 0;
};
Totals totals_of(const std::vector<ServerGroup>& groups) {
  Totals t;
  for (const ServerGroup& g : groups) {
    t.values += g.size.v;
    t.ids += g.ids.size.v;
    t.updated += g.updated->size.v;
  }
  return t;
}

double dense_bytes(const ModelGraph& model) {
  double tables = 0;
  for (const LookupTable& t : lookup_tables(model)) tables += double(t.rows * t.width);
  return 4 * (double(model.trainable_parameters()) - tables);
}

}  // namespace

TEST_CASE("of embedding tables the rows of a worker's batch travel, with their ids") {
  for (const double s : {0.0, 1.05}) {
    const Plan plan = dlrm(4, 2, s);
    const ModelGraph& model = plan.jobs[0].model;
    double rows = 0, of_all = 0;
    for (const LookupTable& t : lookup_tables(model)) {
      rows += DrawnRows(t.rows, s).distinct(2048);
      of_all += DrawnRows(t.rows, s).distinct(4 * 2048);
    }
    const Totals t = totals_of(groups_of(plan, 2));
    CHECK(t.ids == Approx(8 * rows).epsilon(1e-4));
    CHECK(t.values == Approx(dense_bytes(model) + 4 * 128 * rows).epsilon(1e-4));
    CHECK(t.updated == Approx(dense_bytes(model) + 4 * 128 * of_all).epsilon(1e-4));
    CHECK(of_all < 4 * rows);  // some rows are several workers'
  }
}

TEST_CASE("whole tables travel where the scenario says so, skew makes a batch's rows fewer") {
  Plan plan = dlrm(4, 2, 1.05);
  const double sparse = totals_of(groups_of(plan, 2)).values;
  CHECK(sparse < totals_of(groups_of(dlrm(4, 2, 0), 2)).values);
  plan.jobs[0].strategy.servers->sparse_embeddings = false;
  const Totals whole = totals_of(groups_of(plan, 2));
  CHECK(whole.values == Approx(4 * double(plan.jobs[0].model.trainable_parameters())));
  CHECK(whole.ids == 0);
  CHECK(whole.values > 100 * sparse);
}

TEST_CASE("hot rows: neighbours on one server make it the one that a step waits for") {
  Plan plan = dlrm(8, 4, 1.05);
  const auto network = make_fluid_network();
  const auto busiest = [&](RowPartition rule) {
    plan.jobs[0].strategy.servers->rows = rule;
    ParameterServerSetup setup{.servers = 4, .groups = groups_of(plan, 4)};
    return setup.to_busiest_server() / setup.sent();
  };
  CHECK(busiest(RowPartition::mod) == Approx(0.25).epsilon(0.01));
  CHECK(busiest(RowPartition::div) > 0.5);
  const Seconds even = [&] {
    plan.jobs[0].strategy.servers->rows = RowPartition::mod;
    return estimate_step(plan, plan.jobs[0], *network).step;
  }();
  plan.jobs[0].strategy.servers->rows = RowPartition::div;
  CHECK(estimate_step(plan, plan.jobs[0], *network).step > even);
}

TEST_CASE("the ids of rows go to the servers before values come back") {
  // One worker, one server, NICs of 1 GB/s: 4 s of ids, then 1 s of values; then 1 + 4 s back.
  ParameterServerSetup s{.classes = {{.count = 1, .nic = 1.0_GBps}},
                         .servers = 1,
                         .server_nic = 1.0_GBps,
                         .apply_rate = BytesPerSecond{1e15},
                         .groups = {{.size = 1.0_GB, .ids = {4.0_GB, {}}}}};
  const auto network = make_fluid_network();
  for (const bool fold : {true, false}) {
    CHECK(makespan(one_way(s, OneWay::pull, fold), *network).count() == Approx(5));
    CHECK(makespan(one_way(s, OneWay::push, fold), *network).count() == Approx(5));
    CHECK(makespan(synchronous_step(s, fold), *network).count() == Approx(10));
  }
  CHECK(s.sent() == 9.0_GB);
}

TEST_CASE("a worker has its batch's rows in memory, servers have tables and optimizer state") {
  Plan plan = dlrm(4, 2, 1.05);
  PlannedWorkload& job = plan.jobs[0];
  const double parameters = double(job.model.parameters());
  CHECK(estimate_memory(plan, job).parameters.v < 0.05 * 4 * parameters);
  const ServerMemory two = server_memory(plan, job, 2);
  CHECK(two.variables.v == Approx(2 * parameters).epsilon(1e-6));
  CHECK(two.optimizer.v == Approx(2 * parameters).epsilon(1e-6));  // momentum
  CHECK(two.gradients.v == Approx(dense_bytes(job.model) / 2).epsilon(1e-6));
  job.strategy.servers->sparse_embeddings = false;
  CHECK(server_memory(plan, job, 2).gradients.v == Approx(2 * parameters).epsilon(1e-6));
  CHECK(estimate_memory(plan, job).parameters.v == Approx(4 * parameters));
}

TEST_CASE("servers that cannot hold the tables are refused, with the number that would") {
  Plan plan = dlrm(4, 2, 1.05);
  PlannedWorkload& job = plan.jobs[0];
  plan.pools[1].machine.memory = Fact<Bytes>{Bytes{64.0 * 1024 * 1024 * 1024}};
  // 96 GB of tables and as much momentum: 192 GB on 2 servers of 69 GB.
  const auto problem = check_memory(plan, job, Catalog{}, Places{});
  REQUIRE(problem);
  CHECK_THAT(problem->what, Catch::Contains("of memory on the fullest of 2 parameter servers"));
  CHECK_THAT(problem->hint, Catch::Contains("3 servers of round-16 hold it"));
  job.strategy.servers->count = 3;
  CHECK(server_memory(plan, job, 3).fits());
  CHECK_FALSE(check_server_memory(plan, job, Places{}));
  // Whole tables: the largest, 25 GB and as much momentum, fits; on half the memory it does not.
  job.strategy.servers->shards = ServerShards::balanced;
  plan.pools[1].machine.memory = Fact<Bytes>{Bytes{32.0 * 1024 * 1024 * 1024}};
  const auto whole = check_server_memory(plan, job, Places{});
  REQUIRE(whole);
  CHECK_THAT(whole->hint, Catch::Contains("no number of servers"));
  job.strategy.servers->partition = Bytes{1e9};
  const auto cut = check_server_memory(plan, job, Places{});
  REQUIRE(cut);
  CHECK_THAT(cut->hint, Catch::Contains("servers of round-16 hold it"));
}

TEST_CASE("a delay of updates: none for one worker, W - 1 for W alike, less behind a bound") {
  ParameterServerSetup s{
      .classes = {{.count = 1, .nic = 1.25_GBps}},
      .servers = 1,
      .server_nic = 12.5_GBps,
      .apply_rate = BytesPerSecond{1e15},
      .groups = {{.size = Bytes{1e6}, .forward = Seconds{0.1}, .backward = Seconds{0.2}}}};
  const auto network = make_fluid_network();
  CHECK(asynchronous_pace(s, 0, 0.01, *network).delay == 0);
  for (const int workers : {2, 5, 16}) {
    s.classes[0].count = workers;
    CHECK(asynchronous_pace(s, 0, 0.01, *network).delay == Approx(workers - 1).epsilon(0.05));
  }
  // One of two is ten times as slow and may be led by one step: the fast one waits, and while it
  // waits it has not pulled.
  s.classes = {{.count = 8, .nic = 1.25_GBps}};
  const double free = asynchronous_pace(s, 0, 0.3, *network).delay;
  CHECK(asynchronous_pace(s, 1, 0.3, *network).delay < free);
}

TEST_CASE(
    "steps to a target: without a delay the law's, with one (1 + d) times its noiseless part") {
  Plan plan = dlrm(4, 2, 1.05);
  PlannedWorkload& job = plan.jobs[0];
  job.convergence = Convergence{.fewest = Samples{1e6}, .critical_batch = 4096};
  change_batch(job, 8192);
  StepEstimate step;
  step.delay = 3;
  CHECK_FALSE(delayed_length(job, step));  // synchronous
  CHECK(delayed_steps(job, step) == job.steps);
  job.strategy.servers->synchronous = false;
  const auto late = delayed_length(job, step);
  REQUIRE(late);
  // An update has 2048 samples: 1e6 (1 + 4 * 2048 / 4096) = 3e6, without a delay 1.5e6.
  CHECK(late->samples == Approx(3e6));
  CHECK(late->undelayed == Approx(1.5e6));
  CHECK(late->steps_of_delay() == Approx(1.5e6 / 8192));
  // A delay of W - 1 costs what the synchronous batch of all W costs.
  CHECK(late->samples == Approx(job.total_samples));
  step.delay = 0;
  CHECK(delayed_length(job, step)->samples == Approx(delayed_length(job, step)->undelayed));
  // One worker alone: as today.
  job.strategy.workers = 1;
  change_batch(job, 2048);
  CHECK(delayed_steps(job, step) == job.steps);
  job.convergence.reset();
  CHECK_FALSE(delayed_length(job, step));
}
