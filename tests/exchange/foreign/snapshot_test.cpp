#include "exchange/foreign/snapshot/snapshot_files.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>

#include "exchange/foreign/snapshot/slurm/words.h"
#include "sim/queue/snapshot/start_forecast.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

SnapshotFile data_file(const std::string& folder, const std::string& name) {
  std::ifstream in(RECKON_SOURCE_DIR "/tests/data/" + folder + "/" + name, std::ios::binary);
  return {name, {std::istreambuf_iterator<char>(in), {}}};
}

/// Of a cluster of four nodes with eight GPUs each under Slurm 22.05.8, as it printed them.
SnapshotFile slurm_file(const std::string& name) { return data_file("slurm-22.05", name); }

ClusterSnapshot read_all(const std::vector<SnapshotFile>& files,
                         std::optional<ClusterSnapshot> scenario = {}) {
  auto snapshot = read_snapshot(files, std::move(scenario), {}, test::shipped_catalog());
  if (!snapshot)
    for (const Diagnostic& d : snapshot.error()) FAIL(d.what);
  return std::move(*snapshot);
}

std::vector<std::string> snapshot_errors(const std::vector<SnapshotFile>& files) {
  const auto snapshot = read_snapshot(files, {}, {}, test::shipped_catalog());
  REQUIRE_FALSE(snapshot);
  std::vector<std::string> texts;
  for (const Diagnostic& d : snapshot.error()) texts.push_back(d.what);
  return texts;
}

const SnapshotJob& job_named(const ClusterSnapshot& s, const std::string& id) {
  const auto job = std::ranges::find(s.jobs, id, &SnapshotJob::id);
  REQUIRE(job != s.jobs.end());
  return *job;
}

}  // namespace

TEST_CASE("squeue --json and sinfo --json tell nodes, who holds them and who waits") {
  const ClusterSnapshot s = read_all({slurm_file("squeue.json"), slurm_file("sinfo.json")});
  CHECK(s.system == SnapshotSystem::slurm);
  REQUIRE(s.nodes.size() == 4);
  CHECK(s.nodes[3].name == "n3");
  CHECK(s.nodes[3].gpus == 8);
  CHECK(s.nodes[3].accelerator == "a100");
  CHECK(s.nodes[3].queues == std::vector<std::string>{"batch"});
  REQUIRE(s.jobs.size() == 6);  // without the held one, and the one without GPUs
  const SnapshotJob& pretrain = job_named(s, "14");
  CHECK(pretrain.gpus == 16);
  CHECK(pretrain.user == "carol");
  CHECK(pretrain.limit == Seconds{86'400});
  CHECK(pretrain.on == std::vector<std::pair<std::string, int>>{{"n1", 8}, {"n2", 8}});
  CHECK(job_named(s, "12").on == std::vector<std::pair<std::string, int>>{{"n0", 4}});
  const SnapshotJob& sweep = job_named(s, "17");  // --gpus=16
  CHECK(sweep.gpus == 16);
  CHECK_FALSE(sweep.start);
  CHECK(job_named(s, "16").gpus == 32);
  CHECK(job_named(s, "16").priority > sweep.priority);
  CHECK(s.at == *job_named(s, "12").start + 4);  // the last submits
  CHECK(s.notes ==
        std::vector<std::string>{
            "left out, as they are held or wait for another job or a time: 1 of the jobs",
            "left out, as they ask for no GPU: 1 of the jobs and pods"});
}

TEST_CASE("the tables of squeue and scontrol tell the same as the JSON") {
  const ClusterSnapshot json = read_all({slurm_file("squeue.json"), slurm_file("sinfo.json")});
  for (const char* nodes : {"nodes.txt", "sinfo.txt"}) {
    INFO(nodes);
    const ClusterSnapshot s = read_all({slurm_file("squeue.txt"), slurm_file(nodes)});
    REQUIRE(s.nodes.size() == 4);
    for (std::size_t n = 0; n < 4; ++n) {
      CHECK(s.nodes[n].name == json.nodes[n].name);
      CHECK(s.nodes[n].gpus == json.nodes[n].gpus);
      CHECK(s.nodes[n].accelerator == json.nodes[n].accelerator);
      CHECK(s.nodes[n].queues == json.nodes[n].queues);
      CHECK(s.nodes[n].usable);
    }
    CHECK(s.jobs.size() == 5);  // the table does not say what --gpus asks for
    for (const SnapshotJob& job : s.jobs) {
      INFO(job.id);
      const SnapshotJob& same = job_named(json, job.id);
      CHECK(job.gpus == same.gpus);
      CHECK(job.user == same.user);
      CHECK(job.queue == same.queue);
      CHECK(job.priority == same.priority);
      CHECK(job.submit == same.submit);
      CHECK(job.start == same.start);
      CHECK(job.limit == same.limit);
      CHECK(job.on == same.on);
    }
  }
}

TEST_CASE("Slurm's words for GPUs, hosts, times and states") {
  CHECK(slurm_gpus("gpu:a100:8(S:0-1),nvme:1")->count == 8);
  CHECK(slurm_gpus("gpu:a100:8(S:0-1)")->type == "a100");
  CHECK(slurm_gpus("gres:gpu:4")->count == 4);
  CHECK(slurm_gpus("cpu=64,gres/gpu=8,gres/gpu:h100=8")->count == 8);
  CHECK(slurm_gpus("gpu:2g.20gb:3,gpu:a100:1")->count == 4);
  CHECK(slurm_gpus("gpu")->count == 1);
  CHECK(slurm_gpus("(null)")->count == 0);
  CHECK(slurm_gpus("gpumem:80")->count == 0);
  CHECK_FALSE(slurm_gpus("gpu:a100:-1"));
  CHECK(slurm_hosts("n[0-2,07],login") ==
        std::vector<std::string>{"n0", "n1", "n2", "n07", "login"});
  CHECK(slurm_hosts("r[1-2]n[01-02]") ==
        std::vector<std::string>{"r1n01", "r1n02", "r2n01", "r2n02"});
  CHECK_FALSE(slurm_hosts("n[3-1]"));
  CHECK_FALSE(slurm_hosts("n[0-9999999]"));
  CHECK(slurm_time("2-01:00:00") == 2 * 86'400 + 3600);
  CHECK(slurm_time("1-2") == 26 * 3600);
  CHECK(slurm_time("90") == 5400);
  CHECK(slurm_time("30:15") == 1815);
  CHECK_FALSE(slurm_time("soon"));
  CHECK(slurm_node_is_up("MIXED"));
  CHECK(slurm_node_is_up("IDLE+CLOUD+POWERED_DOWN"));
  CHECK_FALSE(slurm_node_is_up("MIXED+DRAIN"));
  CHECK_FALSE(slurm_node_is_up("down*"));
}

TEST_CASE("pods of one job are one job, on the nodes that they run on") {
  const ClusterSnapshot s = read_all({data_file("kubernetes", "pods.json")});
  CHECK(s.system == SnapshotSystem::kubernetes);
  REQUIRE(s.nodes.size() == 2);
  CHECK(s.nodes[0].usable);
  CHECK_FALSE(s.nodes[1].usable);
  REQUIRE(s.jobs.size() == 2);
  const SnapshotJob& running = job_named(s, "ml/t");
  CHECK(running.gpus == 2);
  CHECK(running.priority == 5);
  CHECK(running.on.size() == 2);
  const SnapshotJob& waits = job_named(s, "ml/w");
  CHECK_FALSE(waits.start);
  CHECK(waits.limit == Seconds{7200});
  CHECK(waits.accelerator == s.nodes[0].accelerator);  // where its nodeSelector leads
  CHECK(s.at - *running.start == 3 * 3600 - 2 * 60);   // the node's heartbeat, at noon
}

TEST_CASE("Kueue's queues, quotas and workloads are those of its objects") {
  const ClusterSnapshot s = read_all({data_file("kubernetes", "kueue.json")});
  CHECK(s.system == SnapshotSystem::kueue);
  REQUIRE(s.scheduler.kueue->cluster_queues.size() == 1);
  const ClusterQueueSpec& team = s.scheduler.kueue->cluster_queues.front();
  CHECK(team.cohort == "all");
  CHECK(team.strategy == QueueingStrategy::strict_fifo);
  CHECK(team.preemption.within_cluster_queue == WithinPolicy::lower_priority);
  REQUIRE(team.flavors.size() == 1);
  CHECK(team.flavors[0].nominal_quota == 6);
  CHECK(team.flavors[0].borrowing_limit == 2);
  CHECK(s.nodes[0].pool == "big-flavor");
  CHECK(job_named(s, "ml/w1").gpus == 4);
  CHECK(job_named(s, "ml/w1").accelerator == "big-flavor");
  CHECK(job_named(s, "ml/w2").queue == "team");
  // Six of quota: w1 holds four, so that neither w2 nor one of two GPUs behind it starts now.
  Submission mine;
  mine.gpus = 2;
  mine.queue = "team";
  mine.times = {Seconds{600}};
  const StartForecast f = forecast_start(s, mine, 100, 1, 0);
  CHECK(f.at_once == 0);
  CHECK(f.ahead == 1);
}

TEST_CASE("a table of jobs stands for what runs and waits on the nodes of a scenario") {
  ClusterSnapshot scenario;
  scenario.system = SnapshotSystem::scenario;
  scenario.scheduler.policy = SchedulingPolicy::easy_backfill;
  scenario.nodes = {{.name = "a100-0", .gpus = 8, .pool = "a100"},
                    {.name = "a100-1", .gpus = 8, .pool = "a100"}};
  scenario.at = 1000;
  const SnapshotFile jobs{"jobs.csv",
                          "job_id,gpus,waited_seconds,elapsed_seconds,limit_seconds,nodes\n"
                          "one,12,5,100,3600,a100-0 a100-1\n"
                          "two,16,50,,7200,\n"};
  const ClusterSnapshot s = read_all({jobs}, scenario);
  REQUIRE(s.jobs.size() == 2);
  CHECK(s.jobs[0].start == 900);
  CHECK(s.jobs[0].submit == 895);
  CHECK(s.jobs[0].on == std::vector<std::pair<std::string, int>>{{"a100-0", 6}, {"a100-1", 6}});
  CHECK_FALSE(s.jobs[1].start);
}

TEST_CASE("what is wrong with exports is told together, with its place") {
  CHECK(snapshot_errors({}) ==
        std::vector<std::string>{"no file lists the nodes",
                                 "no file lists the running and waiting jobs"});
  CHECK(snapshot_errors({{"x.txt", "hello\n"}, {"y.json", "{\"a\": 1}"}, {"z", " \n"}}) ==
        std::vector<std::string>{"it is no export of a cluster that reckon reads",
                                 "its JSON has no items, jobs or nodes", "the file is empty"});
  const std::string head = "JOBID|STATE|SUBMIT_TIME|START_TIME|TIME_LIMIT|NODES|TRES_PER_NODE\n";
  CHECK(snapshot_errors(
            {{"q.txt", head + "1|RUNNING|noon|2026-11-26T17:36:16|1:00:00|1|gres:gpu:8\n" +
                           "2|PENDING|2026-11-26T17:36:16|N/A|soon|1|gres:gpu:8\n"},
             slurm_file("sinfo.txt")}) ==
        std::vector<std::string>{"'noon' is no date with its time", "'soon' is no time limit"});
  CHECK(snapshot_errors(
            {slurm_file("squeue.txt"), slurm_file("sinfo.json"), {"k.json", "{\"items\": []}"}})
            .front() == "its files are of several systems: Slurm, Kubernetes and a scenario");
}
