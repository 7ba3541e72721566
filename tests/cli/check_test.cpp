#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using nlohmann::json;

namespace {

std::string with(const std::string& expect) {
  return std::string(kScenario) + "expect:\n" + expect;
}

}  // namespace

TEST_CASE("check exits with 0 where every expectation holds and prints the values") {
  const Workspace w;
  w.write("a.yaml", with("  - p95(time) <= 1000h\n  - goodput > 1%\n"));
  const Output r = w.run("check a.yaml");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "PASS p95(time) <= 1000h"));
  CHECK(contains(r.out, "2 expectations passed, 0 failed"));
}

TEST_CASE("check exits with 1 where an expectation fails") {
  const Workspace w;
  w.write("a.yaml", with("  - p95(time) <= 1s\n  - p95(time) <= 1000h\n"));
  const Output r = w.run("check a.yaml --format json");
  CHECK(r.code == 1);
  const json j = json::parse(r.out);
  CHECK(j["command"] == "check");
  CHECK(j["scenarios"][0]["passed"] == false);
  CHECK(j["scenarios"][0]["expectations"][0]["passed"] == false);
  CHECK(j["scenarios"][0]["expectations"][0]["value"] > 1.0);
  CHECK(j["scenarios"][0]["expectations"][1]["passed"] == true);
}

TEST_CASE("of several files the highest exit code wins and every file is checked") {
  const Workspace w;
  w.write("all/bad.yaml", "name: x\nworkloda: {}\n");
  w.write("all/fails.yaml", with("  - p95(time) <= 1s\n"));
  w.write("all/good.yaml", with("  - p95(time) <= 1000h\n"));
  w.write("all/notes.txt", "not a scenario");
  const Output r = w.run("check all");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "all/bad.yaml:2:1: error: "));
  CHECK(contains(r.out, "FAIL p95(time) <= 1s"));
  CHECK(contains(r.out, "PASS p95(time) <= 1000h"));
  CHECK_FALSE(contains(r.out, "notes.txt"));
  CHECK(w.run("check all/fails.yaml all/good.yaml").code == 1);
  CHECK(w.run("check all/good.yaml").code == 0);
}

TEST_CASE(
    "what is compared with dollars is printed in dollars, whatever another file's currency is") {
  const Workspace w;
  const std::string cost = with("  - p95(cost) <= 100000 USD\n");
  w.write("a.yaml", cost);
  w.write("b.yaml", cost + "prices: {currency: EUR, usd_rate: 0.9}\n");
  const Output r = w.run("check a.yaml b.yaml");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK_FALSE(contains(r.out, "EUR"));
}

TEST_CASE("a plan that cannot exist is the expected answer where feasible == false says so") {
  const Workspace w;
  std::string text = with("  - feasible == false\n");
  text.replace(text.find("batch_per_accelerator: 64"), 25, "batch_per_accelerator: 4096");
  w.write("a.yaml", text);
  Output r = w.run("check a.yaml");
  INFO(r.out << r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "PASS feasible == false   (false)"));
  text.replace(text.find("feasible == false"), 17, "feasible == true");
  w.write("b.yaml", text);
  r = w.run("check b.yaml");
  CHECK(r.code == 1);
}

TEST_CASE("failures are annotated at their line and written as JUnit XML and SARIF") {
  const Workspace w;
  w.write("a.yaml", with("  - p95(time) <= 1000h\n  - p95(time) <= 1s\n"));
  const Output r =
      w.run("check a.yaml --annotations github --junit results.xml --sarif results.sarif");
  CHECK(r.code == 1);
  // kScenario has 19 lines, `expect:` is line 20.
  INFO(r.out);
  CHECK(contains(r.out, "::error file=a.yaml,line=22,col="));
  const std::string xml = read_all(w.path("results.xml"));
  CHECK(contains(xml, "tests=\"2\" failures=\"1\" errors=\"0\""));
  const std::string sarif = read_all(w.path("results.sarif"));
  CHECK(contains(sarif, "\"uri\": \"a.yaml\""));
  CHECK(contains(sarif, "\"startLine\": 22"));
  CHECK(w.run("check a.yaml --junit same --sarif same").code == 2);
}

TEST_CASE("a directory without scenarios is a mistake, not a success") {
  const Workspace w;
  std::filesystem::create_directories(w.path("none"));
  const Output r = w.run("check none");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "no scenario"));
}
