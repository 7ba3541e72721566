#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "support/small_job.h"

// What `reckon run` learns of this machine, and what the next forecast makes of it.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_in(const fs::path& directory) {
  std::vector<fs::path> found;
  if (fs::exists(directory))
    for (const fs::directory_entry& entry : fs::directory_iterator(directory))
      found.push_back(entry.path());
  return found;
}

struct Range {
  double p5 = 0, p95 = 0;
};
Range forecast_of(const Workspace& w, const std::string& out) {
  const auto json = nlohmann::json::parse(read_all(w.path(out) / "forecast.json"));
  return {json.at("time_seconds").at("p5"), json.at("time_seconds").at("p95")};
}

}  // namespace

TEST_CASE("the first run probes this machine, the second knows it and the job") {
  const Workspace w;
  w.write("job.yaml", small_job("mlp", "{kind: single}", 200) + small_pool(1));
  const std::string on = "RECKON_PROBE=on";
  const Output first = w.run("run job.yaml --out first", on);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.err, Catch::Contains("first run on this machine"));
  const fs::path machines = w.path(".data-home") / "reckon" / "machines";
  const auto kept = files_in(machines);
  REQUIRE(kept.size() == 1);
  CHECK_THAT(read_all(kept.front()), Catch::Contains("\"kind\":\"passes\""));

  const Output second = w.run("run job.yaml --out second", on);
  REQUIRE(second.code == 0);
  CHECK_THAT(second.err, !Catch::Contains("first run"));
  CHECK_THAT(first.out, Catch::Contains("by a probe of this machine: +-"));
  CHECK_THAT(second.out, Catch::Contains("by a probe of this machine and 1 earlier run on it: +-"));
  const Range before = forecast_of(w, "first"), after = forecast_of(w, "second");
  CHECK(after.p95 / after.p5 < before.p95 / before.p5);

  SECTION("a damaged file of the machine is made anew") {
    w.write(kept.front().lexically_relative(w.path("")).string(), "{\"record\":\n");
    const Output third = w.run("run job.yaml --out third", on);
    CHECK(third.code == 0);
    CHECK_THAT(third.err, Catch::Contains("first run on this machine"));
  }
}

TEST_CASE("RECKON_PROBE=off probes nothing and keeps nothing of the machine") {
  const Workspace w;
  w.write("job.yaml", small_job("mlp", "{kind: single}", 20) + small_pool(1));
  REQUIRE(w.run("run job.yaml --out first", "RECKON_PROBE=off").code == 0);
  CHECK(files_in(w.path(".data-home") / "reckon" / "machines").empty());
}
