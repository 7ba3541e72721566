#include "sim/forecast/explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/plans.h"

using namespace reckon;
using namespace std::chrono_literals;

namespace {

Plan server_plan(int nodes = 2, int accelerators_per_node = 2, int servers = 3) {
  return test::make_round_plan(test::small_mlp(), StrategyKind::parameter_server, nodes,
                               accelerators_per_node, servers);
}
Plan reduce_plan(int nodes = 2) {
  return test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, nodes);
}

Explanation explained(const Plan& plan) { return explain(plan, *make_fluid_network()); }

const Change& change(const Explanation& e, const std::string& begin) {
  const auto found = std::find_if(e.what_would_help.begin(), e.what_would_help.end(),
                                  [&](const Change& c) { return c.what.starts_with(begin); });
  INFO(begin);
  REQUIRE(found != e.what_would_help.end());
  return *found;
}

bool offers(const Explanation& e, const std::string& begin) {
  return std::any_of(e.what_would_help.begin(), e.what_would_help.end(),
                     [&](const Change& c) { return c.what.starts_with(begin); });
}

}  // namespace

TEST_CASE("the phases of a step are its parts, over all batches that an update accumulates") {
  StepEstimate s;
  s.layers = {{LayerId{0}, 4ms, 8ms, false}, {LayerId{1}, 6ms, 12ms, false}};  // 30 ms a batch
  s.compute = 60ms;                                                            // two batches
  s.update = 5ms;
  s.exposed_communication = 15ms;
  s.step = 80ms;
  const auto phases = phases_of(s, PlannedStrategy{});
  REQUIRE(phases.size() == 4);  // nothing waits for input, there is no bubble
  CHECK(phases[0].name == "forward");
  CHECK(phases[0].time.count() == Approx(0.020));  // 2 x 10 ms
  CHECK(phases[0].share == Approx(0.25));
  CHECK(phases[1].time.count() == Approx(0.040));
  CHECK(phases[1].share == Approx(0.5));
  CHECK(phases[2].share == Approx(0.0625));
  CHECK(phases[3].share == Approx(0.1875));
}

TEST_CASE("an asynchronous worker's update happens in its exposed communication") {
  Plan plan = server_plan();
  plan.jobs[0].strategy.servers->synchronous = false;
  const StepEstimate s = estimate_step(plan, plan.jobs[0], *make_fluid_network());
  CHECK(s.update == Seconds{0});
  const auto phases = phases_of(s, plan.jobs[0].strategy);
  REQUIRE(phases.size() == 3);
  CHECK(phases[2].name == "exposed communication");
  CHECK(phases[2].time == s.exposed_communication);
}

TEST_CASE("layer groups hold all time and all parameters") {
  const Plan plan = reduce_plan();
  const Explanation e = explained(plan);
  Seconds time{};
  std::int64_t parameters = 0;
  for (const LayerGroupTime& g : e.layers) {
    time += g.forward + g.backward;
    parameters += g.parameters;
  }
  CHECK(time.count() == Approx(e.step.compute.count()));
  CHECK(parameters == 669'706);  // 784 x 512 + 512 + 512 x 512 + 512 + 512 x 10 + 10
}

TEST_CASE("training at steady state costs the nodes that the strategy uses") {
  Plan plan = server_plan();  // 4 workers on 2 nodes, 3 servers
  CHECK(nodes_used(plan, plan.jobs[0], plan.pools[0]) == 2);
  CHECK(nodes_used(plan, plan.jobs[0], plan.pools[1]) == 3);
  REQUIRE(running_cost_per_hour(plan));
  CHECK(running_cost_per_hour(plan)->v == Approx(18.0));  // (2 + 3) x 3.60
  const Plan five = with_workers(plan, 5);
  CHECK(nodes_used(five, five.jobs[0], five.pools[0]) == 3);  // 2 + 2 + 1
  plan.billing.management = HourlyRate{100'000'000};
  CHECK(running_cost_per_hour(plan)->v == Approx(18.1));
  plan.pools[1].price.known = false;
  CHECK_FALSE(running_cost_per_hour(plan));

  const Explanation e = explained(server_plan());
  // 10,000,000 samples at that throughput, 18 USD an hour
  const double hours = 1e7 / e.step.samples_per_second.v / 3600;
  CHECK(e.now.training.count() == Approx(hours * 3600));
  CHECK(e.now.cost->v == Approx(18 * hours));
}

TEST_CASE("another number of workers keeps the batch of each and the samples of the training") {
  const Plan plan = with_workers(reduce_plan(2), 3);
  const PlannedWorkload& job = plan.jobs.front();
  CHECK(job.strategy.layout.micro_batch == 32);
  CHECK(job.global_batch == 96);
  CHECK(job.total_samples == 1e7);
  CHECK(job.steps == 104'167);  // ceil(10,000,000 / 96)
}

TEST_CASE("more of the bottleneck shortens the step, more of anything never lengthens it") {
  // Gradients of 2.7 MB through a NIC of 1.25 GB/s take longer than an MLP's arithmetic.
  const Explanation e = explained(reduce_plan());
  REQUIRE(e.step.bottleneck == Bottleneck::communication);
  CHECK(change(e, "twice the network").step < e.now.step * 0.8);
  for (const char* more : {"twice the network", "twice the memory", "twice the peak"})
    CHECK(change(e, more).step <= e.now.step);
  CHECK(std::is_sorted(e.what_would_help.begin(), e.what_would_help.end(),
                       [](const Change& a, const Change& b) { return a.training < b.training; }));
}

TEST_CASE("only changes that mean something to the plan are tried") {
  const Explanation servers = explained(server_plan());
  for (const char* what : {"6 parameter servers instead of 3", "1 parameter server instead of 3",
                           "asynchronous instead", "all-reduce instead", "8 workers instead of 4",
                           "2 workers instead of 4", "batch of 64", "batch of 16"})
    CHECK(offers(servers, what));
  CHECK_FALSE(offers(servers, "tree all-reduce"));

  const Explanation single =
      explained(test::make_round_plan(test::small_mlp(), StrategyKind::single));
  CHECK_FALSE(offers(single, "twice the network"));
  CHECK_FALSE(offers(single, "asynchronous"));
  CHECK(offers(single, "2 workers instead of 1, multi_worker_mirrored"));
}

TEST_CASE("every all-reduce that the cluster can run is offered, and no other") {
  Plan plan = reduce_plan(4);
  plan.jobs[0].strategy.all_reduce = AllReduceKind::ring;
  const Explanation plain = explained(plan);
  CHECK(offers(plain, "tree all-reduce instead of ring"));
  CHECK(offers(plain, "hierarchical all-reduce instead of ring"));
  CHECK_FALSE(offers(plain, "in_network all-reduce"));
  CHECK_FALSE(offers(plain, "ring all-reduce"));
  plan.fabric.in_network_reduction = true;
  CHECK(offers(explained(plan), "in_network all-reduce instead of ring"));
}

TEST_CASE("training to an accuracy is offered nothing that no run to it was made with") {
  const auto to_accuracy = [](Plan plan, std::int64_t smallest, std::int64_t largest) {
    PlannedWorkload& job = plan.jobs.front();
    job.convergence = Convergence{.accuracy = 0.9,
                                  .fewest = Samples{1e7},
                                  .critical_batch = 1000,
                                  .smallest_batch = smallest,
                                  .largest_batch = largest};
    change_batch(job, job.global_batch);
    return explained(plan);
  };
  const Plan plan = server_plan();  // 4 workers, 32 samples each
  REQUIRE(plan.jobs.front().global_batch == 128);
  const Explanation wide = to_accuracy(plan, 64, 256);
  for (const char* what : {"8 workers instead of 4", "2 workers instead of 4", "batch of 64",
                           "batch of 16", "all-reduce instead"})
    CHECK(offers(wide, what));
  CHECK_FALSE(offers(wide, "asynchronous"));
  const Explanation narrow = to_accuracy(plan, 65, 255);
  for (const char* what :
       {"8 workers instead of 4", "2 workers instead of 4", "batch of 64", "batch of 16"})
    CHECK_FALSE(offers(narrow, what));
  CHECK(offers(narrow, "twice the network"));
  // What keeps its batch is compared wherever the batch lies.
  CHECK(offers(to_accuracy(plan, 1, 8), "twice the network"));
}

TEST_CASE("a change that does not fit in memory is not offered") {
  Plan plan = reduce_plan();
  const auto fits_at = [&](int batch) {
    plan.jobs.front().strategy.layout.micro_batch = batch;
    plan.jobs.front().global_batch = 2 * batch;
    return estimate_memory(plan, plan.jobs.front()).fits();
  };
  int batch = 32;
  while (fits_at(2 * batch)) batch *= 2;
  REQUIRE(fits_at(batch));
  const Explanation e = explained(plan);
  CHECK_FALSE(offers(e, fmt::format("batch of {} ", 2 * batch)));
  CHECK(offers(e, fmt::format("batch of {} ", batch / 2)));
}

TEST_CASE("one parameter server's NIC bounds the throughput of any number of workers") {
  const Explanation e = explained(server_plan(1, 1, 1));
  REQUIRE(e.crossover);
  const Crossover& c = *e.crossover;
  REQUIRE(c.rows.front().workers == 2);
  REQUIRE(c.rows.back().workers == 64);
  REQUIRE(c.strategies.size() == 4);
  for (const CrossoverRow& row : c.rows) {
    // All workers pull 669,706 x 4 B through 1.25 GB/s before a step's samples are done.
    const double seconds = row.workers * 669'706.0 * 4 / 1.25e9;
    CHECK(row.throughput[1].v <= row.workers * 32 / seconds);
    CHECK(row.throughput[row.best] ==
          *std::max_element(row.throughput.begin(), row.throughput.end()));
  }
  // The more servers, the less each one carries.
  const auto& most = c.rows.back().throughput;
  CHECK(most[1] < most[2]);
  CHECK(most[2] < most[3]);
}

TEST_CASE("the crossover contains the plan's own number of workers and its throughput") {
  const Explanation e = explained(server_plan(3, 1, 2));
  REQUIRE(e.crossover);
  const auto row = std::find_if(e.crossover->rows.begin(), e.crossover->rows.end(),
                                [](const CrossoverRow& r) { return r.workers == 3; });
  REQUIRE(row != e.crossover->rows.end());
  CHECK(e.crossover->strategies[1] == "2 servers");
  CHECK(row->throughput[1].v == Approx(e.step.samples_per_second.v));
}
