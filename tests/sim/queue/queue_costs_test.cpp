#include "sim/queue/queue_costs.h"

#include <catch2/catch.hpp>

#include "sim/queue/fifo.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

using namespace reckon;

TEST_CASE("a node's rate is what was paid over the years, and its power at the tariff") {
  MachineInline machine;
  machine.purchase = MoneyText{3.6e6, "USD"};
  machine.amortised_over = Seconds{3.6e6};
  machine.power_watts = 5000;
  machine.tariff = MoneyText{1e-4, "USD"};
  PoolSpec pool;
  pool.machine = machine;
  CHECK(node_rates(pool, std::nullopt).usd_per_second.value() == Approx(1 + 0.5));
  CHECK(node_rates(pool, std::nullopt).watts.value() == 5000);
  machine.purchase->currency = "EUR";  // without a rate
  pool.machine = machine;
  CHECK_FALSE(node_rates(pool, std::nullopt).usd_per_second);
  pool.machine = MachineByName{"a2-highgpu-1g"};
  CHECK_FALSE(node_rates(pool, std::nullopt).usd_per_second);
}

TEST_CASE("jobs are charged for what they hold, and all nodes are paid") {
  // Two nodes of 8 at 1.6 USD/s and one of 4 at 1 USD/s; jobs of 16 and 4 GPUs.
  const std::vector<NodeGroup> groups{{2, 8, 0}, {1, 4, 0}};
  const std::vector<NodeRates> rates{{1.6, 800.0}, {1.0, 400.0}};
  const std::vector<JobRequest> jobs{recorded_job(SimTime{}, to_clock(Seconds{100}), 16),
                                     recorded_job(SimTime{}, to_clock(Seconds{50}), 4)};
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const QueueRun run = run_fifo(jobs, groups, 0, 2, options);
  const QueueCharges charges = charges_of(run, holdings, groups, rates);
  CHECK(charges.priced);
  CHECK(charges.powered);
  CHECK(charges.all.usd == Approx(100 * (2 * 1.6 + 1)));
  CHECK(charges.all.joules == Approx(100 * (2 * 800 + 400)));
  CHECK(charges.of_job[0].usd == Approx(100 * 2 * 1.6));
  CHECK(charges.of_job[1].usd == Approx(50 * 1.0));
  CHECK(charges.of_job[1].joules == Approx(50 * 400));
  const std::vector<NodeRates> partly{{1.6, 800.0}, {}};
  CHECK_FALSE(charges_of(run, holdings, groups, partly).priced);
}

TEST_CASE("goodput is what jobs needed over what they held, cost and energy are of all nodes") {
  const std::string text =
      "name: shared\n"
      "start: 2026-12-07T00:00:00Z\n"
      "cluster:\n"
      "  provider: on_premises\n"
      "  scheduler: {policy: kubernetes}\n"
      "  pools: [{name: a, nodes: 2, accelerator: {type: A100-SXM4-80, count: 8}, machine: {vcpu: "
      "8, "
      "memory: 64GiB, network: 10Gbps, purchase: 100000 USD, amortised_over: 4y, power: 5kW, "
      "tariff: 0.2 USD/kWh}}]\n"
      "arrivals:\n"
      "  period: 7d\n"
      "  classes:\n"
      "    - {name: low, jobs_per_hour: 2, gpus: 4, duration: 2h, teams: {a: 1}}\n"
      "    - {name: high, jobs_per_hour: 0.5, gpus: 8, duration: 1h, teams: {b: 1}, priority: "
      "10}\n";
  auto file = parse_scenario(text, "shared.yaml");
  REQUIRE(file);
  const auto question = load_trace(*file);
  REQUIRE(question);
  const TraceResult one = simulate_trace(*question, 3, 1);
  REQUIRE(one.goodput);
  CHECK(*one.goodput < 1);
  CHECK(*one.goodput > 0.5);
  CHECK(*one.preemptions > 0);
  CHECK(*one.fragmentation >= 0);
  CHECK(*one.fragmentation <= 1);
  CHECK(*one.energy_joules == Approx(2 * 5000 * *one.makespan_seconds));
  double teams = 0;
  for (const TeamAnswer& team : one.teams) teams += team.usd.value();
  CHECK(teams == Approx(*one.cost_usd * *one.utilization).epsilon(0.01));
  // Evicted jobs that keep their work hold no more than they need.
  TraceQuestion kept = *question;
  std::get<QueueQuestion>(kept.work).scheduler.kubernetes = KubernetesSpec{
      ScoringStrategy::least_allocated, PreemptionPolicy::preempt_lower_priority, Seconds{0}};
  CHECK(*simulate_trace(kept, 3, 1).goodput == Approx(1));
}
