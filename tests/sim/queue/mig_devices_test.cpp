#include <array>
#include <catch2/catch.hpp>
#include <map>

#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Several MIG profiles on one GPU.
using namespace reckon;
using Catch::Contains;

namespace {

constexpr const char* kMixedMig = R"(name: mixed-mig
cluster:
  provider: on_premises
  scheduler: SCHEDULER
  pools:
    - name: mig
      nodes: 2
      accelerator:
        type: A100-SXM4-80
        count: 4
        mig-devices: {3g.40gb: 1, 2g.20gb: 1, 1g.10gb: 2}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps, price: 28 USD/h}
jobs:
  - {name: large, gpus: 1, duration: 1h, resource: nvidia.com/mig-3g.40gb, times: 9, every: 1s}
  - {name: medium, gpus: 1, duration: 1h, resource: nvidia.com/mig-2g.20gb, times: 8, every: 1s}
  - {name: small, gpus: 1, duration: 1h, resource: nvidia.com/mig-1g.10gb, times: 17, every: 1s}
)";

Expected<TraceQuestion> mixed_mig(const std::string& scheduler,
                                  const std::vector<std::string>& sets = {}) {
  std::string text = kMixedMig;
  text.replace(text.find("SCHEDULER"), 9, scheduler);
  const auto scenario = parse_scenario(text, "mig.yaml", sets);
  if (!scenario) return tl::unexpected(scenario.error());
  return load_trace(*scenario);
}

constexpr std::array kOfMixed{"{policy: fifo}",
                              "{policy: easy_backfill}",
                              "{policy: sjf}",
                              "{policy: srtf}",
                              "{policy: kubernetes}",
                              "{policy: slurm, slurm: {partitions: [{name: all, Default: true, "
                              "Nodes: [mig]}]}}",
                              "{policy: kueue, kueue: {clusterQueues: [{name: q, flavors: [{name: "
                              "mig, resources: [{name: nvidia.com/mig-3g.40gb, nominalQuota: 8}, "
                              "{name: nvidia.com/mig-2g.20gb, nominalQuota: 8}, {name: "
                              "nvidia.com/mig-1g.10gb, nominalQuota: 16}]}]}]}}"};

std::string mig_errors(const std::string& scheduler, const std::vector<std::string>& sets) {
  const auto asked = mixed_mig(scheduler, sets);
  REQUIRE_FALSE(asked);
  return format(asked.error());
}

}  // namespace

TEST_CASE("each profile of a GPU is a resource of its own under policies of all kinds") {
  // 8 GPUs: 8 instances of 3g, 8 of 2g, 16 of 1g. The ninth and the seventeenth job wait an hour.
  for (const char* scheduler : kOfMixed) {
    INFO(scheduler);
    const auto asked = mixed_mig(scheduler);
    if (!asked) FAIL(format(asked.error()));
    const auto record = record_queue(*asked);
    REQUIRE(record);
    std::map<std::string, std::pair<int, int>> started;  // by resource: at once, later
    for (std::size_t j = 0; j < record->list.jobs.size(); ++j) {
      const JobTimes& job = record->run.jobs[j];
      REQUIRE(job.start);
      auto& [at_once, later] =
          started[record->list.names.resources.name(record->list.jobs[j].owner.resource)];
      ++(*job.start == job.submit ? at_once : later);
    }
    CHECK(started["nvidia.com/mig-3g.40gb"] == std::pair{8, 1});
    CHECK(started["nvidia.com/mig-2g.20gb"] == std::pair{8, 0});
    if (std::string_view(scheduler) != "{policy: fifo}")  // where nobody overtakes the ninth 3g
      CHECK(started["nvidia.com/mig-1g.10gb"] == std::pair{16, 1});
  }
}

TEST_CASE("a profile's instance is the share of its compute slices of a GPU, and of its cost") {
  const auto asked = mixed_mig("{policy: easy_backfill}");
  REQUIRE(asked);
  const TraceResult r = simulate_trace(*asked, 1, 1);
  CHECK(r.gpus == Approx(8));
  // 3 + 2 + 2 of 7 slices: 9 x 3 + 8 x 2 + 17 x 1 slice-hours are 60 / 7 GPU-hours.
  CHECK(*r.utilization * r.gpus * *r.makespan_seconds / 3600 == Approx(60 / 7.0));
  // A node of 4 GPUs costs 28 USD/h, so a slice costs 1.
  const auto record = record_queue(*asked);
  CHECK(record->charges.of_job[0].usd == Approx(3));
  CHECK(record->charges.of_job[9].usd == Approx(2));
  CHECK(record->charges.of_job[17].usd == Approx(1));
  CHECK(record->charges.all.usd == Approx(2 * 28 * *r.makespan_seconds / 3600));
}

TEST_CASE("a cut that no GPU can have is told, and so is who cannot schedule it") {
  const std::string devices = "cluster.pools.mig.accelerator.mig-devices=";
  CHECK_THAT(mig_errors("{policy: fifo}", {devices + "{3g.40gb: 2, 1g.10gb: 1}"}),
             Contains("a GPU cannot be cut so: they take 9 memory slices, and a GPU has 8"));
  CHECK_THAT(mig_errors("{policy: fifo}", {devices + "{3g.20gb: 1}"}),
             Contains("A100-SXM4-80 has no profile '3g.20gb'") && Contains("3g.40gb"));
  CHECK_THAT(mig_errors("{policy: fifo}",
                        {"cluster.pools.mig.accelerator.shared={resource: a, devices: 2}"}),
             Contains("'mig-devices' cannot stand beside 'shared'"));
  CHECK_THAT(mig_errors("{policy: fifo}", {devices + "{3g.40gb: 1}"}),
             Contains("jobs ask for 'nvidia.com/mig-2g.20gb', which no pool has"));
  CHECK_THAT(mig_errors("{policy: kueue, kueue: {clusterQueues: [{name: q, flavors: [{name: mig, "
                        "nominalQuota: 8}]}]}}",
                        {}),
             Contains("pool 'mig' has 3 resources, and the flavor a quota for one") &&
                 Contains("{name: nvidia.com/mig-2g.20gb, nominalQuota: 8}"));
}
