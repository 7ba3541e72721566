#include <catch2/catch.hpp>

#include "sim/step/network/collectives.h"
#include "sim/step/servers/parameter_server.h"
#include "sim/step/step.h"
#include "support/both_engines.h"
#include "support/strategy_plans.h"

// The activity graphs that the step model builds, folded and rank by rank, under SimGrid's eyes.

using namespace reckon;

namespace {

Fabric fabric(int nodes, int ranks_per_node) {
  return {.nodes = nodes,
          .ranks_per_node = ranks_per_node,
          .peer = 150.0_GBps,
          .nic = 1.25_GBps,
          .peer_latency = Seconds{2e-6},
          .nic_latency = Seconds{15e-6}};
}

using AllReduce = Collective (*)(const Fabric&, Bytes, bool);

void require_agreement(AllReduce algorithm) {
  const BothEngines engines;
  for (const auto& [nodes, ranks] : {std::pair{1, 8}, {2, 1}, {5, 1}, {4, 4}, {3, 2}}) {
    for (const bool fold : {true, false}) {
      CAPTURE(nodes, ranks, fold);
      makespan(algorithm(fabric(nodes, ranks), Bytes{100e6}, fold), engines);
    }
  }
  CHECK(engines.questions() >= 10);
}

/// Two classes of workers, latency, compute, an update, in three groups.
ParameterServerSetup setup(int workers, int servers) {
  ParameterServerSetup s;
  s.classes = {{.count = workers, .per_node = 2, .nic = 1.25_GBps},
               {.count = 2, .per_node = 1, .nic = 0.6_GBps}};
  s.servers = servers;
  s.server_nic = 1.25_GBps;
  s.latency = Seconds{1e-4};
  s.apply_rate = 0.9_GBps;
  s.update = Seconds{0.01};
  for (const double bytes : {30e6, 50e6, 20e6})
    s.groups.push_back({.size = Bytes{bytes}, .forward = Seconds{0.02}, .backward = Seconds{0.04}});
  return s;
}

StepEstimate estimate(const Plan& plan, const NetworkModel& network) {
  return estimate_step(plan, plan.jobs[0], network);
}

/// Both engines agree on every question of the estimate, of which there are some.
void require_agreement(const Plan& plan) {
  const BothEngines engines;
  const StepEstimate both = estimate(plan, engines);
  CHECK(engines.questions() > 0);
  CHECK(both.communication > Seconds{0});
  CHECK(both.engine == "both");
  CHECK(both.step == estimate(plan, *make_fluid_network()).step);
}

}  // namespace

TEST_CASE("fluid and SimGrid agree on ring all-reduces") { require_agreement(ring_all_reduce); }

TEST_CASE("fluid and SimGrid agree on tree all-reduces") { require_agreement(tree_all_reduce); }

TEST_CASE("fluid and SimGrid agree on hierarchical all-reduces") {
  require_agreement(hierarchical_all_reduce);
}

TEST_CASE("fluid and SimGrid agree on gathers, scatters, exchanges and sends") {
  require_agreement(ring_all_gather);
  require_agreement(ring_reduce_scatter);
  require_agreement(all_to_all);
  require_agreement(send_to_next);
  require_agreement(ring_hop);
}

TEST_CASE("fluid and SimGrid agree on all-reduces over tori and meshes") {
  const BothEngines engines;
  for (const std::vector<int>& axes : {std::vector{8}, {4, 4}, {4, 2}, {3, 2, 4}}) {
    for (const bool wraps : {true, false}) {
      const Fabric torus = torus_fabric(axes, wraps, 60.0_GBps, Seconds{1e-6});
      for (const bool fold : {true, false}) {
        makespan(torus_all_reduce(torus, Bytes{100e6}, fold), engines);
        makespan(torus_all_gather(torus, Bytes{100e6}, fold), engines);
      }
      makespan(torus_all_to_all(torus, Bytes{100e6}), engines);
      makespan(torus_send(torus, Bytes{100e6}), engines);
    }
  }
  CHECK(engines.questions() >= 48);
}

TEST_CASE("fluid and SimGrid agree on the step model's synchronous parameter-server steps") {
  const BothEngines engines;
  for (const auto& [workers, servers] : {std::pair{4, 1}, {6, 3}, {3, 8}}) {
    for (const bool fold : {true, false}) {
      for (const bool overlap : {true, false})
        makespan(synchronous_step(setup(workers, servers), fold, overlap), engines);
    }
  }
  CHECK(engines.questions() == 12);
}

TEST_CASE("fluid and SimGrid agree on the step model's asynchronous parameter servers") {
  const BothEngines engines;
  for (const int staleness : {0, 2}) {
    for (const bool fold : {true, false})
      makespan(asynchronous_steps(setup(6, 4), 5, staleness, 0.1, fold).problem, engines);
  }
  CHECK(engines.questions() == 4);
}

TEST_CASE("fluid and SimGrid agree on whole steps of every strategy that communicates") {
  for (const auto& [name, plan] : test::plans_of_all_strategies()) {
    CAPTURE(name);
    require_agreement(plan);
  }
}

TEST_CASE("fluid and SimGrid agree on whole steps whose flows contend") {
  Plan servers = test::make_round_plan(test::small_mlp(), StrategyKind::parameter_server, 3, 1, 2);
  servers.jobs[0].strategy.servers->synchronous = false;
  require_agreement(servers);
  Plan slice = test::make_round_plan(test::small_mlp(), StrategyKind::tpu, 1, 8);
  slice.pools[0].accelerator->torus_dimensions = 2;
  slice.pools[0].slice =
      TpuSlice{.name = "round-8", .chips = 8, .torus = {2, 4}, .wraps = true, .hosts = 2};
  require_agreement(slice);  // chunks meet where axes differ
}
