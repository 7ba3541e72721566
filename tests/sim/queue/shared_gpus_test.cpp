#include <array>
#include <catch2/catch.hpp>

#include "sim/queue/queue_history.h"
#include "sim/queue/snapshot/scenario_snapshot.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// GPUs that are cut into devices: MIG instances and time slices.
using namespace reckon;
using Catch::Contains;

namespace {

constexpr const char* kNotebooks = R"(name: notebooks
cluster:
  provider: on_premises
  scheduler: SCHEDULER
  pools:
    - name: mig
      nodes: 1
      accelerator:
        {type: A100-SXM4-80, count: 2, shared: {resource: nvidia.com/mig-1g.10gb, devices: 7}}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}
    - name: whole
      nodes: 1
      accelerator: {type: A100-SXM4-80, count: 4}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}
arrivals:
  period: 10d
  classes:
    - {name: notebook, jobs_per_hour: 4, gpus: 1, duration: 2h, resource: nvidia.com/mig-1g.10gb}
    - {name: training, jobs_per_hour: 1, gpus: 2, duration: 1h}
)";

Expected<TraceQuestion> notebooks(const std::string& scheduler, std::vector<std::string> sets = {},
                                  std::string text = kNotebooks) {
  text.replace(text.find("SCHEDULER"), 9, scheduler);
  const auto scenario = parse_scenario(text, "notebooks.yaml", sets);
  if (!scenario) return tl::unexpected(scenario.error());
  return load_trace(*scenario);
}

constexpr std::array kSchedulers{
    "{policy: fifo}",
    "{policy: easy_backfill}",
    "{policy: sjf}",
    "{policy: srtf}",
    "{policy: las}",
    "{policy: kubernetes}",
    "{policy: slurm, slurm: {partitions: [{name: all, Default: true}]}}",
    "{policy: kueue, kueue: {clusterQueues: [{name: q, flavors: [{name: whole, nominalQuota: 4}, "
    "{name: mig, nominalQuota: 14}]}]}}"};

}  // namespace

TEST_CASE("jobs get the devices that they ask for, whole GPUs the others, under every policy") {
  for (const char* scheduler : kSchedulers) {
    INFO(scheduler);
    const auto asked = notebooks(scheduler);
    REQUIRE(asked);
    const auto record = record_queue(*asked);
    REQUIRE(record);
    const auto& groups = std::get<QueueQuestion>(asked->work).groups;
    CHECK(gpus_of(groups) == 14 + 4);
    CHECK(whole_gpus_of(groups) == 2 + 4);
    std::size_t notebooks_seen = 0;
    double gpu_seconds = 0;
    for (const Holding& h : record->holdings) {
      const JobRequest& job = record->list.jobs[h.job];
      const bool notebook = job.owner.resource >= 0;
      CHECK(h.part.node == (notebook ? 0 : 1));
      CHECK(job.devices_of_gpu == (notebook ? 7 : 1));
      notebooks_seen += notebook ? 1 : 0;
      gpu_seconds += to_seconds(h.end - h.begin).count() * h.part.gpus / job.devices_of_gpu;
    }
    CHECK(notebooks_seen > 500);
    CHECK(record->run.never.empty());
    CHECK(record->run.gpu_seconds == Approx(gpu_seconds));
    CHECK(record->run.utilization == Approx(gpu_seconds / (6 * record->run.makespan_seconds)));
  }
}

TEST_CASE("notebooks on MIG instances wait as in M/D/c, each on a seventh of a GPU") {
  // 4 an hour of 2 h each are 8 devices in use of 14, and hardly anybody waits.
  const auto asked = notebooks(
      "{policy: fifo}", {"arrivals.classes.training.jobs_per_hour=0.001", "arrivals.period=300d"});
  REQUIRE(asked);
  const auto record = record_queue(*asked);
  double device_hours = 0;
  for (const Holding& h : record->holdings)
    if (h.part.node == 0) device_hours += to_seconds(h.end - h.begin).count() / 3600;
  CHECK(device_hours / (300 * 24) == Approx(8).epsilon(0.03));
  CHECK(record->run.utilization == Approx(8.0 / 7 / 6).epsilon(0.04));
}

TEST_CASE("pictures count devices as parts of a GPU") {
  const auto asked = notebooks("{policy: easy_backfill}");
  REQUIRE(asked);
  const auto record = record_queue(*asked);
  const auto& groups = std::get<QueueQuestion>(asked->work).groups;
  const QueueSeries series =
      queue_series(record->list, record->run, {record->holdings, groups}, 50);
  CHECK(series.gpus == 6);
  double mean = 0;
  for (std::size_t k = 0; k < series.in_use.size(); ++k) {
    CHECK(series.in_use[k] <= 6 + 1e-9);
    CHECK(series.stranded[k] + series.in_use[k] <= 6 + 1e-9);
    mean += series.in_use[k] / double(series.in_use.size());
  }
  CHECK(mean / 6 == Approx(record->run.utilization).epsilon(1e-6));
}

TEST_CASE("free devices are of no use to jobs that ask for whole GPUs") {
  QueueQuestion q;
  q.groups = {{.nodes = 1, .gpus = 14, .cell = 0, .resource = "mig", .devices_of_gpu = 7},
              {.nodes = 1, .gpus = 4, .cell = 1}};
  q.pools = q.group_names = {"mig", "whole"};
  for (int k = 0; k < 2; ++k) q.list.jobs.push_back(recorded_job({}, std::chrono::seconds(100), 4));
  q.list.jobs[0].owner.resource = q.list.names.resources.number("mig");
  set_devices(q.list, q.groups);
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const QueueRun r = run_queue(q, q.list, 0, 2, options);
  const QueueSeries series = queue_series(q.list, r, {holdings, q.groups}, 1);
  CHECK(series.in_use[0] == Approx(4.0 / 7 + 4));
  // Ten devices are free: half of the jobs, the whole ones, cannot use any of them.
  CHECK(series.stranded[0] == Approx(10.0 / 7 / 2));
}

TEST_CASE("a job that asks for more devices than there are is told so") {
  const auto asked = notebooks("{policy: fifo}", {"arrivals.classes.notebook.gpus=15"});
  REQUIRE(asked);
  const TraceResult r = simulate_trace(*asked, 1, 1);
  CHECK(r.never > 500);
  CHECK_THAT(r.warnings.front(), Contains("asks for 15 nvidia.com/mig-1g.10gb: its nodes have 14"));
}

TEST_CASE("a team is charged for its part of a GPU") {
  const auto asked = notebooks(
      "{policy: fifo}",
      {"cluster.pools.mig.machine.price=14 USD/h", "cluster.pools.whole.machine.price=4 USD/h",
       "arrivals.classes.notebook.teams={lab: 1}", "arrivals.classes.training.teams={llm: 1}"});
  REQUIRE(asked);
  const TraceResult r = simulate_trace(*asked, 1, 1);
  for (const TeamAnswer& team : r.teams) {
    INFO(team.name);
    const double gpu_hours = team.gpu_seconds / 3600;
    // 14 USD an hour for two GPUs of seven devices: a device is 1 USD; a whole GPU is 1 USD.
    CHECK(*team.usd == Approx(team.name == "lab" ? gpu_hours * 7 : gpu_hours).epsilon(1e-6));
  }
}

TEST_CASE("devices that no pool has, and shares that no GPU has, are told where they stand") {
  const auto what = [](std::vector<std::string> sets, std::string scheduler = "{policy: fifo}") {
    const auto asked = notebooks(scheduler, std::move(sets));
    REQUIRE_FALSE(asked);
    return format(asked.error().front());
  };
  CHECK_THAT(what({"arrivals.classes.notebook.resource=nvidia.com/mig-1g.5gb"}),
             Contains("jobs ask for 'nvidia.com/mig-1g.5gb', which no pool has; did you mean "
                      "'nvidia.com/mig-1g.10gb'?"));
  CHECK_THAT(what({"cluster.pools.mig.accelerator.shared.devices=8"}),
             Contains("a GPU has 7 slices, and so 7 instances of mig-1g.10gb at most"));
  CHECK_THAT(what({"cluster.pools.mig.accelerator.shared.resource=nvidia.com/mig-3g.40gb",
                   "cluster.pools.mig.accelerator.shared.devices=3"}),
             Contains("a GPU has 7 slices, and so 2 instances of mig-3g.40gb at most"));
  CHECK_THAT(what({"cluster.pools.mig.accelerator.shared.resource=nvidia.com/gpu"}),
             Contains("nvidia.com/gpu are whole GPUs"));
}

TEST_CASE("GPUs are shared by the jobs of a queue alone") {
  const auto scenario = read_scenario(
      RECKON_SOURCE_DIR "/scenarios/gke-p100-autoscaling.yaml",
      std::vector<std::string>{"cluster.pools.p100.accelerator.shared={resource: a, devices: 2}"});
  REQUIRE_FALSE(scenario);
  CHECK_THAT(scenario.error().front().what,
             Contains("pool 'p100' has shared GPUs, which are of jobs that share a cluster"));
}

TEST_CASE("who submits a training to such a cluster sees its whole GPUs, and who waits for them") {
  std::string text = kNotebooks;
  text.replace(text.find("SCHEDULER"), 9, "{policy: fifo}");
  const auto scenario = parse_scenario(text, "notebooks.yaml");
  REQUIRE(scenario);
  const auto asked = load_trace(*scenario);
  REQUIRE(asked);
  const auto snapshot = snapshot_of(scenario->scenario, *asked);
  REQUIRE(snapshot);
  REQUIRE(snapshot->nodes.size() == 1);
  CHECK(snapshot->nodes[0].pool == "whole");
  CHECK(snapshot->history.jobs.size() > 100);
  for (const JobRequest& job : snapshot->history.jobs) CHECK(job.gpus() == 2);
}
