#include <catch2/catch.hpp>
#include <map>

#include "sim/queue/kueue/quotas.h"
#include "sim/queue/snapshot/scenario_snapshot.h"
#include "sim/queue/trace.h"
#include "sim/scenario/yaml/scenario_yaml.h"

// Kueue's quotas of several resources of one flavor
// (https://kueue.sigs.k8s.io/docs/concepts/cluster_queue, "Resources").
using namespace reckon;
using Catch::Contains;

namespace {

// 2 nodes of 4 GPUs: 8 instances of 3g, 8 of 2g, 16 of 1g.
constexpr const char* kTwoTeams = R"(name: two-teams
cluster:
  provider: on_premises
  scheduler:
    policy: kueue
    kueue:
      clusterQueues:
        - name: vision
          cohortName: all
          preemption: {reclaimWithinCohort: Any}
          flavors:
            - name: mig
              resources:
                - {name: nvidia.com/mig-3g.40gb, nominalQuota: 6, lendingLimit: 2}
                - {name: nvidia.com/mig-1g.10gb, nominalQuota: 4}
            - {name: whole, nominalQuota: 4}
        - name: speech
          cohortName: all
          flavors:
            - name: mig
              resources:
                - {name: nvidia.com/mig-3g.40gb, nominalQuota: 2}
                - {name: nvidia.com/mig-1g.10gb, nominalQuota: 12, borrowingLimit: 1}
  pools:
    - name: mig
      nodes: 2
      accelerator:
        type: A100-SXM4-80
        count: 4
        mig-devices: {3g.40gb: 1, 2g.20gb: 1, 1g.10gb: 2}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}
    - name: whole
      nodes: 1
      accelerator: {type: A100-SXM4-80, count: 4}
      machine: {vcpu: 8, memory: 64GiB, network: 10Gbps}
jobs:
JOBS
)";

Expected<TraceQuestion> two_teams(const std::string& jobs, std::vector<std::string> sets = {}) {
  std::string text = kTwoTeams;
  text.replace(text.find("JOBS"), 4, jobs);
  const auto scenario = parse_scenario(text, "two-teams.yaml", sets);
  if (!scenario) return tl::unexpected(scenario.error());
  return load_trace(*scenario);
}

/// Jobs of each name that run at the time.
std::map<std::string, int> running_at(const std::string& jobs, int seconds) {
  const auto asked = two_teams(jobs);
  if (!asked) FAIL(format(asked.error()));
  const auto record = record_queue(*asked);
  REQUIRE(record);
  std::map<std::string, int> running;
  const SimTime at = SimTime{} + std::chrono::seconds(seconds);
  for (const Holding& h : record->holdings)
    if (h.begin <= at && at < h.end)
      ++running[record->list.names.queues.name(record->list.jobs[h.job].owner.queue) + " " +
                record->list.names.resources.name(record->list.jobs[h.job].owner.resource)];
  return running;
}

std::string two_teams_error(const std::string& jobs, std::vector<std::string> sets) {
  const auto asked = two_teams(jobs, std::move(sets));
  REQUIRE_FALSE(asked);
  return format(asked.error());
}

constexpr const char* kOneJob =
    "  - {name: a, gpus: 1, duration: 1h, resource: nvidia.com/mig-1g.10gb, queue: vision}";

}  // namespace

TEST_CASE("each resource of a flavor has its own quota and limits of borrowing and lending") {
  // vision lends 2 of its 6 large instances, so speech has 2 + 2 of them; of the small ones speech
  // has 12 and borrows 1.
  const auto running = running_at(
      "  - {name: large, gpus: 1, duration: 1h, resource: nvidia.com/mig-3g.40gb, queue: speech, "
      "times: 8, every: 1s}\n"
      "  - {name: small, gpus: 1, duration: 1h, resource: nvidia.com/mig-1g.10gb, queue: speech, "
      "times: 16, every: 1s}",
      60);
  CHECK(running == std::map<std::string, int>{{"speech nvidia.com/mig-3g.40gb", 4},
                                              {"speech nvidia.com/mig-1g.10gb", 13}});
}

TEST_CASE("a queue reclaims the resource that it misses, and evicts nobody for another") {
  // speech borrows two large and one small instance. vision wants all its six large ones, which
  // evicts two jobs; its quota of small ones is not asked for.
  const std::string jobs =
      "  - {name: large, gpus: 1, duration: 1h, resource: nvidia.com/mig-3g.40gb, queue: speech, "
      "times: 4, every: 1s}\n"
      "  - {name: small, gpus: 1, duration: 1h, resource: nvidia.com/mig-1g.10gb, queue: speech, "
      "times: 13, every: 1s}\n"
      "  - {name: own, gpus: 1, duration: 1h, resource: nvidia.com/mig-3g.40gb, queue: vision, "
      "submit: 1min, times: 6, every: 1s}";
  CHECK(running_at(jobs, 50)["speech nvidia.com/mig-3g.40gb"] == 4);
  const auto after = running_at(jobs, 90);
  CHECK(after == std::map<std::string, int>{{"speech nvidia.com/mig-3g.40gb", 2},
                                            {"speech nvidia.com/mig-1g.10gb", 13},
                                            {"vision nvidia.com/mig-3g.40gb", 6}});
}

TEST_CASE("who asks for a resource that its queue does not cover never runs") {
  const auto asked = two_teams(
      "  - {name: medium, gpus: 1, duration: 1h, resource: nvidia.com/mig-2g.20gb, queue: vision}");
  REQUIRE(asked);
  const TraceResult r = simulate_trace(*asked, 1, 1);
  CHECK(r.never == 1);
  CHECK_THAT(r.warnings.front(),
             Contains("no flavor of ClusterQueue 'vision' has what it asks for"));
}

TEST_CASE("the share of a queue is that of the resource of which it borrows most") {
  // https://kueue.sigs.k8s.io/docs/concepts/preemption, "ClusterQueue share value": the highest
  // ratio of what is borrowed to what the cohort can lend, among all resources.
  KueueSpec kueue;
  const auto queue = [](const char* name, int large, int small) {
    ClusterQueueSpec q{.name = name, .cohort = "all"};
    q.flavors = {{"mig", large, {}, {}, "3g"}, {"mig", small, {}, {}, "1g"}};
    return q;
  };
  kueue.cluster_queues = {queue("a", 2, 4), queue("b", 6, 12)};
  kueue.cluster_queues[0].fair_sharing.weight = 2;
  const std::vector<std::string> pools{"mig", "mig"}, resources{"3g", "1g"};
  KueueQuotas quotas(kueue, pools, resources);
  CHECK(quotas.nominal(0, 0) == 2);
  CHECK(quotas.nominal(0, 1) == 4);
  quotas.use(0, 0, 4);  // 2 borrowed of 8
  CHECK(quotas.share(0) == Approx(2.0 / 8 / 2));
  quotas.use(0, 1, 12);  // 8 borrowed of 16
  CHECK(quotas.share(0) == Approx(8.0 / 16 / 2));
  CHECK(quotas.share_with(0, 0, 0, 4) == Approx(6.0 / 8 / 2));
}

TEST_CASE("quotas of resources that a pool does not have, or twice, are told where they stand") {
  const std::string flavors = "cluster.scheduler.kueue.clusterQueues.vision.flavors=";
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: mig, resources: [{name: "
                                                 "nvidia.com/mig-1g.5gb, nominalQuota: 1}]}]"}),
             Contains("pool 'mig' has no 'nvidia.com/mig-1g.5gb'; did you mean "
                      "'nvidia.com/mig-1g.10gb'?") &&
                 Contains("it has: nvidia.com/mig-1g.10gb, nvidia.com/mig-2g.20gb"));
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: whole, resources: [{name: "
                                                 "nvidia.com/mig-1g.10gb, nominalQuota: 1}]}]"}),
             Contains("pool 'whole' has no 'nvidia.com/mig-1g.10gb'") &&
                 Contains("it has: nvidia.com/gpu"));
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: mig, nominalQuota: 2, resources: [{name: "
                                                 "nvidia.com/mig-1g.10gb, nominalQuota: 1}]}]"}),
             Contains("'nominalQuota' stands in each of 'resources'"));
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: mig, resources: [{name: a, nominalQuota: "
                                                 "1}, {name: a, nominalQuota: 1}]}]"}),
             Contains("resource 'a' is there twice"));
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: mig, resources: [{name: a}]}]"}),
             Contains("needs 'nominalQuota'"));
  CHECK_THAT(two_teams_error(kOneJob, {flavors + "[{name: mig, resources: []}]"}),
             Contains("the flavor has no resource"));
}

TEST_CASE("whole GPUs are a resource too, by the name that Kubernetes has for them") {
  const auto asked = two_teams("  - {name: a, gpus: 4, duration: 1h, queue: vision}",
                               {"cluster.scheduler.kueue.clusterQueues.vision.flavors=[{name: "
                                "whole, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]"});
  if (!asked) FAIL(format(asked.error()));
  CHECK(simulate_trace(*asked, 1, 1).never == 0);
}

TEST_CASE("who submits a training beside MIG instances under Kueue sees the whole GPUs") {
  const auto asked = two_teams(kOneJob);
  REQUIRE(asked);
  std::string text = kTwoTeams;
  text.replace(text.find("JOBS"), 4, kOneJob);
  const auto snapshot = snapshot_of(parse_scenario(text, "two-teams.yaml")->scenario, *asked);
  REQUIRE(snapshot);
  REQUIRE(snapshot->nodes.size() == 1);
  const auto& queues = snapshot->scheduler.kueue->cluster_queues;
  REQUIRE(queues[0].flavors.size() == 1);
  CHECK(queues[0].flavors[0].name == "whole");
  CHECK(queues[1].flavors.empty());
}
