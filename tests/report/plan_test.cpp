#include "report/plan/plan.h"

#include <catch2/catch.hpp>

#include "report/example_forecast.h"
#include "report/plan/parts.h"

// What `reckon plan` says of its answer, of answers made by hand.
using namespace reckon;

namespace {

planner::RankedPlan plan_on(const std::string& machine) {
  planner::RankedPlan p;
  p.hardware.machine = machine;
  p.split.nodes = 1;
  p.result.changes = {planner::SetMachine{"workers", machine}};
  p.result.forecast = test::example_forecast();
  return p;
}

planner::Answer answer_with(const std::string& machine) {
  planner::Answer a;
  a.scenario = "example";
  a.plans = {plan_on(machine)};
  return a;
}

bool says(const std::vector<std::string>& sentences, const std::string& part) {
  for (const std::string& sentence : sentences)
    if (sentence.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("an alternative without a price is told apart by its time alone") {
  planner::Answer a = answer_with("first");
  a.objective = planner::Objective::time;
  a.rivals = {plan_on("second")};
  const auto line = [&] {
    const std::string table = plan_table(a);
    const std::size_t at = table.find("Next best: ");
    REQUIRE(at != std::string::npos);
    return table.substr(at, table.find('\n', at) - at);
  };
  REQUIRE(a.plans.front().result.forecast.cost_usd);
  CHECK(line().find(", cost ") != std::string::npos);
  a.rivals.front().result.forecast.cost_usd.reset();
  CHECK(line().find("time ") != std::string::npos);
  CHECK(line().find("cost") == std::string::npos);
}

TEST_CASE("without another plan a limit that the choice comes to miss is still named") {
  planner::Answer a = answer_with("only");
  a.sensitivity.emplace();
  a.sensitivity->levers = {{planner::Lever::network, std::nullopt, std::nullopt}};
  CHECK(says(changes_of_choice(a), "there is no other plan"));
  planner::Flip flip;
  flip.lever = planner::Lever::network;
  flip.factor = 0.5;
  flip.limit = "deadline";
  a.sensitivity->levers.front().down = flip;
  CHECK_FALSE(says(changes_of_choice(a), "there is no other plan"));
  CHECK(says(changes_of_choice(a), "it misses the deadline"));
}

TEST_CASE("that no factor tried changes the choice is not said where ties were left out") {
  planner::Answer a = answer_with("first");
  a.sensitivity.emplace();
  a.sensitivity->rivals = 1;
  a.sensitivity->levers = {{planner::Lever::network, std::nullopt, std::nullopt}};
  CHECK(says(changes_of_choice(a), "Insensitive (1/8, 1/2, 2 and 8 times): network bandwidth"));
  a.sensitivity->ties = {plan_on("second")};
  CHECK_FALSE(says(changes_of_choice(a), "None of"));
  CHECK(says(changes_of_choice(a), "No difference within"));
}

TEST_CASE(
    "the command of a measurement names the file of the plan, or repeats the user's options") {
  planner::Answer a = answer_with("first");
  planner::Measurement m;
  m.kind = planner::MeasurementKind::trial;
  m.on = a.plans.front();
  CHECK(command_for(a, m).empty());  // no file holds it
  a.words = {" --set workload.global_batch=64", " --calibration mine.yaml", "chosen.yaml"};
  CHECK(command_for(a, m) == "reckon trial chosen.yaml --calibration mine.yaml --like-pool");
  a.file = "q.yaml";
  a.words.plan_file.clear();
  CHECK(command_for(a, m) ==
        "reckon trial q.yaml --set workload.global_batch=64 --set "
        "cluster.pools.workers.machine=first --calibration mine.yaml --like-pool");
  a.words.plan_file = "chosen.yaml";  // holds the first plan, not this one
  m.on = plan_on("second");
  CHECK(command_for(a, m).starts_with("reckon trial q.yaml --set"));
}

TEST_CASE("the command of a measurement runs nothing of a file's name") {
  planner::Answer a = answer_with("first");
  planner::Measurement m;
  m.kind = planner::MeasurementKind::trial;
  m.on = a.plans.front();
  a.words.plan_file = "-x $(touch x).yaml";
  CHECK(command_for(a, m) == "reckon trial './-x $(touch x).yaml' --like-pool");
  a.words.plan_file.clear();
  a.file = "a\n';b.yaml";
  m.on = plan_on("it's");
  CHECK(command_for(a, m) ==
        "reckon trial $'a\\012\\';b.yaml' --set "
        "'cluster.pools.workers.machine=\"it'\\''s\"' --like-pool");
}
