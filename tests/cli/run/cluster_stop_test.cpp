#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_directory.h"
#include "support/pod_of_job.h"

// `reckon stop` of a run in a cluster that a program of the shell plays.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

// A run of which no launcher lives: a part that began with attempt 2, now at attempt 3.
const char* const kOrphan = R"sh(#!/bin/sh
echo "$*" >> said
case "$*" in
  *lease*) echo 'Error from server (Forbidden): leases is forbidden' >&2; exit 1 ;;
  *"get configmap"*) cat state ;;
  *"get jobs"*) cat jobs ;;
  *logs*) cat log ;;
  *"get pods"*) if [ -e ended ]; then echo '{"items": []}'; else cat pods; fi ;;
  *"patch --filename"*) cat > /dev/null; touch ended ;;
esac
)sh";

}  // namespace

TEST_CASE("who stops a run without a launcher records its end, behind which nothing is paid") {
  const Workspace w;
  using nlohmann::json;
  const json parts = {{{"attempt", 0}, {"at_seconds", 0.0}}, {{"attempt", 2}, {"at_seconds", 0.5}}};
  EndRecord before;
  before.attempt = 1;
  before.spent = 2.5;
  w.write("state", json{{"metadata", {{"annotations", {{"reckon/phase", "running"}}}}},
                        {"data",
                         {{"started", RunClock::starting_now().text()},
                          {"parts", parts.dump()},
                          {"ends", json::array({json::parse(to_json(before))}).dump()}}}}
                       .dump());
  const json job = {{"metadata", {{"name", "orphan-3"}, {"labels", {{"reckon/attempt", "3"}}}}},
                    {"spec", {{"parallelism", 1}}}};
  w.write("jobs", json{{"items", json::array({job})}}.dump());
  w.write("pods", json{{"items", json::array({pod_of_job("orphan", 3, 0, false)})}}.dump());
  w.write("log", to_json(StepRecord{.attempt = 3, .step = 41}) + '\n');
  std::filesystem::permissions(w.write("kubectl", kOrphan), std::filesystem::perms::owner_all);
  const Output stop =
      w.run("stop orphan --on kubernetes", "RECKON_KUBECTL='" + w.path("kubectl").string() + "'");
  const std::string said = read_all(w.path("said"));
  INFO(stop.out << stop.err << said);
  REQUIRE(stop.code == 0);
  CHECK_THAT(stop.out, Contains("orphan: stopped"));
  const std::string patch = "patch configmap orphan-run --type merge --patch ";
  const std::size_t at = said.find(patch);
  REQUIRE(at != std::string::npos);
  CHECK(at < said.find("reckon/phase=stopped"));
  const std::size_t text = at + patch.size();
  const json data = json::parse(said.substr(text, said.find('\n', text) - text)).at("data");
  const json ends = json::parse(data.at("ends").get<std::string>());
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].at("spent_usd").get<double>() == 2.5);
  CHECK(ends[1].at("attempt") == 3);
  CHECK(ends[1].at("finished") == false);
  CHECK(ends[1].at("steps_done") == 42);
  CHECK(ends[1].at("at_seconds").get<double>() >= 0);
  CHECK(ends[1].at("at_seconds").get<double>() < 600);
}
