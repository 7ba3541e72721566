#include "sim/queue/kueue/topology.h"

#include <catch2/catch.hpp>

#include "sim/queue/kueue/kueue.h"

// https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling
using namespace reckon;

namespace {

const std::vector<std::string> kGpuPool{"a100"};

/// Blocks of 8 nodes, racks of 4, unless said.
KueueSpec with_levels(int block = 8, int rack = 4) {
  KueueSpec kueue;
  ClusterQueueSpec queue;
  queue.name = "q";
  queue.flavors = {{"a100", 128, {}, {}}};
  kueue.cluster_queues = {queue};
  kueue.topologies = {
      {"default", {{"block", block}, {"rack", rack}, {"kubernetes.io/hostname", 1}}}};
  kueue.resource_flavors = {{"a100", "default"}};
  return kueue;
}

std::vector<int> nodes_of(const std::optional<std::vector<NodePart>>& parts) {
  std::vector<int> nodes;
  if (parts)
    for (const NodePart& part : *parts) nodes.push_back(part.node);
  return nodes;
}

JobRequest topology_job(JobList& list, double submit, double duration, int gpus, const char* level,
                        bool required = true, int priority = 0) {
  JobRequest job =
      recorded_job(SimTime{} + to_clock(Seconds{submit}), to_clock(Seconds{duration}), gpus);
  job.owner.topology = list.names.topologies.number(level);
  job.owner.topology_required = required;
  job.owner.priority = priority;
  return job;
}
double topology_start(const QueueRun& run, std::size_t k) {
  return double((run.jobs[k].start.value() - SimTime{}) / std::chrono::seconds(1));
}

}  // namespace

TEST_CASE("a topology's domains get the nodes of a job by best fit") {
  const std::vector<NodeGroup> groups{{16, 8, 0}};
  const KueueTopology topology(with_levels(), groups, kGpuPool);
  FreeNodes free(groups);
  const auto place = [&](int gpus, const char* level, bool required) {
    return nodes_of(topology.place(free, 0, gpus, {level, required}));
  };
  using Nodes = std::vector<int>;
  CHECK(place(32, "rack", true) == Nodes{0, 1, 2, 3});
  const std::vector<NodePart> first{{0, 8}};
  free.take_again(first);
  SECTION("required: one domain, the one with the fewest free nodes that suffice") {
    CHECK(place(32, "rack", true) == Nodes{4, 5, 6, 7});
    CHECK(place(16, "rack", true) == Nodes{1, 2});
    CHECK(place(40, "rack", true).empty());
    CHECK(place(64, "block", true) == Nodes{8, 9, 10, 11, 12, 13, 14, 15});
    CHECK(place(72, "block", true).empty());
  }
  SECTION("preferred: the level above, where the domain with most free nodes goes first") {
    CHECK(place(32, "rack", false) == Nodes{4, 5, 6, 7});
    // 5 nodes: in block 0, which has 7 free, 4 of rack 1 and one of rack 0.
    CHECK(place(40, "rack", false) == Nodes{4, 5, 6, 7, 1});
  }
  SECTION("preferred: over several of the widest, the last the smallest that suffices") {
    // 10 nodes: all 8 of block 1, and of block 0 two of the rack with 3 free.
    CHECK(place(80, "rack", false) == Nodes{8, 9, 10, 11, 12, 13, 14, 15, 1, 2});
    CHECK(place(16 * 8, "rack", false).empty());  // one node is taken
  }
  SECTION("the rest of a gang stands beside others where one of the domain has room") {
    const std::vector<NodePart> half{{0, 4}};
    free.give_back(half);
    const auto parts = topology.place(free, 0, 12, {"rack", true});
    REQUIRE(parts);
    CHECK(nodes_of(parts) == Nodes{1, 0});
    CHECK(parts->at(0).gpus == 8);
    CHECK(parts->at(1).gpus == 4);
    CHECK(nodes_of(topology.place(free, 0, 13, {"rack", true})) == Nodes{1, 2});
  }
  SECTION("levels are those of the flavor's topology") {
    CHECK(topology.has_level(0, "rack"));
    CHECK(topology.has_level(0, ""));
    CHECK_FALSE(topology.has_level(0, "row"));
  }
}

TEST_CASE("a job that requires a rack waits for one, and others go past it") {
  // Five nodes, racks {0, 1}, {2, 3}, {4}: job 0 is on 0, job 1 on 1 and 2. Job 2 needs a rack; job
  // 3 asks for as many GPUs anywhere. At 50 node 2 is free again, at 60 node 3.
  const KueueSpec kueue = with_levels(4, 2);
  const std::vector<NodeGroup> groups{{5, 8, 0}};
  JobList list;
  list.jobs = {topology_job(list, 0, 100, 8, "", false), topology_job(list, 0, 50, 16, "", false),
               topology_job(list, 1, 10, 16, "rack"), topology_job(list, 1, 59, 16, "", false)};
  std::vector<Holding> holdings;
  RunOptions options;
  options.holdings = &holdings;
  const QueueRun run = run_kueue(list, groups, kGpuPool, kueue, 0, 4, options);
  CHECK(topology_start(run, 3) == 1);
  CHECK(topology_start(run, 2) == 60);
  std::vector<int> nodes;
  for (const Holding& holding : holdings)
    if (holding.job == 2) nodes.push_back(holding.part.node);
  CHECK(nodes == std::vector<int>{2, 3});
}

TEST_CASE("a preferred rack is no reason to wait") {
  const KueueSpec kueue = with_levels(4, 2);
  const std::vector<NodeGroup> groups{{5, 8, 0}};
  JobList list;
  list.jobs = {topology_job(list, 0, 100, 8, "", false), topology_job(list, 0, 50, 16, "", false),
               topology_job(list, 1, 10, 16, "rack", false)};
  CHECK(topology_start(run_kueue(list, groups, kGpuPool, kueue, 0, 3), 2) == 1);
}

TEST_CASE("an eviction that makes no rack free is not made") {
  // Nodes 0 and 1, 2 and 3 are racks. The low priority job holds 1 and 2, and nothing makes a rack
  // free until job 0 ends; or it holds 2 and 3.
  KueueSpec kueue = with_levels(4, 2);
  kueue.cluster_queues[0].flavors = {{"a100", 24, {}, {}}};
  kueue.cluster_queues[0].preemption.within_cluster_queue = WithinPolicy::lower_priority;
  const std::vector<NodeGroup> groups{{4, 8, 0}};
  for (const bool spread : {true, false}) {
    JobList list;
    list.jobs = {topology_job(list, 0, 100, 8, "", false, 5),
                 topology_job(list, 0, 300, 16, spread ? "" : "rack", true, 1),
                 topology_job(list, 10, 10, 16, "rack", true, 9)};
    if (spread) list.jobs[1].owner.topology = JobOwner::kNotSaid;
    const QueueRun run = run_kueue(list, groups, kGpuPool, kueue, 0, 3);
    // Without job 1 nodes 1, 2 and 3 are free, so that {2, 3} is a rack either way.
    CHECK(topology_start(run, 2) == 10);
    CHECK(run.jobs[1].preemptions == 1);
  }
  // The low priority job is on node 1, and jobs that stay on 0 and 2: without it the quota would
  // suffice, but only when job 2 ends is {2, 3} free.
  kueue.cluster_queues[0].flavors = {{"a100", 32, {}, {}}};
  JobList list;
  list.jobs = {
      topology_job(list, 0, 100, 8, "", false, 9), topology_job(list, 1, 300, 8, "", false, 1),
      topology_job(list, 2, 48, 8, "", false, 9), topology_job(list, 10, 10, 16, "rack", true, 5)};
  const QueueRun run = run_kueue(list, groups, kGpuPool, kueue, 0, 4);
  CHECK(run.jobs[1].preemptions == 0);
  CHECK(topology_start(run, 3) == 50);
}

TEST_CASE("a rack that is never large enough is told") {
  const KueueSpec kueue = with_levels();
  const std::vector<NodeGroup> groups{{16, 8, 0}};
  JobList list;
  list.jobs = {topology_job(list, 0, 1, 40, "rack"), topology_job(list, 0, 1, 40, "rack", false)};
  CHECK(kueue_never(list, 0, groups, kGpuPool, kueue) ==
        "no flavor of ClusterQueue 'q' has a domain of 'rack' with so many");
  CHECK_FALSE(kueue_never(list, 1, groups, kGpuPool, kueue));
  const QueueRun run = run_kueue(list, groups, kGpuPool, kueue, 0, 2);
  CHECK(run.never == std::vector<std::size_t>{0});
}
