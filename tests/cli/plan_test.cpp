#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "cli/plan_small_question.h"
#include "cli/run_reckon.h"

using namespace reckon::test;
using Json = nlohmann::json;

namespace {

const std::string kQuestion = small_plan_question("T4, V100-SXM2-16", "spot, on_demand");

}  // namespace

TEST_CASE(
    "a plan that is written out is simulated to the same digits, and compares as a scenario") {
  const Workspace w;
  w.write("q/question.yaml", kQuestion);
  const Output planned =
      w.run("plan q/question.yaml --out best.yaml --svg front.svg --format json");
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const Json answer = Json::parse(planned.out);
  CHECK(answer["command"] == "plan");
  CHECK(answer["infeasible"].is_null());
  const Json& first = answer["plans"][0]["forecast"];
  const Output simulated = w.run("simulate best.yaml --format json");
  REQUIRE(simulated.code == 0);
  const Json again = Json::parse(simulated.out);
  CHECK(again["time_seconds"] == first["time_seconds"]);
  CHECK(again["cost_usd"] == first["cost_usd"]);
  CHECK(again["goodput"] == first["goodput"]);
  CHECK(again["seed"] == 5);
  CHECK(w.run("compare best.yaml q/question.yaml").code == 0);
  CHECK(read_all(w.path("front.svg")).starts_with("<svg"));
}

TEST_CASE("no plan fits: exit code 1, the limit that binds and what it would have to be") {
  const Workspace w;
  w.write("question.yaml", kQuestion);
  const Output none = w.run("plan question.yaml --deadline 5min@95% --out best.yaml");
  CHECK(none.code == 1);
  CHECK(none.out.find("No plan fits") != std::string::npos);
  CHECK(none.out.find("the deadline of 5min@95% is not met") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(w.path("best.yaml")));
}

TEST_CASE("options alone are a question; a wrong one is told by its place") {
  const Workspace w;
  const Output planned = w.run(
      "plan --model resnet50 --epochs 1 --accelerator t4 --provider gcp --region us-central1 "
      "--nodes 1..2 --pricing spot --replications 20");
  INFO(planned.err);
  CHECK(planned.code == 0);
  CHECK(planned.out.find("T4") != std::string::npos);
  CHECK(w.run("plan").code == 2);
  const Output unknown = w.run("plan --model resnet5 --epochs 1");
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("did you mean 'resnet50'?") != std::string::npos);
  const Output budget = w.run("plan --model resnet50 --epochs 1 --accelerator T4 --budget cheap");
  CHECK(budget.code == 2);
  CHECK(budget.err.find("--set plan.budget=cheap") != std::string::npos);
}
