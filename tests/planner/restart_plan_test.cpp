#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

#include "planner/small_spaces.h"

// The planner searches ways to go on after a loss where the file frees them.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string restart_text(const std::string& plan, const std::string& restart = "") {
  return "name: restarts\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 20}\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: {kind: multi_worker_mirrored}\n" +
         restart +
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, "
         "nodes: 4, pricing: spot}]\n"
         "disruptions: {preemption: !exponential {mean: 4h}, shortage: none}\n"
         "forecast: {replications: 12, seed: 3}\n"
         "plan:\n" +
         plan;
}

planner::Question restart_question(const std::string& text) {
  return test::question_of(text, shipped_catalog());
}
planner::Answer restart_answer(const std::string& text) {
  planner::PlannerOptions options;
  options.keep = 100;
  options.threads = 1;
  options.exact_up_to = 1000;
  options.prune = false;
  const auto network = make_fluid_network();
  auto answer = planner::plan(restart_question(text), shipped_catalog(), *network, options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}
/// Of plans that are equal within a per cent too, which share a row.
std::set<std::string> ways_of(const planner::Answer& answer) {
  std::set<std::string> ways;
  for (const planner::RankedPlan& p : answer.plans) {
    ways.insert(planner::restart_words(p.offer));
    for (const planner::RankedPlan& equal : p.equals)
      ways.insert(planner::restart_words(equal.offer));
  }
  return ways;
}

constexpr auto kAll = "  vary: {restart: [full, in_place, warm_spare 2, elastic]}\n";

}  // namespace

TEST_CASE("every way to restart that the file frees is a plan, simulated as its own scenario is") {
  const planner::Answer answer = restart_answer(restart_text(kAll));
  CHECK(ways_of(answer) == std::set<std::string>{"full restart", "in_place restart",
                                                 "2 warm spares", "elastic restart"});
  for (const planner::RankedPlan& p : answer.plans) {
    const auto file =
        parse_scenario(restart_text(kAll), "restarts.yaml", planner::texts(p.result.changes));
    REQUIRE(file);
    const auto plan = make_plan(*file, shipped_catalog());
    if (!plan) FAIL(format(plan.error()));
    REQUIRE(plan->jobs[0].restart);
    CHECK(plan->jobs[0].strategy.workers == 4);
    const int spares = plan->jobs[0].restart->spares;
    CHECK(plan->pools[0].nodes_initial == 4 + spares);
    CHECK(planner::nodes_at_most(p.offer, p.split) == 4 + spares);
    const auto network = make_fluid_network();
    CHECK(make_forecast(*plan, *network).time_seconds.mean == p.result.forecast.time_seconds.mean);
  }
}

TEST_CASE("spare nodes count against the quota, and what was searched says restart") {
  const std::string quota = "  quota: {gcp/us-central1/T4: 5}\n";
  const planner::Answer answer = restart_answer(restart_text(kAll + quota));
  CHECK(ways_of(answer).count("2 warm spares") == 0);
  CHECK(ways_of(answer).count("elastic restart") == 1);
  const auto searched = planner::searched_keys(restart_question(restart_text(kAll))).searched;
  CHECK(std::ranges::count(searched, "restart") == 1);
  const auto held =
      planner::searched_keys(restart_question(restart_text("  vary: {nodes: 1..4}\n"))).held;
  CHECK(std::ranges::count(held, "restart") == 1);
}

TEST_CASE("a scenario's own restart is kept, and its spares are beside the nodes of the job") {
  const planner::Answer answer = restart_answer(restart_text(
      "  vary: {pricing: [spot, on_demand]}\n", "  restart: {kind: warm_spare, spares: 1}\n"));
  CHECK(ways_of(answer) == std::set<std::string>{"1 warm spare"});
  for (const planner::RankedPlan& p : answer.plans) CHECK(p.split.nodes == 3);
}

TEST_CASE("a job of one node is not elastic") {
  const planner::Answer answer =
      restart_answer(restart_text("  vary: {nodes: 1..2, restart: [full, elastic]}\n"));
  for (const planner::RankedPlan& p : answer.plans)
    if (p.split.nodes == 1) CHECK(planner::restart_words(p.offer) == "full restart");
  CHECK(ways_of(answer).size() == 2);
}

TEST_CASE("a way to restart that there is none of is refused with those that there are") {
  planner::Base base;
  base.text = restart_text("  vary: {restart: [hot, elastic 0]}\n");
  base.name = "restarts.yaml";
  const auto question = planner::make_question(std::move(base), shipped_catalog());
  REQUIRE_FALSE(question);
  CHECK_THAT(format(question.error()), Contains("no way to restart") && Contains("warm_spare"));
}
