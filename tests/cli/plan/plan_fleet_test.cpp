#include <catch2/catch.hpp>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "support/skip.h"

// `reckon plan` of a scenario with several jobs.
using namespace reckon::test;
using Json = nlohmann::json;

namespace {

/// Two kinds of job, one that is submitted three times, on T4 of one region.
std::string fleet_question(const std::string& plan) {
  const auto workload = [](int epochs) {
    return "{model: resnet50, dataset: {samples: 300k, bytes_per_sample: 110kB}, train: {epochs: " +
           std::to_string(epochs) +
           "}, precision: fp16, batch_per_accelerator: 32, strategy: {kind: mirrored}}";
  };
  return "name: fleet\n"
         "jobs:\n"
         "  - {name: night, every: 1d, times: 3, workload: " +
         workload(10) + "}\n  - {name: once, submit: 2h, workload: " + workload(30) +
         "}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, "
         "nodes: 1}]\n"
         "forecast: {replications: 60, seed: 2}\n"
         "plan:\n"
         "  vary: {accelerator: [T4], machine: [n1-standard-16], nodes: 1..2, strategy: any, "
         "pricing: [on_demand]}\n" +
         plan;
}

void skip_without_solver(const Workspace& w) {
  w.write("any.yaml", fleet_question("  period: 3d\n"));
  const Output any = w.run("plan any.yaml --replications 2");
  if (any.err.find("without the solver CBC") != std::string::npos) skip_test(any.err);
}

}  // namespace

TEST_CASE("a fleet plan: its pools are scenarios that simulate forecasts to the same digits") {
  const Workspace w;
  skip_without_solver(w);
  w.write("q.yaml", fleet_question("  deadline: 24h@95%\n"));
  const Output planned = w.run("plan q.yaml --format json --out fleet.yaml");
  INFO(planned.out + planned.err);
  REQUIRE(planned.code == 0);
  const Json answer = Json::parse(planned.out);
  const Json& fleet = answer["fleet"];
  CHECK(answer["period_seconds"] == 72 * 3600);  // the last submit and its deadline
  REQUIRE(fleet["jobs"].size() == 4);
  CHECK(fleet["jobs"][0]["name"] == "night-1");
  CHECK(fleet["jobs"][2]["submit_seconds"] == 48 * 3600);
  CHECK(fleet["program"]["proven"] == true);
  CHECK(std::abs(double(fleet["replay"]["cost_gap"])) < 0.1);
  double cost = 0;
  for (std::size_t k = 0; k < fleet["pools"].size(); ++k) {
    const Json& pool = fleet["pools"][k];
    const Output again = w.run("simulate fleet-" + std::to_string(k + 1) + ".yaml --format json");
    REQUIRE(again.code == 0);
    const Json forecast = Json::parse(again.out);
    CHECK(forecast["cost_usd"] == pool["forecast"]["cost_usd"]);
    CHECK(forecast["time_seconds"] == pool["forecast"]["time_seconds"]);
    cost += double(forecast["cost_usd"]["mean"]);
  }
  CHECK(cost == Approx(double(fleet["replay"]["cost_usd"]["mean"])));
  const Output table = w.run("plan q.yaml");
  CHECK(table.code == 0);
  for (const char* part : {"\nPools\n", "\nJobs\n", "\nProgram and replay\n", "\nWhat binds\n"})
    CHECK(table.out.find(part) != std::string::npos);
}

TEST_CASE("no fleet plan fits: exit code 1 and the limit that would have to give way") {
  const Workspace w;
  skip_without_solver(w);
  w.write("late.yaml", fleet_question("  period: 3d\n  deadlines: {night: 10min@95%}\n"));
  const Output late = w.run("plan late.yaml");
  CHECK(late.code == 1);
  CHECK(late.out.find("The deadlines bind. Deadlines ") != std::string::npos);
  w.write("dear.yaml", fleet_question("  period: 3d\n  budget: 1 USD\n"));
  const Output dear = w.run("plan dear.yaml --format json");
  CHECK(dear.code == 1);
  const Json limits = Json::parse(dear.out)["infeasible"]["limits"];
  REQUIRE(limits.size() == 1);
  CHECK(limits[0]["limit"] == "budget");
  CHECK(double(limits[0]["needed"]) > 1);
}

TEST_CASE("questions of several jobs that make no sense are told at their place") {
  const Workspace w;
  skip_without_solver(w);
  w.write("endless.yaml", fleet_question("  objective: cost\n"));
  const Output endless = w.run("plan endless.yaml");
  CHECK(endless.code == 2);
  CHECK(endless.err.find("needs its period") != std::string::npos);
  w.write("name.yaml", fleet_question("  period: 3d\n  deadlines: {nigth: 3h}\n"));
  CHECK(w.run("plan name.yaml").err.find("no job is named 'nigth'") != std::string::npos);
  w.write("q.yaml", fleet_question("  period: 3d\n"));
  CHECK(w.run("plan q.yaml --fewest").code == 2);
  CHECK(w.run("plan q.yaml --objective p95_cost").code == 2);
  CHECK(w.run("plan q.yaml --set cluster.service=gce").code == 2);
}
