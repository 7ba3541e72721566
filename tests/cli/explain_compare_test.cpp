#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using nlohmann::json;

TEST_CASE("explain says where a step goes, in parts that add up") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("explain a.yaml --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  double seconds = 0, share = 0, layers = 0;
  for (const auto& p : j["phases"]) {
    seconds += p["seconds"].get<double>();
    share += p["share"].get<double>();
  }
  for (const auto& g : j["layers"]) layers += g["share"].get<double>();
  CHECK(share == Approx(1));
  CHECK(seconds == Approx(j["step_seconds"].get<double>()));
  CHECK(layers <= 1);
  CHECK(layers > 0.5);
  CHECK(j["what_would_help"].size() >= 5);
  CHECK(j["crossover"].size() >= 6);  // 2, 4, ... 64 workers
  const json forecast = json::parse(w.run("simulate a.yaml --format json").out);
  CHECK(j["step_seconds"] == forecast["step"]["seconds"]);
  CHECK(j["bottleneck"] == forecast["step"]["bottleneck"]);
  CHECK(contains(w.run("explain a.yaml").out, "What would help"));
}

TEST_CASE("explain refuses what does not fit, also where the scenario expects that") {
  const Workspace w;
  w.write("a.yaml", std::string(kScenario) + "expect: [feasible == false]\n");
  const Output r = w.run("explain a.yaml --set workload.batch_per_accelerator=4096");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "GiB"));
  CHECK(w.run("explain a.yaml a.yaml").code == 2);
}

TEST_CASE("compare gives a plan and its equal the same luck") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  std::string other = kScenario;
  other.replace(other.find("seed: 1"), 7, "seed: 9");  // the first file's seed serves all
  w.write("b.yaml", other);
  const Output r = w.run("compare a.yaml b.yaml --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["probability_faster"][0][1] == 0.5);
  CHECK(j["time_difference_seconds"][0][1]["p5"] == 0);
  CHECK(j["time_difference_seconds"][0][1]["p95"] == 0);
  CHECK(j["names"][0] == "small  (a.yaml)");
  CHECK(j["names"][1] == "small  (b.yaml)");
}

TEST_CASE("compare knows a longer training for slower and dearer in every replication") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("compare a.yaml --sweep workload.train.epochs=1,2 --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["probability_faster"][0][1] == 1);
  CHECK(j["probability_cheaper"][0][1] == 1);
  CHECK(j["probability_faster"][1][0] == 0);
  CHECK(contains(w.run("compare a.yaml --sweep workload.train.epochs=1,2").out,
                 "Probability that the row is faster"));
}

TEST_CASE("compare needs two plans and reports the mistakes of all files") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output one = w.run("compare a.yaml");
  CHECK(one.code == 2);
  CHECK(contains(one.err, "two plans"));
  const Output wrong = w.run("compare missing.yaml absent.yaml");
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "missing.yaml"));
  CHECK(contains(wrong.err, "absent.yaml"));
}
