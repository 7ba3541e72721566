#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_reckon.h"

// `--errors json`: what is wrong, for programs.
using namespace reckon::test;

namespace {

std::vector<nlohmann::ordered_json> lines_of(const std::string& text) {
  std::vector<nlohmann::ordered_json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    out.push_back(nlohmann::ordered_json::parse(line));
  return out;
}

std::string errors_with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("mistakes of a file are JSON objects, a line each, with the place and what to do") {
  const Workspace w;
  w.write("a.yaml", errors_with(errors_with(kScenario, "precision: fp32", "precison: fp32"),
                                "nodes: 1", "nodes: x"));
  const Output r = w.run("simulate a.yaml --errors json");
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  const auto mistakes = lines_of(r.err);
  REQUIRE(mistakes.size() == 2);
  std::vector<std::string> keys;
  for (const auto& item : mistakes[0].items()) keys.push_back(item.key());
  CHECK(keys == std::vector<std::string>{"schema_version", "severity", "code", "file", "line",
                                         "column", "message", "hint"});
  CHECK(mistakes[0]["schema_version"] == 1);
  CHECK(mistakes[0]["severity"] == "error");
  CHECK(mistakes[0]["code"] == "input");
  CHECK(mistakes[0]["file"] == "a.yaml");
  CHECK(mistakes[0]["line"] == 6);
  CHECK(mistakes[0]["column"] == 3);
  CHECK(contains(mistakes[0]["message"], "precison"));
  CHECK(mistakes[1]["line"] == 18);
  // The same as for people.
  const Output said = w.run("simulate a.yaml");
  CHECK(contains(said.err, "a.yaml:6:3: error: " + std::string(mistakes[0]["message"])));
}

TEST_CASE("a mistake of the command line and a question that is too large say which they are") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  const auto one = [&](const std::string& arguments, const std::string& environment = "") {
    const Output r = w.run(arguments, environment);
    CHECK(r.code == 2);
    const auto lines = lines_of(r.err);
    REQUIRE(lines.size() == 1);
    return lines[0];
  };
  auto mistake = one("simulate a.yaml --fromat json --errors json");
  CHECK(mistake["code"] == "usage");
  CHECK(mistake["file"].is_null());
  CHECK(mistake["line"].is_null());
  CHECK(contains(mistake["message"], "did you mean '--format'?"));
  CHECK(mistake["hint"] == "Try 'reckon simulate --help'.");
  // Anywhere before a "--", in both spellings.
  CHECK(one("--errors=json simulate a.yaml --sed 1")["code"] == "usage");
  mistake = one("simulate --errors json a.yaml --replications 1000000", "RECKON_MAX_CPU_TIME=1ms");
  CHECK(mistake["code"] == "limit");
  CHECK(mistake["file"].is_null());
  CHECK(contains(mistake["hint"], "RECKON_MAX_CPU_TIME"));
}

TEST_CASE("a format of errors that there is not is refused as text") {
  const Workspace w;
  Output r = w.run("simulate a.yaml --errors xml");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "--errors takes text or json, not 'xml'"));
  r = w.run("simulate a.yaml --errors");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "--errors takes text or json"));
}

TEST_CASE("what stands behind -- is not reckon's") {
  const Workspace w;
  const Output r =
      w.run("import ai-platform gcloud ai-platform jobs submit training j -- --errors xml");
  INFO(r.err);
  CHECK(r.code == 0);
}
