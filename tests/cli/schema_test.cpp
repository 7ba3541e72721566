#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/run_reckon.h"
#include "support/skip.h"

using namespace reckon::test;
using Json = nlohmann::json;

namespace {

/// Of files and switches: what tests/support/validate_scenarios.py prints.
std::vector<std::string> validated(const Workspace& w, const std::string& files) {
  if (std::system("python3 -c 'import yaml, jsonschema' 2>/dev/null") != 0)
    skip_test("python3-jsonschema or python3-yaml is not installed");
  w.write("schema.json", w.run("schema").out);
  const std::string command = "cd '" + w.path("").string() +
                              "' && python3 -W ignore '" RECKON_SOURCE_DIR
                              "/tests/support/validate_scenarios.py' schema.json " +
                              files + " >verdicts.txt 2>errors.txt";
  const int status = std::system(command.c_str());
  INFO(read_all(w.path("errors.txt")));
  REQUIRE(status == 0);
  std::istringstream lines(read_all(w.path("verdicts.txt")));
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}

std::string file_name(const std::string& verdict) {
  const std::string file = verdict.substr(0, verdict.find(".yaml") + 5);
  return file.substr(file.rfind('/') + 1);
}

}  // namespace

TEST_CASE("the schema is draft 7 and describes each key with an example") {
  const Workspace w;
  const Output r = w.run("schema");
  REQUIRE(r.code == 0);
  const Json schema = Json::parse(r.out);
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  const Json& scenario = schema["definitions"]["scenario"];
  CHECK(scenario["required"] == Json::array({"cluster"}));
  CHECK(scenario["additionalProperties"] == false);
  const Json& batch = scenario["properties"]["workload"]["properties"]["batch_per_accelerator"];
  CHECK(contains(batch["description"], "Samples of one accelerator in one step."));
  CHECK(batch["examples"] == Json::array({64}));
  const Json& kind =
      scenario["properties"]["workload"]["properties"]["strategy"]["properties"]["kind"];
  CHECK(std::count(kind["enum"].begin(), kind["enum"].end(), "parameter_server") == 1);
  const Json& job = scenario["properties"]["jobs"]["items"];
  CHECK(job["required"] ==
        Json::array({"name"}));  // a workload, unless cluster.scheduler starts it
  CHECK(w.run("schema x.yaml").code == 2);
}

TEST_CASE("every scenario that comes with reckon validates against the schema") {
  const Workspace w;
  const auto verdicts = validated(w, "'" RECKON_SOURCE_DIR "'/scenarios/*.yaml");
  CHECK(verdicts.size() >= 9);
  for (const std::string& verdict : verdicts) CHECK(verdict.starts_with("ok "));
}

TEST_CASE("every example in the schema is valid where it stands") {
  const Workspace w;
  const auto lines = validated(w, "--examples");
  REQUIRE_FALSE(lines.empty());
  CHECK(std::stoi(lines.back()) > 100);
  CHECK(lines.size() == 1);  // no "bad" line before the count
  for (const std::string& line : lines) INFO(line);
}

TEST_CASE("the schema refuses structural mistakes and leaves rules between keys to the reader") {
  const Workspace w;
  const auto verdicts = validated(w, "'" RECKON_SOURCE_DIR "'/tests/scenarios_bad/*.yaml");
  std::set<std::string> accepted;
  for (const std::string& verdict : verdicts)
    if (verdict.starts_with("ok ")) accepted.insert(file_name(verdict));
  // What each of these has wrong is no matter of one key's form.
  const std::set<std::string> structural{
      "absurd.yaml",       "binary.yaml",        "date.yaml",
      "deep_nesting.yaml", "empty.yaml",         "list_for_map.yaml",
      "map_for_list.yaml", "map_for_value.yaml", "missing_keys.yaml",
      "missing_unit.yaml", "negative.yaml",      "no_value.yaml",
      "not_a_number.yaml", "only_list.yaml",     "only_text.yaml",
      "pool_name.yaml",    "pool_words.yaml",    "many_mistakes.yaml",
      "jobs.yaml",         "bathtub.yaml",       "missing_keys_of_pool.yaml"};
  for (const std::string& name : structural) {
    INFO(name);
    CHECK_FALSE(accepted.contains(name));
  }
  CHECK(verdicts.size() - accepted.size() >= 30);
}

TEST_CASE("a file that extends another may leave out what the other has") {
  const Workspace w;
  w.write("part.yaml", "extends: base.yaml\ncluster: {pools: [{name: p100, nodes: 4}]}\n");
  w.write("wrong.yaml", "extends: base.yaml\ncluster: {pools: [{name: p100, nods: 4}]}\n");
  w.write("whole.yaml", "cluster: {pools: [{name: p100, nodes: 4}]}\n");
  const auto verdicts = validated(w, "part.yaml wrong.yaml whole.yaml");
  REQUIRE(verdicts.size() == 3);
  CHECK(verdicts[0].starts_with("ok "));
  CHECK(contains(verdicts[1], "nods"));
  CHECK(contains(verdicts[2], "'provider' is a required property"));
}
