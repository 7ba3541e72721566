#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using nlohmann::json;

TEST_CASE("a sweep forecasts every point as --set would") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --sweep workload.train.epochs=1..4 --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  REQUIRE(j["sweep"].size() == 3);  // 1, 2, 4
  CHECK(j["fastest"] == 0);
  const json alone =
      json::parse(w.run("simulate a.yaml --set workload.train.epochs=4 --format json").out);
  CHECK(j["sweep"][2]["values"]["workload.train.epochs"] == "4");
  CHECK(j["sweep"][2]["forecast"]["time_seconds"] == alone["time_seconds"]);
  CHECK(j["sweep"][2]["forecast"]["cost_usd"] == alone["cost_usd"]);
}

TEST_CASE("points of a sweep that cannot be are rows with their reason") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  // n1-standard-16 carries 2 P100, not 3; a batch of 4,096 does not fit.
  const Output r = w.run(
      "simulate a.yaml --sweep cluster.pools.p100.accelerator.count=2,3"
      " --sweep workload.batch_per_accelerator=64,4096 --csv s.csv");
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "not possible, see below"));
  CHECK(contains(r.out, "not a valid count"));
  CHECK(contains(r.out, "fastest, cheapest"));
  const std::string csv = read_all(w.path("s.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);  // the header and 2 x 2 points
  CHECK(csv.starts_with("cluster.pools.p100.accelerator.count,workload.batch_per_accelerator,"));
  CHECK(contains(csv, "\n3,4096,,,,,"));
}

TEST_CASE("a sweep of which no point can be is a mistake") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --sweep workload.train.epohcs=1,2 --csv s.csv");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "did you mean 'epochs'?"));
  CHECK_FALSE(std::filesystem::exists(w.path("s.csv")));
}

TEST_CASE("wrong sweeps are refused with an example") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  for (const char* arguments :
       {"--sweep a=4..1", "--sweep a=1 --sweep a=2", "--csv s.csv", "--sweep a=1..4 --trace t.json",
        "--sweep a=1..1000..1 --sweep b=1..1000..1"}) {
    const Output r = w.run(std::string("simulate a.yaml ") + arguments);
    INFO(arguments << "\n" << r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "--sweep"));
  }
}

const char* const kService = R"(name: service
serving:
  model: resnet50_v1_5
  precision: fp16
  requests_per_second: 900
  batch: {max: 8}
  replicas: {initial: 1, min: 1, max: 1}
  period: 2min
  goal: p99(latency) <= 100ms
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-a
  pools:
    - {name: t4, role: inference, machine: n1-standard-4, accelerator: {type: T4}, nodes: 8}
)";

TEST_CASE("a sweep of the service tells its latencies and costs, and the cheapest that holds") {
  const Workspace w;
  w.write("s.yaml", kService);
  const std::string sweep =
      "simulate s.yaml --sweep serving.replicas=1,4 "
      "--sweep cluster.pools.t4.nodes=2,4,6";
  const Output json = w.run(sweep + " --format json --csv s.csv");
  INFO(json.err);
  REQUIRE(json.code == 0);
  const auto answer = nlohmann::json::parse(json.out);
  REQUIRE(answer["sweep"].size() == 6);
  const auto& points = answer["sweep"];
  CHECK(points[0]["serving"]["refused_share"] > 0.1);  // one T4 does not answer 900 a second
  CHECK(points[3]["serving"].is_null());               // 4 replicas on 2 nodes
  CHECK(contains(points[3]["reason"], "do not fit"));
  CHECK(points[4]["serving"]["latency_seconds"]["p99"] <= 0.1);
  CHECK(points[4]["serving"]["cost_usd"] < points[5]["serving"]["cost_usd"]);
  CHECK(answer["cheapest"] == 4);
  const std::string csv = read_all(w.path("s.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 7);
  CHECK(contains(csv, "latency_p99_seconds"));
  const Output table = w.run(sweep);
  CHECK(contains(table.out, "misses the goal"));
  CHECK(contains(table.out, "cheapest"));
  CHECK(contains(table.out, "goal: p99(latency) <= 100ms"));
}

TEST_CASE("what serves alone is swept as a service, whatever changes, compare is of trainings") {
  const Workspace w;
  w.write("s.yaml", kService);
  const Output r = w.run("simulate s.yaml --sweep cluster.pools.t4.nodes=1,2");
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "p99"));
  w.write("a.yaml", kScenario);
  const Output compared = w.run("compare a.yaml --sweep serving.replicas.max=2..8");
  CHECK(compared.code == 2);
  CHECK(contains(compared.err, "serving.replicas.max changes the service"));
}

TEST_CASE("the option --memo writes the question, the answer and what was tried") {
  const Workspace w;
  w.write("a.yaml", "# Question: is one epoch enough?\n" + std::string(kScenario));
  const Output r = w.run("simulate a.yaml --memo m.md --sweep workload.train.epochs=1,2");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const std::string memo = read_all(w.path("m.md"));
  CHECK(memo.starts_with("# small\n\n## Question\n\nis one epoch enough?\n"));
  for (const char* part : {"## Answer", "## Alternatives tried", "| 2 |", "## Risks",
                           "## Assumptions", "## Prices", " USD |", "| 20"})
    CHECK(contains(memo, part));
  CHECK(contains(r.out, "(1) workload.train.epochs"));
  CHECK(w.run("simulate a.yaml --memo nowhere/m.md").code == 3);
}
