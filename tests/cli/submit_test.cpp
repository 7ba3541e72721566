#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

// `simulate JOB --cluster SNAPSHOT`.
using namespace reckon::test;
using nlohmann::json;

namespace {

const std::string kSubmitJob = "simulate '" RECKON_SOURCE_DIR "/scenarios/own-a100-job.yaml' ";
const std::string kSlurm = "--cluster '" RECKON_SOURCE_DIR "/tests/data/slurm-22.05/";

}  // namespace

TEST_CASE("a job submitted to an exported cluster gets its start, its end and the reason") {
  const Workspace w;
  const std::string both = kSlurm + "squeue.json' " + kSlurm + "sinfo.json' --replications 200 ";
  const Output table = w.run(kSubmitJob + both);
  INFO(table.out << table.err);
  REQUIRE(table.code == 0);
  CHECK(contains(table.out, "own-a100-job: 2 nodes of 8 A100-SXM4-80, queue batch"));
  CHECK(contains(table.out, "start"));
  CHECK(contains(table.out, "It waits for 2 nodes that are held now by:"));
  CHECK(contains(table.out, "what would change it"));
  CHECK(contains(table.out, "1 node of 8"));
  CHECK(contains(table.out, "submitted at 20:00"));
  const Output text = w.run(kSubmitJob + both + "--format json");
  REQUIRE(text.code == 0);
  const json j = json::parse(text.out);
  const json& start = j["start_forecast"]["start_seconds"];
  CHECK(start["p5"] <= start["p50"]);
  CHECK(start["p50"] <= start["p95"]);
  CHECK(j["start_forecast"]["end_seconds"]["p50"] > start["p50"]);
  CHECK(j["start_forecast"]["jobs_ahead"] == 2);
  CHECK(j["gpus"] == 16);
  // A node has four GPUs free for eight hours at most, so that half the gang cannot start at once.
  CHECK(j["alternatives"].size() >= 3);
  CHECK(w.run(kSubmitJob + both + "--format json --threads 1").out == text.out);
}

TEST_CASE("the tables of Slurm and a folder of files do as well") {
  const Workspace w;
  const Output r =
      w.run(kSubmitJob + kSlurm + "squeue.txt' " + kSlurm + "nodes.txt' --replications 50");
  INFO(r.err);
  CHECK(r.code == 0);
  w.run_shell("mkdir q && cp '" RECKON_SOURCE_DIR "/tests/data/slurm-22.05/'*.json q");
  CHECK(w.run(kSubmitJob + "--cluster q --replications 50").code == 0);
}

TEST_CASE("a queue scenario with a table of jobs is a cluster as well") {
  const Workspace w;
  w.write("today.csv",
          "job_id,gpus,waited_seconds,elapsed_seconds,limit_seconds,nodes,team\n"
          "7,128,600,3600,86400,,language\n8,8,60,,3600,,vision\n");
  const Output r = w.run(kSubmitJob + "--cluster '" RECKON_SOURCE_DIR
                                      "/scenarios/own-a100.yaml' --cluster today.csv --format json "
                                      "--replications 50");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["start_forecast"]["starts_at_once"] == 0);
  CHECK(j["start_forecast"]["waits_for"][0]["job"] == "7");
}

TEST_CASE("mistakes of a submission are told") {
  const Workspace w;
  const Output alone = w.run(kSubmitJob + "--queue batch");
  CHECK(alone.code == 2);
  CHECK(contains(alone.err, "--time-limit need --cluster"));
  const Output queue =
      w.run(kSubmitJob + kSlurm + "squeue.json' " + kSlurm + "sinfo.json' --queue btach");
  CHECK(queue.code == 2);
  CHECK(contains(queue.err, "the cluster has no queue 'btach'; did you mean 'batch'?"));
  CHECK(w.run(kSubmitJob + kSlurm + "squeue.json' --at noon").code == 2);
  const Output nodes = w.run(kSubmitJob + kSlurm + "squeue.json'");
  CHECK(nodes.code == 2);
  CHECK(contains(nodes.err, "no file lists the nodes"));
  CHECK(w.run(kSubmitJob + "--cluster nowhere").code == 2);
  CHECK(w.run(kSubmitJob + kSlurm + "squeue.json' --html a.html").code == 2);
}

TEST_CASE("a queue has a page and a trace") {
  const Workspace w;
  const std::string queue = "simulate '" RECKON_SOURCE_DIR "/scenarios/own-a100.yaml' ";
  const Output traced = w.run(queue + "--trace t.json");
  INFO(traced.err);
  REQUIRE(traced.code == 0);
  const json trace = json::parse(read_all(w.path("t.json")));
  double gpu_time = 0;
  std::size_t counters = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X")
      gpu_time += event["dur"].get<double>() * event["args"]["gpus"].get<double>();
    counters += event["ph"] == "C" ? 1 : 0;
    if (event["ph"] == "C") CHECK(event["args"].begin().value() >= 0);
  }
  const json j = json::parse(w.run(queue + "--format json").out);
  const double used = j["utilization"].get<double>() * j["makespan_seconds"].get<double>() * 128;
  CHECK(gpu_time / 1e6 == Approx(used).epsilon(1e-9));
  CHECK(counters > 1000);
}
