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

namespace {

/// One run of what kScenario trains, twice as fast as anything known of it.
constexpr const char* kOwnRun =
    "id,source,trust,accelerator,accelerators,accelerators_per_node,nodes,intra_node_link,model,"
    "precision,strategy,samples_per_second,batch_per_accelerator,global_batch,stack\n"
    "mine-1,mine,A,P100-PCIE-16,2,2,1,pcie-host,resnet50_v1_5,fp32,all_reduce,800,64,128,\n";

}  // namespace

TEST_CASE("explain names the runs that a step rests on, lists and draws them") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output told = w.run("explain a.yaml");
  REQUIRE(told.code == 0);
  CHECK(contains(told.out, "\nEvidence\n  comparable "));
  CHECK_FALSE(contains(told.out, "Comparable runs"));
  for (const char* order : {"explain --evidence a.yaml", "explain a.yaml --evidence"}) {
    const Output listed = w.run(std::string(order) + " --plot e.svg");
    INFO(listed.err);
    REQUIRE(listed.code == 0);
    CHECK(contains(listed.out, "\nComparable runs"));
    CHECK(contains(read_all(w.path("e.svg")), "<circle"));
  }
  const json j = json::parse(w.run("explain a.yaml --format json").out);
  CHECK(j["evidence"]["nearest"].size() == j["evidence"]["comparable"].get<std::size_t>());
  const std::string nearest = j["evidence"]["nearest"][0]["id"];
  CHECK(contains(told.out, nearest));
}

TEST_CASE("a run of one's own is evidence, and a run or a source can be left out") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  w.write("own.csv", kOwnRun);
  const auto evidence = [&](const std::string& options) {
    const Output r = w.run("explain a.yaml --format json " + options);
    INFO(r.err);
    REQUIRE(r.code == 0);
    return json::parse(r.out)["evidence"];
  };
  const json before = evidence(""), with = evidence("--evidence own.csv");
  CHECK(with["nearest"][0]["id"] == "mine-1");
  CHECK(with["step_factor"]["p50"] < before["step_factor"]["p50"]);
  const auto width = [](const json& e) {
    return e["step_factor"]["p95"].get<double>() / e["step_factor"]["p5"].get<double>();
  };
  CHECK(width(with) < width(before));
  CHECK(evidence("--evidence own.csv --without-evidence mine") == before);
  CHECK(evidence("--evidence own.csv --without-evidence mine-1") == before);
  CHECK(evidence("--without-evidence all").is_null());
  const Output unknown = w.run("explain a.yaml --without-evidence nobody");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "nobody"));
  CHECK(w.run("explain a.yaml --without-evidence all --plot e.svg").code == 2);
  CHECK(contains(w.run("explain a.yaml --without-evidence all --evidence").out,
                 "Comparable runs\n  no published run is evidence for this job"));
}

TEST_CASE("whatever explain proposes is an option of plan, or is named as outside of its search") {
  const Workspace w;
  const std::string help = w.run("help plan").out;
  std::size_t inside = 0, outside = 0;
  for (const char* name : {"gke-p100-autoscaling", "parameter-servers-k80", "llama3-8b-zero3",
                           "gpt3-175b-1024-a100", "llama3-8b-lora"}) {
    const Output r = w.run(std::string("explain '") + RECKON_SOURCE_DIR + "/scenarios/" + name +
                           ".yaml' --format json");
    INFO(name << r.err);
    REQUIRE(r.code == 0);
    const auto answer = nlohmann::json::parse(r.out);
    for (const auto& change : answer["what_would_help"]) {
      INFO(change.dump());
      if (change["plan_option"].is_null()) {
        ++outside;
        continue;
      }
      CHECK(contains(help, "\n  " + change["plan_option"].get<std::string>() + " "));
      ++inside;
    }
  }
  CHECK(inside > 10);
  CHECK(outside > 5);
  CHECK(contains(w.run("explain '" RECKON_SOURCE_DIR "/scenarios/gke-p100-autoscaling.yaml'").out,
                 "outside"));
}
