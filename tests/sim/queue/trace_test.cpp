#include "sim/queue/trace.h"

#include <catch2/catch.hpp>

#include "sim/queue/lists/openb_csv.h"
#include "sim/scenario/yaml/scenario_yaml.h"

using namespace reckon;
using Catch::Contains;

namespace {

const std::string kScenarios = RECKON_SOURCE_DIR "/scenarios/";

Expected<TraceQuestion> question(const std::string& file, std::vector<std::string> sets = {}) {
  const auto scenario = read_scenario(kScenarios + file, sets);
  if (!scenario) return tl::unexpected(scenario.error());
  return load_trace(*scenario);
}

}  // namespace

TEST_CASE("the shipped traces are simulated as the scenario says") {
  const auto openb = question("openb-fgd.yaml", {"cluster.scheduler.policy=best_fit"});
  REQUIRE(openb);
  const TraceResult r = simulate_trace(*openb, 1, 1);
  REQUIRE(r.curve);
  CHECK(r.curve->gpu_percent.size() == 130);
  CHECK(r.gpus == 6212);
  CHECK(r.seed == 42);
  CHECK(*r.allocation > 0.9);
  CHECK_FALSE(r.completion);
  const auto gavel = question("gavel-fifo.yaml");
  REQUIRE(gavel);
  const TraceResult g = simulate_trace(*gavel, 5, 1);
  CHECK(g.replications == 1);  // it draws nothing
  CHECK(g.measured == 200);
  CHECK(g.gpus == 108);
  CHECK_FALSE(g.curve);
  CHECK_THAT(g.warnings.front(), Contains("line 16 of the list repeats"));
}

TEST_CASE("any number of threads gives the same mean over replications") {
  const auto asked = question("openb-fgd.yaml", {"cluster.scheduler.policy=random"});
  REQUIRE(asked);
  const TraceResult one = simulate_trace(*asked, 4, 1), three = simulate_trace(*asked, 4, 3);
  CHECK(one.curve->gpu_percent == three.curve->gpu_percent);
  CHECK(one.curve->fragmentation_percent == three.curve->fragmentation_percent);
  TraceQuestion second = *asked;
  second.seed += 1;
  CHECK(simulate_trace(second, 1, 1).curve->gpu_percent != one.curve->gpu_percent);
}

TEST_CASE("a trace's files are looked for in its directory first, then beside the scenario") {
  const std::string directory = "trace.directory=" + kScenarios + "traces/gavel";
  const auto found = question(
      "gavel-fifo.yaml",
      {directory, "trace.file=fifo_perf_6.csv", "trace.running=24", "cluster.pools.v100.nodes=6"});
  REQUIRE(found);
  CHECK(std::get<GavelQuestion>(found->work).list.running == 22);
  const auto missing = question("gavel-fifo.yaml", {"trace.file=nowhere.csv"});
  REQUIRE_FALSE(missing);
  CHECK(
      format(missing.error().front())
          .starts_with("--set trace.file=nowhere.csv: error: the file 'nowhere.csv' is not found"));
}

TEST_CASE("questions that do not go together are told where they stand") {
  const auto what = [](std::vector<std::string> sets, const char* file) {
    const auto asked = question(file, std::move(sets));
    REQUIRE_FALSE(asked);
    return asked.error().front().what;
  };
  CHECK_THAT(what({"trace.window=100000"}, "gavel-fifo.yaml"),
             Contains("the window has 100000 jobs"));
  CHECK_THAT(what({"cluster.scheduler.policy=fifo"}, "gavel-fifo.yaml"),
             Contains("format gavel needs a policy of Gavel"));
  CHECK_THAT(what({"trace.window=5"}, "openb-fgd.yaml"), Contains("running and window"));
  CHECK_THAT(what({"cluster.scheduler.policy=fifo"}, "openb-fgd.yaml"),
             Contains("trace.load does not go with policy fifo"));
}

TEST_CASE("the lists of openb, and their mistakes") {
  const std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  CHECK(read_openb_nodes("n.csv", nodes + "a,32000,1000,2,P100\n")->front().gpus == 2);
  CHECK_THAT(read_openb_nodes("n.csv", nodes + "a,32000,1000,0,\n").error().front().what,
             Contains("no node has a GPU"));
  CHECK_THAT(format(read_openb_nodes("n.csv", nodes + "a,32000,1000,17,P100\n").error().front()),
             Contains("n.csv:2:14: error: gpu is '17', but must be a whole number from 0 to 16"));
  const std::string pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\n";
  const auto read = read_openb_pods(
      "p.csv", pods + "b,1000.0,1,1,500,T4|A10,LS\na,2000,1,0,0,,LS\nc,1000,1,1,1500,,BE\n");
  REQUIRE(read);
  CHECK((*read)[0].cpu_milli == 2000);  // in order of names
  CHECK((*read)[1].models == "T4|A10");
  CHECK((*read)[2].gpu_milli == kWholeGpu);
  const auto bad = read_openb_pods("p.csv", pods + "a,1,1,2,500,,\nb,1,1,1,0,,\n");
  REQUIRE(bad.error().size() == 2);
  CHECK_THAT(format(bad.error()[0]), Contains("p.csv:2:9: error: 2 GPUs of 500 thousandths each"));
  CHECK_THAT(format(bad.error()[1]), Contains("p.csv:3:9: error: gpu_milli is '0'"));
}
