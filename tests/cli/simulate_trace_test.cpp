#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;
using nlohmann::json;

namespace {
const std::string kOpenb = "'" RECKON_SOURCE_DIR "/scenarios/openb-fgd.yaml'";
const std::string kGavel = "'" RECKON_SOURCE_DIR "/scenarios/gavel-fifo.yaml'";
}  // namespace

TEST_CASE("simulate answers a load of pods with lists over each percent of it") {
  const Workspace w;
  const Output r = w.run("simulate " + kOpenb +
                         " --set cluster.scheduler.policy=best_fit --set trace.load=110% --seed 43 "
                         "--format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["policy"] == "best_fit");
  CHECK(j["seed"] == 43);
  CHECK(j["allocation"]["gpu_percent"].size() == 110);
  CHECK(j["allocation"]["arrived_percent"][79] == 80);
  CHECK(j["allocation"]["gpu_percent"][79].get<double>() == Approx(80).margin(0.1));
  CHECK(j["fragmentation_percent"].size() == 110);
  CHECK(j["jct_seconds"].is_null());
}

TEST_CASE("simulate answers a list of jobs with waiting and completion, and check its lines") {
  const Workspace w;
  const Output r = w.run("simulate " + kGavel + " --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["jobs"]["measured"] == 200);
  CHECK(j["jct_seconds"]["mean"].get<double>() == Approx(45'680).epsilon(0.005));
  CHECK(j["waiting_seconds"]["p50"] < j["waiting_seconds"]["p95"]);
  CHECK(j["allocation"].is_null());
  const Output table = w.run("simulate " + kGavel);
  CHECK(contains(table.out, "completion (JCT)"));
  CHECK(w.run("check " + kGavel).code == 0);
}

TEST_CASE("a list of one's own waits its turn") {
  const Workspace w;
  w.write("jobs.csv",
          "job_id,submit_seconds,duration_seconds,gpus\na,0,3600,8\nb,0,3600,8\nc,60,60,1\n");
  w.write("q.yaml",
          "trace: {file: jobs.csv, format: csv}\n"
          "cluster:\n  provider: on_premises\n  scheduler: {policy: fifo}\n  pools:\n"
          "    - {name: a, nodes: 1, accelerator: {type: A100-SXM4-80, count: 8}, machine: "
          "{vcpu: 8, memory: 64GiB, network: 10Gbps}}\n"
          "expect: [p95(wait) <= 3h, mean(wait) <= 30min, latency <= 1s]\n");
  const Output r = w.run("check q.yaml");
  CHECK(r.code == 1);
  CHECK(contains(r.out, "PASS p95(wait) <= 3h"));
  CHECK(contains(r.out, "FAIL mean(wait) <= 30min"));  // (0 + 3600 + 7140) / 3 s
  CHECK(contains(r.out, "FAIL latency <= 1s"));
  w.write("jobs.csv", "job_id,submit_seconds,duration_seconds,gpus\na,0,x,8\n");
  const Output wrong = w.run("simulate q.yaml");
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.err, "jobs.csv:2:5: error: duration_seconds is 'x'"));
}

TEST_CASE("commands that need a plan say who answers a trace") {
  const Workspace w;
  for (const std::string& scenario : {kOpenb, kGavel})
    for (const char* command : {"plan ", "explain ", "compare "}) {
      const Output r = w.run(command + scenario);
      INFO(command << r.err);
      CHECK(r.code == 2);
      CHECK(contains(r.err, "only 'reckon simulate' and 'reckon check' answer a trace of jobs"));
    }
  CHECK(w.run("simulate " + kGavel + " --html a.html").code == 2);
  const Output sweep = w.run("simulate " + kGavel + " --sweep cluster.pools.v100.nodes=6..36");
  CHECK(sweep.code == 2);
  CHECK(contains(sweep.err, "--sweep does not answer a trace of jobs yet"));
}
