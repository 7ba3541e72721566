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
  const int least = answer.rows.front().fits->shape.nodes;
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
  const int least = answer.rows.front().meets->shape.nodes;
  CHECK(least > answer.rows.front().fits->shape.nodes);
  CHECK(answer.rows.front().meets->result.meets_all());
  const planner::Answer less =
      answer_of(llama(fmt::format("1..{}", least - 1), limits), shipped_catalog());
  CHECK(less.infeasible);
  CHECK_FALSE(answer_of(llama(fmt::format("{}", least), limits), shipped_catalog()).infeasible);
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
