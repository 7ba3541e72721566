#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "support/skip.h"

using namespace reckon::test;
using nlohmann::json;

TEST_CASE("simulate prints a table on standard output and nothing else") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml");
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out.starts_with("small\n  time "));
  CHECK(contains(r.out, "20 replications, seed 1"));
}

TEST_CASE("simulate prints JSON whose parts add up") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --format json");
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["scenario"] == "small");
  CHECK(j["accelerators"] == 2);
  CHECK(j["steps"] == 10'010);  // ceil(1,281,167 images / 128)
  CHECK(j["time_seconds"]["p5"] <= j["time_seconds"]["p50"]);
  double share = j["goodput"];
  for (const auto& part : j["badput"]) share += part.get<double>();
  CHECK(share == Approx(1));
}

TEST_CASE("one seed gives the same bytes on any number of threads") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const std::string one = w.run("simulate a.yaml --format json --replications 100 --threads 1").out;
  REQUIRE_FALSE(one.empty());
  CHECK(w.run("simulate a.yaml --format json --replications 100 --threads 2").out == one);
  CHECK(w.run("simulate a.yaml --format json --replications 100 --threads 4").out == one);
  CHECK(w.run("simulate a.yaml --format json --replications 100 --seed 2").out != one);
}

TEST_CASE("the option --set changes the scenario and meets the same checks") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run(
      "simulate a.yaml --format json --set workload.train.epochs=2 --set forecast.replications=5");
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(json::parse(r.out)["steps"] == 20'019);  // ceil(2 * 1,281,167 / 128)
  CHECK(json::parse(r.out)["replications"] == 5);
  const Output wrong = w.run("simulate a.yaml --set workload.train.epohcs=2");
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "epohcs"));
}

TEST_CASE("all mistakes of a scenario are reported at once on standard error, with exit code 2") {
  const Workspace w;
  std::string text = kScenario;
  text.replace(text.find("precision: fp32"), 15, "precison: fp32");
  text.replace(text.find("us-central1\n"), 11, "us-centrul1");
  w.write("bad.yaml", text);
  const Output r = w.run("simulate bad.yaml");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(contains(r.err, "bad.yaml:6:3: error: "));
  CHECK(contains(r.err, "did you mean 'precision'?"));
}

TEST_CASE("files that are no scenario are refused, not crashed on") {
  const Workspace w;
  w.write("empty.yaml", "");
  w.write("binary.yaml", std::string("\0\xff\xfe\x01{[", 6));
  for (const char* file : {"empty.yaml", "binary.yaml", "missing.yaml", "."}) {
    const Output r = w.run(std::string("simulate ") + file);
    INFO(file << "\n" << r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "error: "));
    CHECK(r.out.empty());
  }
}

TEST_CASE("a batch that does not fit in memory is refused with the numbers") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --set workload.batch_per_accelerator=4096");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "GiB"));
  w.write("asks.yaml", std::string(kScenario) + "expect: [feasible == false]\n");
  const Output answer =
      w.run("simulate asks.yaml --set workload.batch_per_accelerator=4096 --format json");
  CHECK(answer.code == 0);
  CHECK(json::parse(answer.out)["feasible"] == false);
}

TEST_CASE("the option --trace writes a file that a trace viewer reads and nothing beside it") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --trace t.json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json trace = json::parse(read_all(w.path("t.json")));
  REQUIRE(trace["traceEvents"].size() > 3);
  for (const auto& e : trace["traceEvents"]) {
    CHECK(e.contains("pid"));
    CHECK(e.contains("tid"));
    if (e["ph"] == "X") CHECK(e["dur"] >= 0);
  }
  int files = 0;  // besides the user's data directory, which the tests have there too
  for (const auto& entry : std::filesystem::directory_iterator(w.path("")))
    if (entry.path().filename() != ".data-home") ++files;
  CHECK(files == 4);  // a.yaml, t.json, stdout.txt, stderr.txt
}

TEST_CASE("SimGrid gives the same answer as our own network") {
  if (!std::filesystem::exists(RECKON_BINARY_DIR "/bin/reckon-referee"))
    skip_test("reckon-referee is not built");
  const Workspace w;
  w.write("a.yaml", kScenario);
  const json ours = json::parse(w.run("simulate a.yaml --format json").out);
  const Output r = w.run("simulate a.yaml --format json --engine simgrid");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json referee = json::parse(r.out);
  CHECK(referee["engine"] == "simgrid");
  CHECK(referee["step"]["seconds"].get<double>() ==
        Approx(ours["step"]["seconds"].get<double>()).epsilon(1e-9));
  CHECK(referee["time_seconds"]["p95"].get<double>() ==
        Approx(ours["time_seconds"]["p95"].get<double>()).epsilon(1e-6));
}

TEST_CASE("SimGrid answers for a model that is cut, and is not named where nobody asks it") {
  if (!std::filesystem::exists(RECKON_BINARY_DIR "/bin/reckon-referee"))
    skip_test("reckon-referee is not built");
  const Workspace w;
  const std::string sharded = RECKON_SOURCE_DIR "/scenarios/llama3-8b-zero3.yaml --replications 10";
  const auto asked = [&](const std::string& what, const std::string& engine) {
    const Output r = w.run("simulate " + what + " --format json" + engine);
    INFO(r.err);
    REQUIRE(r.code == 0);
    return json::parse(r.out);
  };
  const json usual = asked(sharded, ""), simgrid = asked(sharded, " --engine simgrid");
  CHECK(usual["engine"] == "closed-forms");
  CHECK(simgrid["engine"] == "simgrid");
  CHECK(simgrid["step"]["seconds"].get<double>() ==
        Approx(usual["step"]["seconds"].get<double>()).epsilon(1e-5));
  const Output absent =
      w.run("simulate " + sharded + " --engine simgrid", "RECKON_REFEREE=/nowhere/referee");
  CHECK(absent.code == 3);
  CHECK(contains(absent.err, "libsimgrid-dev"));
  w.write("single.yaml", kScenario);
  CHECK(asked("single.yaml --set workload.strategy.kind=single --set "
              "cluster.pools.p100.accelerator.count=1",
              " --engine simgrid")["engine"] == "none");
}

TEST_CASE("a missing referee is a failure of the environment") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const Output r = w.run("simulate a.yaml --engine simgrid", "RECKON_REFEREE=/nowhere/referee");
  CHECK(r.code == 3);
  CHECK(contains(r.err, "/nowhere/referee"));
  CHECK(r.out.empty());
}
