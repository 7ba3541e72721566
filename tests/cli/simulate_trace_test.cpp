#include <algorithm>
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
    for (const char* command : {"explain ", "compare "}) {
      const Output r = w.run(command + scenario);
      INFO(command << r.err);
      CHECK(r.code == 2);
      CHECK(contains(r.err, "only 'reckon simulate' and 'reckon check' answer a trace of jobs"));
    }
  CHECK(w.run("simulate " + kGavel + " --html a.html").code == 2);
  CHECK(w.run("simulate " + kGavel + " --sweep cluster.pools.v100.nodes=6,36 --memo a.md").code ==
        2);
}

namespace {

constexpr const char* kDrawn =
    "arrivals:\n  period: 4d\n  warm_up: 1d\n  classes:\n"
    "    - {name: small, jobs_per_hour: 20, gpus: {1: 50%, 2: 50%}, duration: !lognormal {median: "
    "30min, p95: 6h}, teams: {a: 1, b: 3}, users: 2}\n"
    "cluster:\n  provider: on_premises\n  scheduler: {policy: easy_backfill}\n  pools:\n"
    "    - {name: p, nodes: 8, accelerator: {type: A100-SXM4-80, count: 8}, machine: "
    "{vcpu: 8, memory: 64GiB, network: 10Gbps}}\n"
    "expect: [p95(wait) <= 10h, fairness >= 10%, mean(slowdown) <= 1000, preemptions == 0]\n";

}  // namespace

TEST_CASE("drawn jobs are simulated without a trace, by any number of threads alike") {
  const Workspace w;
  w.write("q.yaml", kDrawn);
  const Output one = w.run("simulate q.yaml --replications 3 --threads 1 --format json");
  INFO(one.err);
  REQUIRE(one.code == 0);
  CHECK(one.out == w.run("simulate q.yaml --replications 3 --threads 4 --format json").out);
  CHECK(one.out != w.run("simulate q.yaml --replications 3 --seed 9 --format json").out);
  const json j = json::parse(one.out);
  CHECK(j["replications"] == 3);
  CHECK(j["jobs"]["arrived"].get<double>() == Approx(20 * 96).margin(200));
  CHECK(j["jobs"]["measured"].get<double>() < 20 * 96 * 0.85);
  CHECK(j["teams"].size() == 2);
  CHECK(j["slowdown"]["mean"].get<double>() >= 1);
  CHECK(w.run("check q.yaml").code == 0);
  const Output table = w.run("simulate q.yaml");
  CHECK(contains(table.out, "fairness"));
  CHECK(contains(table.out, "GPU-hours"));
}

TEST_CASE("a sweep tells how many nodes keep the wait short, and CSV tells each job") {
  const Workspace w;
  w.write("q.yaml", kDrawn);
  const Output r =
      w.run("simulate q.yaml --sweep cluster.pools.p.nodes=4..16..4 --format json --csv s.csv");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const json points = json::parse(r.out)["sweep"];
  REQUIRE(points.size() == 4);
  for (std::size_t k = 1; k < points.size(); ++k)
    CHECK(points[k]["queue"]["waiting_seconds"]["p95"] <=
          points[k - 1]["queue"]["waiting_seconds"]["p95"]);
  CHECK(contains(read_all(w.path("s.csv")), "cluster.pools.p.nodes,wait_mean_seconds"));
  CHECK(contains(w.run("simulate q.yaml --sweep cluster.pools.p.nodes=4,8").out, "wait p95"));
  REQUIRE(w.run("simulate q.yaml --csv jobs").code == 0);
  const std::string jobs = read_all(w.path("jobs/jobs.csv")),
                    teams = read_all(w.path("jobs/teams.csv"));
  CHECK(jobs.starts_with("job,line,team,user,queue,qos,priority,gpus,submit_seconds"));
  CHECK(std::count(jobs.begin(), jobs.end(), '\n') > 1000);
  CHECK(std::count(teams.begin(), teams.end(), '\n') == 3);
  CHECK(w.run("simulate " + kOpenb + " --csv pods").code == 2);
}

TEST_CASE("plan finds the least limit of GPUs with which Karpenter's nodes keep a limit") {
  const Workspace w;
  const std::string file = "'" RECKON_SOURCE_DIR "/scenarios/shared-karpenter.yaml'";
  const std::string few = file + " --replications 2";
  const Output r = w.run("plan " + few + " --limit 'p95(wait) <= 30min' --format json");
  INFO(r.err << r.out);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  CHECK(j["pool"] == "a10g");
  CHECK(j["nodes_now"] == 128);
  const int fewest = j["nodes"].get<int>();
  const auto with = [&](int gpus) {
    const Output at =
        w.run("simulate " + few +
              " --format json --set 'cluster.karpenter.nodePools.a10g.limits={nvidia.com/gpu: " +
              std::to_string(gpus) + "}'");
    const json answer = json::parse(at.out);
    return answer["karpenter"]["starved_jobs"] == 0 &&
           answer["waiting_seconds"]["p95"].get<double>() <= 1800;
  };
  CHECK(with(fewest));
  CHECK_FALSE(with(fewest - 1));
  // To protect pods or not, and the other score, with their costs.
  REQUIRE(j["changes"].size() == 2);
  for (const json& change : j["changes"]) CHECK(change["cost_week"].get<double>() > 0);
  CHECK(j["cost_week_now"].get<double>() > 0);
  const Output told = w.run("plan " + few + " --limit 'p95(wait) <= 30min' --memo k.md");
  CHECK(contains(told.out,
                 "needs a limit of " + std::to_string(fewest) + " GPUs of NodePool a10g (now 128"));
  CHECK(contains(read_all(w.path("k.md")), "One GPU fewer is too few."));
  CHECK(contains(w.run("plan " + few + " --limit 'p95(wait) <= 30min' --pool b").err,
                 "there is no such NodePool; there are: a10g"));
  REQUIRE(w.run("simulate " + few + " --html k.html --trace k.json").code == 0);
  CHECK(contains(read_all(w.path("k.html")), "came and went"));
  CHECK(json::parse(read_all(w.path("k.json")))["traceEvents"].size() > 1000);
}

TEST_CASE("plan finds the fewest nodes that keep a limit") {
  const Workspace w;
  w.write("q.yaml", kDrawn);
  const Output r = w.run("plan q.yaml --limit 'p95(wait) <= 1h' --format json");
  INFO(r.err << r.out);
  REQUIRE(r.code == 0);
  const json j = json::parse(r.out);
  const int fewest = j["nodes"].get<int>();
  CHECK(j["pool"] == "p");
  CHECK(j["nodes_now"] == 8);
  const auto p95 = [&](int nodes) {
    const Output at =
        w.run("simulate q.yaml --format json --set cluster.pools.p.nodes=" + std::to_string(nodes));
    return json::parse(at.out)["waiting_seconds"]["p95"].get<double>();
  };
  CHECK(p95(fewest) <= 3600);
  CHECK(p95(fewest - 1) > 3600);
  CHECK(contains(w.run("plan q.yaml --limit 'p95(wait) <= 1h'").out,
                 "p95(wait) <= 1h needs " + std::to_string(fewest) + " nodes of pool p (now 8)"));
  CHECK(w.run("plan q.yaml --limit 'jct <= 1s'").code == 1);
  const Output tried = w.run(
      "plan q.yaml --limit 'p95(wait) <= 1h' --try cluster.scheduler.policy=sjf --try "
      "cluster.pools.p.nodes=64 --format json");
  INFO(tried.err);
  REQUIRE(tried.code == 0);
  CHECK(json::parse(tried.out)["changes"].size() >= 2);
  w.run("plan q.yaml --limit 'p95(wait) <= 1h' --memo q.md");
  const std::string memo = read_all(w.path("q.md"));
  CHECK(contains(memo, "## Recommendation"));
  CHECK(contains(memo, "The limit is p95(wait) "));
  CHECK(contains(memo, "One node fewer is too few."));
  const Output out_of_place = w.run("plan q.yaml --limit 'p95(wait) <= 1h' --svg q.svg");
  CHECK(out_of_place.code == 2);
  CHECK(contains(out_of_place.err, "--svg plans one job"));
  const Output deadline = w.run("plan q.yaml --limit 'p95(wait) <= 1h' --deadline 3h");
  CHECK(deadline.code == 2);
  CHECK(contains(deadline.err, "--deadline 3h"));
  const Output no_limit = w.run("plan q.yaml");
  CHECK(no_limit.code == 2);
  CHECK(contains(no_limit.err, "--limit says what its nodes have to keep"));
  CHECK(contains(w.run("plan q.yaml --limit 'utilization >= 50%'").err, "is no upper limit"));
  CHECK(contains(w.run("plan q.yaml --limit 'wait <= 1h' --pool x").err,
                 "--pool x: the cluster has no such pool; it has: p\n"));
}

TEST_CASE("each policy answers the same list, and a job that can never run is told why") {
  const Workspace w;
  w.write("jobs.csv",
          "submit_seconds,duration_seconds,gpus,team,user,queue\n0,3600,8,a,u,x\n0,3600,8,b,v,x\n"
          "60,60,1,a,u,x\n60,60,99,a,u,x\n");
  w.write("q.yaml",
          "trace: {file: jobs.csv, format: csv}\n"
          "cluster:\n  provider: on_premises\n  scheduler: {policy: fifo}\n  pools:\n"
          "    - {name: p, nodes: 1, accelerator: {type: A100-SXM4-80, count: 8}, machine: "
          "{vcpu: 8, memory: 64GiB, network: 10Gbps}}\n");
  const std::string slurm =
      " --set 'cluster.scheduler={policy: slurm, slurm: {PriorityWeightFairshare: 1000, "
      "partitions: [{name: x, Nodes: [p]}]}}'";
  const std::string kueue =
      " --set 'cluster.scheduler={policy: kueue, kueue: {clusterQueues: [{name: x, flavors: "
      "[{name: p, nominalQuota: 8}]}]}}'";
  for (const std::string& set :
       {std::string(), " --set cluster.scheduler.policy=sjf" + slurm,
        std::string(" --set cluster.scheduler.policy=srtf"),
        std::string(" --set cluster.scheduler.policy=las"), slurm, kueue}) {
    const Output r = w.run("simulate q.yaml --format json" + set);
    INFO(set << r.err);
    REQUIRE(r.code == 0);
    const json j = json::parse(r.out);
    CHECK(j["jobs"]["never"] == 1);
    CHECK(j["jobs"]["measured"] == 3);
    CHECK(contains(r.out, "line 5 of the list"));
    CHECK(contains(r.out, "asks for 99 GPUs: "));
  }
  const Output unknown = w.run(
      "simulate q.yaml --set 'cluster.scheduler={policy: slurm, slurm: "
      "{partitions: [{name: y}]}}'");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "jobs name the partition 'x', which is not there"));
  const Output pool = w.run(
      "simulate q.yaml --set 'cluster.scheduler={policy: slurm, slurm: "
      "{partitions: [{name: x, Nodes: [q]}]}}'");
  CHECK(contains(pool.err, "'q' is no pool with GPUs"));
}
