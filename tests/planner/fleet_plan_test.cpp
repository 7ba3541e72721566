#include <catch2/catch.hpp>
#include <cmath>

#include "planner/fleet/fleet.h"
#include "planner/small_spaces.h"
#include "support/skip.h"

// Fleets from the question to the replay: reserved nodes, and choices that the replay takes back.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr int kFleetHour = 3600;
constexpr double kHeldUsdHour = 0.02;
constexpr int kPeriodHours = 96;

/// Two jobs on one kind of node, of which one is reserved for next to nothing.
std::string two_jobs(double submit, const std::string& limits,
                     const std::string& pricing = "on_demand, reserved") {
  const std::string workload =
      "{model: resnet50, dataset: {samples: 300k, bytes_per_sample: 110kB}, train: {epochs: 10}, "
      "precision: fp16, batch_per_accelerator: 32, strategy: {kind: single}}";
  return fmt::format(
      "name: fleet\n"
      "jobs:\n"
      "  - {{name: first, workload: {0}}}\n"
      "  - {{name: second, submit: {1:.0f}s, workload: {0}}}\n"
      "cluster:\n"
      "  provider: gcp\n"
      "  region: us-central1\n"
      "  pools: [{{name: workers, machine: n1-standard-16, accelerator: {{type: T4, count: 1}}, "
      "nodes: 1}}]\n"
      "prices: {{reserved: [{{machine: n1-standard-16, count: 1, price: {2} USD/h}}]}}\n"
      "forecast: {{replications: 100, seed: 2}}\n"
      "plan:\n"
      "  vary: {{accelerator: [T4], machine: [n1-standard-16], nodes: 1, pricing: [{3}]}}\n"
      "  period: {4}h\n{5}",
      workload, submit, kHeldUsdHour, pricing, kPeriodHours, limits);
}

planner::FleetAnswer fleet_of(const std::string& text) {
  if (const std::string none = planner::why_no_solver(); !none.empty()) skip_test(none);
  planner::Base base;
  base.text = text;
  base.name = "fleet.yaml";
  planner::FleetOptions how;
  how.threads = 1;
  auto answer = planner::plan_fleet(base, shipped_catalog(), *make_fluid_network(), how);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}

const planner::FleetPool& pool_of_job(const planner::FleetAnswer& a, std::size_t job) {
  const auto& option = a.fleet.options[a.fleet.jobs[job].kind][a.choice->runs[job].option];
  return a.fleet.pools[option.pool];
}

}  // namespace

TEST_CASE("a reserved node is paid for the period, used or not, and the file of its pool says so") {
  const planner::FleetAnswer a = fleet_of(two_jobs(30 * kFleetHour, ""));
  REQUIRE(a.choice);
  REQUIRE(a.replay);
  REQUIRE(a.replay->pools.size() == 1);
  const planner::ReplayedPool& pool = a.replay->pools.front();
  CHECK(pool_of_job(a, 0).held);
  CHECK(pool_of_job(a, 1).held);
  CHECK(a.choice->held[pool.pool] == 1);
  CHECK(pool.text.find("nodes: {initial: 1, min: 1, max: 1}") != std::string::npos);
  CHECK(pool.text.find("pricing: reserved") != std::string::npos);
  // What simulate bills until the last end, and what is left of the period, are all of it; a node
  // that comes takes minutes, and the cluster has its fee.
  const auto& parts = pool.forecast.cost_breakdown_usd;
  double nodes = pool.held_usd;
  for (const CostPart part : {CostPart::accelerators, CostPart::machines, CostPart::idle})
    nodes += parts[std::size_t(part)];
  CHECK(nodes == Approx(kHeldUsdHour * kPeriodHours).epsilon(0.01));
  CHECK(a.replay->usd.mean == Approx(pool.forecast.cost_usd->mean + pool.held_usd));
  CHECK(a.solved_again == 0);
  const auto file = parse_scenario(pool.text, "pool.yaml");
  REQUIRE(file);
  const auto plan = make_plan(*file, shipped_catalog());
  REQUIRE(plan);
  const Forecast again = make_forecast(*plan, *make_fluid_network());
  CHECK(again.costs_usd == pool.forecast.costs_usd);
  CHECK(planner::fleet_file(a, 0, "0.1.0").find("nodes are held") != std::string::npos);
}

TEST_CASE("nodes on demand have no share in a reservation that the program holds or leaves") {
  const planner::FleetAnswer a = fleet_of(two_jobs(0, "", "on_demand"));
  REQUIRE(a.replay);
  for (const planner::ReplayedPool& pool : a.replay->pools)
    for (const auto& [name, hours] : pool.forecast.node_hours)
      CHECK(pool.forecast.cost_usd->mean > 10 * kHeldUsdHour * hours);
}

TEST_CASE("a choice whose replay misses a deadline is taken back, and the next one holds") {
  // The second job is submitted in the first slot that the first leaves free in the mean: on the
  // reserved node it is late where the first is. How long each takes by itself:
  const planner::FleetAnswer loose = fleet_of(two_jobs(30 * kFleetHour, "  deadline: 90h@95%\n"));
  const double slot = kPeriodHours * kFleetHour / 96.0;
  double mean = 0, held_to = 0;
  for (const planner::FleetOption& o : loose.fleet.options[1]) {
    mean = std::max(mean, o.seconds);
    held_to = std::max(held_to, o.held_to);
  }
  const double submit = slot * std::ceil(mean / slot);
  const std::string deadlines =
      fmt::format("  deadlines: {{second: {:.0f}s@95%}}\n", 1.03 * held_to);
  const planner::FleetAnswer a = fleet_of(two_jobs(submit, deadlines));
  REQUIRE(a.choice);
  REQUIRE(a.replay);
  INFO(fmt::format("mean {} h, 95 % {} h", mean / kFleetHour, held_to / kFleetHour));
  CHECK(a.solved_again == 1);
  CHECK(a.replay->meets_all());
  CHECK(pool_of_job(a, 0).held);
  CHECK_FALSE(pool_of_job(a, 1).held);
  // Where there is no other node the first choice stands and does not hold.
  const planner::FleetAnswer none = fleet_of(two_jobs(submit, deadlines, "reserved"));
  REQUIRE(none.replay);
  CHECK_FALSE(none.replay->meets_all());
  CHECK(none.solved_again >= 1);
}
