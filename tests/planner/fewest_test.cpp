#include "planner/fewest.h"

#include <catch2/catch.hpp>

#include "planner/small_spaces.h"
#include "sim/step/step.h"

// The fewest accelerators, checked by asking for one node less.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Llama 3 8B with AdamW: 16 B a parameter of state, 128 GB, shared out by ZeRO-3.
std::string llama(const std::string& nodes, const std::string& limits = "") {
  return "name: llama\n"
         "workload:\n"
         "  model: llama3_8b\n"
         "  dataset: openwebtext\n"
         "  train: {tokens: 200M}\n"
         "  precision: bf16\n"
         "  batch_per_accelerator: 1\n"
         "  strategy: {kind: sharded, zero_stage: 3}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: a2-highgpu-1g, nodes: 1}]\n"
         "forecast: {replications: 20, seed: 3}\n"
         "plan:\n"
         "  vary: {machine: a2-highgpu-1g, accelerator: A100-SXM4-40, recompute: full, nodes: " +
         nodes + "}\n" + limits;
}

planner::Fewest fewest_of(const std::string& text) {
  planner::PlannerOptions options;
  options.threads = 1;
  auto answer = planner::fewest(question_of(text, shipped_catalog()), shipped_catalog(),
                                *make_fluid_network(), options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}

}  // namespace

TEST_CASE("one accelerator less than the fewest does not hold the training") {
  const planner::Fewest answer = fewest_of(llama("1..12"));
  REQUIRE(answer.rows.size() == 1);
  REQUIRE(answer.rows.front().fits);
  const int least = answer.rows.front().fits->split.nodes;
  CHECK(least >= 4);  // 128 GB of state over 40 GB each are more than three
  CHECK(answer.meets_all());
  const planner::Fewest less = fewest_of(llama(fmt::format("1..{}", least - 1)));
  CHECK_FALSE(less.rows.front().fits);
  CHECK_FALSE(less.meets_all());
  CHECK(less.rows.front().why_not == "does not fit in memory");
  CHECK(fewest_of(llama(fmt::format("{}", least))).rows.front().fits);
}

TEST_CASE("one node less than the fewest misses the deadline") {
  const std::string limits = "  deadline: 12h@90%\n";
  const planner::Fewest answer = fewest_of(llama("1..32", limits));
  REQUIRE(answer.rows.front().meets);
  const int least = answer.rows.front().meets->split.nodes;
  CHECK(least > answer.rows.front().fits->split.nodes);
  CHECK(answer.rows.front().meets->result.meets_all());
  const planner::Answer less =
      answer_of(llama(fmt::format("1..{}", least - 1), limits), shipped_catalog());
  CHECK(less.infeasible);
  CHECK_FALSE(answer_of(llama(fmt::format("{}", least), limits), shipped_catalog()).infeasible);
}

TEST_CASE("with a deadline and a budget spot nodes that meet both are found beside faster ones") {
  SmallSpace s;
  s.machines = {"n1-standard-8"};
  s.accelerators = {"T4"};
  s.regions = {"us-central1", "us-west1", "europe-west4", "asia-east1"};
  s.nodes_low = s.nodes_high = 1;
  s.objective = "cost";
  s.pricing = {"spot"};
  const std::string always = "disruptions: {shortage: none}\n";
  const planner::Answer spot = answer_of(small_text(s) + always, shipped_catalog());
  REQUIRE_FALSE(spot.plans.empty());
  const Forecast& cheap = spot.plans.front().result.forecast;
  s.pricing = {"on_demand", "spot"};
  // On demand is faster and costs more than twice as much, in more than three regions.
  s.deadline = fmt::format("{:.1f}min", cheap.time_seconds.mean / 60 * 1.1);
  s.budget = fmt::format("{:.3f} USD", cheap.cost_usd->mean * 1.3);
  const planner::Fewest answer = fewest_of(small_text(s) + always);
  REQUIRE(answer.rows.size() == 1);
  REQUIRE(answer.rows.front().meets);
  CHECK(answer.rows.front().meets->offer.pricing == CapacityType::spot);
  CHECK(answer.rows.front().why_not.empty());
}

TEST_CASE("machines of one's own without a price are asked for by time") {
  std::string text = llama("4..8");
  const std::size_t at = text.find("cluster:");
  text = text.substr(0, at) +
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools: [{name: workers, nodes: 8, machine: {vcpu: 24, memory: 170GB, "
         "network: 100Gbps}, accelerator: {type: A100-SXM4-80, count: 1}}]\n"
         "forecast: {replications: 20, seed: 3}\n"
         "plan:\n"
         "  vary: {recompute: full, nodes: 4..8}\n";
  const planner::Fewest answer = fewest_of(text);
  REQUIRE(answer.rows.size() == 1);
  REQUIRE(answer.rows.front().meets);
  CHECK_FALSE(answer.rows.front().meets->result.forecast.cost_usd);
  CHECK(answer.meets_all());
}

TEST_CASE("with one parameter server less the servers are still what a step waits for") {
  const auto file = read_scenario(RECKON_SOURCE_DIR "/scenarios/parameter-servers-k80.yaml");
  REQUIRE(file);
  const auto network = make_fluid_network();
  const auto plan_with = [&](int servers) {
    const std::vector<std::string> overrides{
        fmt::format("cluster.pools.servers.nodes={}", servers)};
    return make_plan(
               *read_scenario(RECKON_SOURCE_DIR "/scenarios/parameter-servers-k80.yaml", overrides),
               shipped_catalog())
        .value();
  };
  const planner::FewestServers answer = planner::fewest_servers(plan_with(4), *network);
  REQUIRE(answer.enough);
  REQUIRE(answer.no_gain);
  const auto step = [&](int servers) {
    const Plan plan = plan_with(servers);
    return estimate_step(plan, plan.jobs.front(), *network);
  };
  CHECK(step(*answer.enough).bottleneck != Bottleneck::parameter_server);
  if (*answer.enough > 1)
    CHECK(step(*answer.enough - 1).bottleneck == Bottleneck::parameter_server);
  for (int servers = 1; servers <= 3; ++servers)
    CHECK(answer.steps[std::size_t(servers - 1)] == step(servers).step);
  CHECK(step(*answer.no_gain + 1).step > 0.99 * step(*answer.no_gain).step);
  CHECK(step(*answer.no_gain).step <= 0.99 * step(*answer.no_gain - 1).step);
}
