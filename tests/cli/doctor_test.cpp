#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;

namespace {

std::map<std::string, nlohmann::json> checks_of(const Output& r) {
  std::map<std::string, nlohmann::json> out;
  const nlohmann::json report = nlohmann::json::parse(r.out);
  for (const auto& check : report["checks"]) out[check["name"]] = check;
  return out;
}

}  // namespace

TEST_CASE("doctor says what is there and what to do about what is not") {
  const Workspace w;
  const Output r = w.run("doctor --format json");
  REQUIRE(r.code == 0);
  const auto checks = checks_of(r);
  for (const char* name :
       {"catalogs", "referee", "cuda", "nccl", "gpu", "html", "cores", "terminal", "kubectl"}) {
    INFO(name);
    REQUIRE(checks.contains(name));
    const auto& check = checks.at(name);
    CHECK_FALSE(check["detail"].get<std::string>().empty());
    CHECK(check["what_to_do"].is_null() == check["ok"].get<bool>());
  }
  CHECK(checks.at("catalogs")["ok"] == true);
  CHECK(contains(checks.at("catalogs")["detail"], "digest "));
  CHECK(checks.at("terminal")["ok"] == false);  // the test reads a file
}

TEST_CASE("doctor exits with 0 where the catalogs, the referee and kubectl are missing") {
  const Workspace w;
  const Output r =
      w.run("doctor", "RECKON_CATALOGS=/nowhere/c RECKON_REFEREE=/nowhere/r PATH=/none");
  CHECK(r.code == 0);
  CHECK(contains(r.out, "catalogs   absent"));
  CHECK(contains(r.out, "/nowhere/c"));
  CHECK(contains(r.out, "set RECKON_CATALOGS"));
  CHECK(contains(r.out, "referee    absent"));
  CHECK(contains(r.out, "/nowhere/r"));
  CHECK(contains(r.out, "kubectl    absent"));
}

TEST_CASE("doctor finds kubectl where PATH has it") {
  const Workspace w;
  const std::string kubectl = w.write("bin/kubectl", "#!/bin/sh\n");
  std::filesystem::permissions(kubectl, std::filesystem::perms::owner_all);
  const auto checks =
      checks_of(w.run("doctor --format json", "PATH='" + w.path("bin").string() + "'"));
  CHECK(checks.at("kubectl")["ok"] == true);
  CHECK(checks.at("kubectl")["detail"] == kubectl);
}
