#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "planner/small_spaces.h"

// Zones, bounds of the pool, spare nodes, machines and numbers of parameter servers, and the limits
// on memory and nodes.
using namespace reckon;
using namespace reckon::test;

namespace {

std::string pools_text_of(const std::string& plan, const std::string& strategy = "{kind: single}") {
  return "name: pools\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 2}\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: " +
         strategy +
         "\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, "
         "nodes: 2}]\n"
         "forecast: {replications: 12, seed: 3}\n"
         "plan:\n" +
         plan;
}

Expected<planner::Answer> try_answer(const std::string& text) {
  planner::Base base;
  base.text = text;
  base.name = "pools.yaml";
  const auto question = planner::make_question(std::move(base), shipped_catalog());
  if (!question) return tl::unexpected(question.error());
  planner::PlannerOptions options;
  options.keep = 100;
  options.threads = 1;
  options.exact_up_to = 1000;
  options.prune = false;
  const auto network = make_fluid_network();
  return planner::plan(*question, shipped_catalog(), *network, options);
}
planner::Answer answer_to(const std::string& text) {
  auto answer = try_answer(text);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}

/// What the simulation makes of the scenario with a plan's overrides, by itself.
Forecast simulated(const std::string& text, const planner::RankedPlan& plan) {
  auto file = parse_scenario(text, "pools.yaml", planner::texts(plan.result.changes));
  if (!file) throw std::runtime_error(format(file.error()));
  auto made = make_plan(*file, shipped_catalog());
  if (!made) throw std::runtime_error(format(made.error()));
  ForecastOptions how;
  how.assumption_effects = false;
  return make_forecast(*made, *make_fluid_network(), how);
}

void check_reproduced(const std::string& text, const planner::Answer& answer) {
  for (const planner::RankedPlan& p : answer.plans) {
    INFO(fmt::format("{}", fmt::join(planner::texts(p.result.changes), "; ")));
    const Forecast again = simulated(text, p);
    CHECK(again.times_seconds == p.result.forecast.times_seconds);
    CHECK(again.costs_usd == p.result.forecast.costs_usd);
  }
}

}  // namespace

TEST_CASE("a free zone is one of those that offer the accelerator, and the simulation has it") {
  const std::string text = pools_text_of(
      "  vary: {accelerator: [T4], machine: [n1-standard-16], zone: any, nodes: 1..2}\n");
  const planner::Answer answer = answer_to(text);
  REQUIRE_FALSE(answer.plans.empty());
  std::set<std::string> offered;
  for (const Location* l : shipped_catalog().locations_of(Provider{"gcp"}, "T4"))
    if (l->region == "us-central1") offered.insert(l->zones.begin(), l->zones.end());
  REQUIRE_FALSE(offered.empty());
  for (const planner::RankedPlan& p : answer.plans) CHECK(offered.contains(p.offer.zone));
  check_reproduced(text, answer);

  const planner::Answer one = answer_to(pools_text_of(
      "  vary: {accelerator: [T4], machine: [n1-standard-16], zone: [us-central1-b], nodes: 1}\n"));
  REQUIRE_FALSE(one.plans.empty());
  for (const planner::RankedPlan& p : one.plans) CHECK(p.offer.zone == "us-central1-b");
}

TEST_CASE("a zone that no region has is a mistake") {
  const auto wrong =
      try_answer(pools_text_of("  vary: {accelerator: [T4], zone: [us-central1-q]}\n"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().what.starts_with("unknown zone 'us-central1-q'"));
}

TEST_CASE(
    "bounds of a pool: one that grows from nothing, one that is fixed, one with spare nodes") {
  const std::string text = pools_text_of(
      "  vary: {nodes: 2, autoscaling: [fixed, 0..100%, 150%, 100%..200%, 100%], pricing: "
      "[spot]}\n",
      "{kind: multi_worker_mirrored}");
  const planner::Answer answer = answer_to(text);
  CHECK(answer.plans.size() == 4);  // 100% is fixed, and is one plan with it
  std::set<std::string> bought;
  for (const planner::RankedPlan& p : answer.plans) {
    bought.insert(planner::bought_text(p.offer, p.split.nodes));
    CHECK(p.split.nodes == 2);
  }
  CHECK(bought == std::set<std::string>{"spot", "spot, in a pool of 0..2", "spot, 1 of them spare",
                                        "spot, in a pool of 2..4"});
  check_reproduced(text, answer);
}

TEST_CASE("a pool of one's own that is autoscaled may have its nodes varied") {
  std::string text = pools_text_of("  vary: {nodes: 1..2}\n");
  const std::string fixed = "nodes: 2}]";
  text.replace(text.find(fixed), fixed.size(),
               "nodes: {initial: 2, min: 0, max: 4}, autoscaling: true}]");
  const planner::Answer answer = answer_to(text);
  CHECK(answer.plans.size() == 2);
  check_reproduced(text, answer);
}

TEST_CASE("parameter servers vary in number and machine, and each is paid") {
  const std::string text = pools_text_of(
      "  vary: {nodes: 2, strategy: [parameter_server], parameter_servers: 1..2, "
      "parameter_server_machine: [n1-highmem-8, n1-standard-16]}\n");
  const planner::Answer answer = answer_to(text);
  CHECK(answer.plans.size() == 4);
  std::set<std::pair<std::string, int>> seen;
  std::set<double> costs;
  for (const planner::RankedPlan& p : answer.plans) {
    seen.emplace(p.hardware.server_machine, p.split.parameter_servers);
    costs.insert(p.result.forecast.cost_usd->mean);
    CHECK(p.result.forecast.node_hours.size() == 2);
  }
  CHECK(seen.size() == 4);
  CHECK(costs.size() == 4);
  check_reproduced(text, answer);
}

TEST_CASE("servers in a pool without a written role vary in number too") {
  std::string text =
      pools_text_of("  vary: {nodes: 2, parameter_servers: 1..3}\n", "{kind: parameter_server}");
  const std::string pools = "nodes: 2}]";
  text.replace(text.find(pools), pools.size(),
               "nodes: 2}, {name: servers, machine: n1-highmem-8, nodes: 2}]");
  const planner::Answer answer = answer_to(text);
  CHECK(answer.plans.size() == 3);
  std::set<double> costs;
  for (const planner::RankedPlan& p : answer.plans) costs.insert(p.result.forecast.cost_usd->mean);
  CHECK(costs.size() == 3);
  check_reproduced(text, answer);
}

TEST_CASE("numbers of parameter servers without a machine for them are a mistake") {
  const auto wrong = try_answer(
      pools_text_of("  vary: {nodes: 2, strategy: [parameter_server], parameter_servers: 1..2}\n"));
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().what ==
        "the parameter servers have no machine: the cluster has no pool for them");
}

TEST_CASE(
    "limits on nodes and memory keep plans away, and say how far they would have to give way") {
  const std::string vary =
      "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 3..4, strategy: any}\n";
  const planner::Answer few = answer_to(pools_text_of(vary + "  max_nodes: 3\n"));
  REQUIRE_FALSE(few.plans.empty());
  for (const planner::RankedPlan& p : few.plans) CHECK(p.split.nodes == 3);

  const planner::Answer none = answer_to(pools_text_of(vary + "  max_nodes: 2\n"));
  REQUIRE(none.infeasible);
  REQUIRE_FALSE(none.infeasible->relaxations.empty());
  CHECK(none.infeasible->relaxations.front().limit == planner::LimitKind::nodes);
  CHECK(none.infeasible->relaxations.front().needed == 3);

  const planner::Answer tight = answer_to(pools_text_of(vary + "  memory: 1GiB\n"));
  REQUIRE(tight.infeasible);
  REQUIRE_FALSE(tight.infeasible->relaxations.empty());
  const planner::Relaxation& r = tight.infeasible->relaxations.front();
  CHECK(r.limit == planner::LimitKind::memory);
  CHECK(r.needed > r.asked);
  const std::string enough = fmt::format("  memory: {:.0f}MiB\n", std::ceil(r.needed / 1048576));
  CHECK_FALSE(answer_to(pools_text_of(vary + enough)).plans.empty());
  for (const planner::RankedPlan& p : answer_to(pools_text_of(vary + "  memory: 40%\n")).plans)
    CHECK(p.result.forecast.memory.required() <= p.result.forecast.memory.available * 0.4);
}

TEST_CASE("a plan has a risk of running out of memory of 1 % at most, which it tells") {
  // As many samples as the rule lets fit; twice as many do not.
  const std::string free_batch =
      "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 1, "
      "global_batch: 1..4096}\n";
  const planner::Answer answer = answer_to(pools_text_of(free_batch));
  REQUIRE_FALSE(answer.plans.empty());
  const MemoryEstimate& m = answer.plans.front().result.forecast.memory;
  CHECK(m.out_of_memory() <= kRiskOfAPlan);
  MemoryEstimate twice = m;
  twice.activations = twice.activations * 2.0;
  twice.workspace = twice.workspace * 2.0;
  CHECK_FALSE(twice.fits_at(kRiskOfAPlan));
  CHECK(answer.batch_rule.find("free up to 4,096 samples") != std::string::npos);
}

TEST_CASE("quotas by how nodes are bought: fallback nodes count against those on demand alone") {
  const std::string vary =
      "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 2, pricing: [spot], fallback: "
      "[10min], strategy: any}\n";
  const auto bought = [&](const std::string& quota) {
    std::set<std::string> out;
    for (const planner::RankedPlan& p : answer_to(pools_text_of(vary + quota)).plans)
      out.insert(planner::bought_text(p.offer, p.split.nodes));
    return out;
  };
  const std::string mixed = "2 spot, on_demand fallback after 10min";
  CHECK(bought("").contains(mixed));
  // Together they are four for a while; bought apart no more than two of each.
  CHECK_FALSE(bought("  quota: {gcp/us-central1/T4: 3}\n").contains(mixed));
  CHECK(bought("  quota: {gcp/us-central1/T4/spot: 2, gcp/us-central1/T4/on_demand: 2}\n")
            .contains(mixed));
  CHECK_FALSE(bought("  quota: {gcp/us-central1/T4/spot: 2, gcp/us-central1/T4/on_demand: 1}\n")
                  .contains(mixed));
}

TEST_CASE("colocated parameter servers are no more than the nodes, and no nodes of their own") {
  const std::string colocated = "{kind: parameter_server, colocated: true}";
  const auto asked = [&](const std::string& vary, const std::string& strategy) {
    std::set<std::pair<int, int>> out;  // nodes, servers
    const std::string text = pools_text_of(vary, strategy);
    for (const planner::RankedPlan& p : answer_to(text).plans) {
      CHECK(p.result.refused.empty());
      CHECK(simulated(text, p).time_seconds.mean == p.result.forecast.time_seconds.mean);
      out.emplace(p.split.nodes, p.split.parameter_servers);
    }
    return out;
  };
  using Pairs = std::set<std::pair<int, int>>;
  // As in a simulation one a node, where nothing else is said.
  CHECK(asked("  vary: {nodes: 1..3}\n", colocated) == Pairs{{1, 1}, {2, 2}, {3, 3}});
  const std::string two = "{kind: parameter_server, colocated: true, parameter_servers: 2}";
  CHECK(asked("  vary: {nodes: 1..3}\n", two) == Pairs{{2, 2}, {3, 2}});
  CHECK(asked("  vary: {nodes: 1..2, parameter_servers: 0..4}\n  max_nodes: 2\n", colocated) ==
        Pairs{{1, 1}, {2, 1}, {2, 2}});
  const auto machine = try_answer(pools_text_of(
      "  vary: {nodes: 2, parameter_servers: 1..2, parameter_server_machine: n1-highmem-2}\n",
      colocated));
  REQUIRE_FALSE(machine);
  CHECK(machine.error().front().what == "colocated parameter servers have no machine of their own");
}

TEST_CASE("all quotas that are too small are named, the worst first") {
  const std::string vary =
      "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 4, pricing: [spot], strategy: "
      "any}\n";
  const std::string both = "  quota: {gcp/us-central1/T4: 2, gcp/us-central1/T4/spot: 1}\n";
  const planner::Answer none = answer_to(pools_text_of(vary + both));
  REQUIRE(none.infeasible);
  CHECK(none.infeasible->reason ==
        "the quota of 1 for gcp/us-central1/T4/spot and that of 2 for gcp/us-central1/T4 are too "
        "small");
  REQUIRE(none.infeasible->relaxations.size() == 1);
  const planner::Relaxation& r = none.infeasible->relaxations.front();
  CHECK(r.of == "gcp/us-central1/T4/spot");
  CHECK(r.needed == 4);
  REQUIRE(r.also.size() == 1);
  CHECK(r.also.front().of == "gcp/us-central1/T4");
  CHECK(r.also.front().asked == 2);
  CHECK(r.also.front().needed == 4);
  const std::string enough = "  quota: {gcp/us-central1/T4: 4, gcp/us-central1/T4/spot: 4}\n";
  CHECK_FALSE(answer_to(pools_text_of(vary + enough)).plans.empty());
}

TEST_CASE("where the quota is too small, the answer says how large it would have to be") {
  const std::string vary =
      "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 2..3, strategy: any}\n";
  const planner::Answer none =
      answer_to(pools_text_of(vary + "  quota: {gcp/us-central1/T4: 1}\n"));
  REQUIRE(none.infeasible);
  CHECK(none.infeasible->reason == "the quota of 1 for gcp/us-central1/T4 is too small");
  REQUIRE(none.infeasible->relaxations.size() == 1);
  CHECK(none.infeasible->relaxations.front().needed == 2);
  CHECK_FALSE(answer_to(pools_text_of(vary + "  quota: {gcp/us-central1/T4: 2}\n")).plans.empty());
}
