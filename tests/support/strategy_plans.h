#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sim/step/network/all_reduces.h"
#include "sim/step/step.h"
#include "support/plans.h"

// Small jobs of every strategy that asks the network, none of which has flows that contend: what
// moves at the same time has links of its own, or equal shares.
namespace reckon::test {

struct StrategyPlan {
  std::string name;
  Plan plan;
};

namespace strategy_plans {

/// Of a transformer whose blocks, heads and experts can be shared out.
inline Plan cut(StrategyKind kind, int nodes, int accelerators,
                const std::function<void(PlannedStrategy&)>& how,
                const char* model = "gpt2_small") {
  Plan p = make_round_plan(zoo_model(model).value(), kind, nodes, accelerators, 0, Precision::bf16);
  PlannedWorkload& job = p.jobs[0];
  job.strategy.layout.micro_batch = 4;
  how(job.strategy);
  job.global_batch =
      16 * job.strategy.accelerators() / job.strategy.layout.replica();  // 4 micro-batches
  return p;
}

inline void on_slice(Plan& p, bool wraps) {
  p.pools[0].accelerator->torus_dimensions = 2;
  p.pools[0].slice =
      TpuSlice{.name = "round-16", .chips = 16, .torus = {4, 4}, .wraps = wraps, .hosts = 4};
}

}  // namespace strategy_plans

inline std::vector<StrategyPlan> plans_of_all_strategies() {
  using enum StrategyKind;
  using strategy_plans::cut;
  std::vector<StrategyPlan> all;
  const auto add = [&](std::string name, Plan p) -> Plan& {
    for (PlannedPool& pool : p.pools) {
      pool.peer_link.latency = Fact<Seconds>{Seconds{2e-6}};
      pool.network_link.latency = Fact<Seconds>{Seconds{20e-6}};
    }
    all.push_back({std::move(name), std::move(p)});
    return all.back().plan;
  };
  const auto small = [](StrategyKind kind, int nodes, int accelerators, int servers = 0) {
    return make_round_plan(small_mlp(), kind, nodes, accelerators, servers);
  };
  add("mirrored", small(mirrored, 1, 4));
  for (const AllReduceAlgorithm& each : all_reduces()) {
    Plan& p = add("multi_worker_mirrored, " + std::string(to_text(each.kind)),
                  small(multi_worker_mirrored, 4, 2));
    p.fabric.in_network_reduction = each.in_network;
    p.jobs[0].strategy.all_reduce = each.kind;
  }
  add("multi_worker_mirrored, automatic", small(multi_worker_mirrored, 4, 2));
  add("multi_worker_mirrored under leaves", small(multi_worker_mirrored, 6, 2)).fabric = {
      .nodes_per_leaf = 3, .oversubscription = 4};
  add("multi_worker_mirrored on CPUs", small(multi_worker_mirrored, 4, 0));
  add("parameter_server", small(parameter_server, 4, 2, 3));
  Plan& asynchronous = add("parameter_server, asynchronous", small(parameter_server, 3, 1, 3));
  asynchronous.jobs[0].strategy.servers->synchronous = false;
  for (const bool wraps : {false, true}) {  // a mesh, and a torus that closes
    const std::string on = wraps ? " on a torus" : " on a mesh";
    strategy_plans::on_slice(add("tpu" + on, small(tpu, 1, 16)), wraps);
    strategy_plans::on_slice(
        add("sharded" + on, cut(sharded, 1, 16, [](auto& s) { s.layout.zero_stage = 3; })), wraps);
    strategy_plans::on_slice(add("model_parallel" + on, cut(model_parallel, 1, 16,
                                                            [](auto& s) {
                                                              s.layout.tensor = 4;
                                                              s.layout.pipeline = 2;
                                                            })),
                             wraps);
  }
  for (const int stage : {1, 2, 3})
    add("sharded, stage " + std::to_string(stage),
        cut(sharded, 2, 4, [&](auto& s) { s.layout.zero_stage = stage; }));
  add("model_parallel, data only", cut(model_parallel, 4, 4, [](auto&) {}));
  add("model_parallel, tensor and pipeline", cut(model_parallel, 4, 4, [](auto& s) {
        s.layout.tensor = 4;
        s.layout.pipeline = 2;
      }));
  add("model_parallel, sequence and context", cut(model_parallel, 2, 8, [](auto& s) {
        s.layout.tensor = 2;
        s.layout.context = 4;
        s.layout.sequence_parallel = true;
      }));
  add("model_parallel, interleaved", cut(model_parallel, 2, 4, [](auto& s) {
        s.layout.pipeline = 4;
        s.layout.schedule = PipelineSchedule::interleaved;
        s.layout.interleave = 3;
      }));
  Plan& experts = add("model_parallel, experts", cut(
                                                     model_parallel, 2, 8,
                                                     [](auto& s) {
                                                       s.layout.tensor = 2;
                                                       s.layout.expert = 8;
                                                       s.layout.zero_stage = 1;
                                                     },
                                                     "mixtral_8x7b"));
  experts.fabric.rails = true;
  experts.fabric.nics = 8;
  return all;
}

}  // namespace reckon::test
