#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/convergence_laws.h"
#include "sim/forecast/explain/explain.h"
#include "sim/scenario/layout_rules.h"
#include "sim/step/network/all_reduces.h"

// What would help: each change is a copy of the plan with one thing changed.
namespace reckon {
namespace {

using Apply = std::function<void(Plan&)>;

/// Can the layout that a change makes exist?
bool keeps_rules(const PlannedWorkload& job) {
  if (!cuts_the_model(job.strategy)) return true;
  return broken_rules(LayoutLimits(job.model), layout_of(job), job.strategy.accelerators(),
                      job.global_batch)
      .empty();
}

/// Is it known how many samples the changed batch needs to the accuracy?
bool keeps_law(const PlannedWorkload& now, const PlannedWorkload& changed) {
  return !changed.convergence || changed.global_batch == now.global_batch ||
         is_measured_at(*changed.convergence, changed.global_batch);
}

template <class T>
void double_it(Fact<T>& fact) {
  fact.value = fact.value * 2.0;
}

/// The changes that can exist and fit in memory, and then what each brings: a step each, on every
/// core, since a person waits for the answer.
class Changes {
 public:
  /// No change makes memory a risk that is none now.
  explicit Changes(const Plan& plan)
      : plan_(plan),
        risk_(std::max(kRiskOfAPlan, estimate_memory(plan, plan.only_job()).out_of_memory())) {}

  /// Of what is added from here on: Change::plan_option.
  std::string plan_option = {};

  void add(std::string what, const Apply& apply) {
    Plan changed = plan_;
    apply(changed);
    add(std::move(what), changed);
  }
  void add(std::string what, const Plan& changed) {
    const PlannedWorkload& job = changed.only_job();
    if (!keeps_rules(job) || !keeps_law(plan_.only_job(), job)) return;
    if (estimate_memory(changed, job).fits_at(risk_))
      changed_.push_back({std::move(what), plan_option, changed});
  }

  std::vector<Change> estimate(const NetworkModel& network) const {
    std::vector<Change> done(changed_.size());
    parallel_for(changed_.size(), 0, [&](std::size_t k) {
      const auto& [what, option, plan] = changed_[k];
      done[k] = change_of(what, plan, estimate_step(plan, plan.only_job(), network));
      done[k].plan_option = option;
    });
    return done;
  }

 private:
  const Plan& plan_;
  double risk_;
  struct Changed {
    std::string what, plan_option;
    Plan plan;
  };
  std::vector<Changed> changed_;
};

void add_hardware(Changes& changes, const Plan& plan, const StepEstimate& now) {
  const PlannedStrategy& s = plan.only_job().strategy;
  const PlannedPool& workers = *computing_pools(plan).front();
  const auto in_pools = [](auto change) {
    return [change](Plan& p) {
      for (PlannedPool& pool : p.pools)
        if (computes(p, pool)) change(pool);
    };
  };
  if (workers.accelerator) {
    changes.add("twice the memory bandwidth", in_pools([](PlannedPool& pool) {
                  if (pool.accelerator) double_it(pool.accelerator->memory_bandwidth);
                }));
    changes.add("twice the peak FLOP/s", in_pools([](PlannedPool& pool) {
                  if (pool.accelerator)
                    for (auto& peak : pool.accelerator->peak)
                      if (peak) double_it(*peak);
                }));
  }
  if (s.workers > 1)
    changes.add(fmt::format("twice the network of every node (workers' {})",
                            format_bandwidth(workers.machine.network.value)),
                [](Plan& p) {
                  for (PlannedPool& pool : p.pools) double_it(pool.machine.network);
                });
  if (now.communication.count() > 0 && workers.accelerators_per_node > 1)
    changes.add("twice the links between a node's accelerators", in_pools([](PlannedPool& pool) {
                  if (!pool.accelerator) return;
                  auto& peer = pool.accelerator->peer_bandwidth;
                  double_it(peer ? *peer : pool.accelerator->host_bandwidth);
                }));
  if (now.exposed_input.count() > 0) {
    changes.add("twice the vCPUs of the nodes that compute",
                in_pools([](PlannedPool& pool) { pool.machine.vcpus *= 2; }));
    changes.add("storage twice as fast",
                [](Plan& p) { double_it(p.only_job().checkpoint.storage.read_per_node); });
  }
}

void add_batch(Changes& changes, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const auto batch = [&](int to, std::int64_t global) {
    const bool together = job.strategy.layout.replica() > 1;
    changes.add(
        fmt::format("{} of {} {}instead of {}", together ? "micro-batch" : "batch", to,
                    together ? "" : "on each accelerator ", job.strategy.layout.micro_batch),
        [=](Plan& p) {
          p.only_job().strategy.layout.micro_batch = to;
          change_batch(p.only_job(), global);
        });
  };
  const int now = job.strategy.layout.micro_batch;
  batch(2 * now, 2 * job.global_batch);
  if (now % 2 == 0) batch(now / 2, job.global_batch / 2);
  changes.plan_option = "--recompute";
  if (job.strategy.layout.recompute != Recompute::none)
    changes.add("no recomputation",
                [](Plan& p) { p.only_job().strategy.layout.recompute = Recompute::none; });
}

void add_workers(Changes& changes, const Plan& plan) {
  const PlannedStrategy& s = plan.only_job().strategy;
  if (plan.pool_with(Role::worker)->slice) return;  // a slice is what it is
  const auto workers = [&](int to) {
    Plan changed = with_workers(plan, to);
    std::string how;
    auto& strategy = changed.only_job().strategy;
    if (traits_of(s.kind).one_worker()) {
      strategy.kind = StrategyKind::multi_worker_mirrored;
      how = ", multi_worker_mirrored";
    }
    changes.add(fmt::format("{} worker{} instead of {}{}", to, to == 1 ? "" : "s", s.workers, how),
                changed);
  };
  workers(2 * s.workers);
  if (s.workers > 1) workers(s.workers / 2);
}

void add_servers(Changes& changes, const Plan& plan) {
  const PlannedStrategy& s = plan.only_job().strategy;
  if (!s.servers) return;
  const auto servers = [&](int to) {
    changes.add(fmt::format("{} parameter server{} instead of {}", to, to == 1 ? "" : "s",
                            s.server_count()),
                [to](Plan& p) { p.only_job().strategy.servers->count = to; });
  };
  if (plan.pool_with(Role::parameter_server) && s.server_count() > 0) {
    changes.plan_option = "--parameter-servers";
    servers(2 * s.server_count());
    if (s.server_count() > 1) servers(s.server_count() / 2);
    changes.plan_option = "--parameter-server-machine";
    changes.add("twice the network of the parameter servers alone", [](Plan& p) {
      for (PlannedPool& pool : p.pools)
        if (pool.role == Role::parameter_server) double_it(pool.machine.network);
    });
  }
  changes.plan_option.clear();
  // What asynchronous training needs to an accuracy is not known.
  if (!s.synchronous() || !plan.only_job().convergence)
    changes.add(s.synchronous() ? "asynchronous instead of synchronous"
                                : "synchronous instead of asynchronous",
                [](Plan& p) {
                  ParameterServers& changed = *p.only_job().strategy.servers;
                  changed.synchronous = !changed.synchronous;
                  changed.backup_workers = 0;
                });
  changes.plan_option = "--strategy";
  changes.add("all-reduce instead of parameter servers", [](Plan& p) {
    p.only_job().strategy.kind = StrategyKind::multi_worker_mirrored;
    p.only_job().strategy.servers.reset();
  });
}

/// The same accelerators and the same batch, cut another way.
void add_layouts(Changes& changes, const Plan& plan) {
  const PlannedStrategy& s = plan.only_job().strategy;
  if (!cuts_the_model(s)) return;
  const auto set = [&](const char* name, int Layout::*member, int to) {
    changes.add(fmt::format("{} {} instead of {}", name, to, s.layout.*member),
                [=](Plan& p) { p.only_job().strategy.layout.*member = to; });
  };
  const StrategyTraits& traits = traits_of(s.kind);
  if (traits.any_degrees) {
    const std::pair<const char*, int Layout::*> degrees[] = {{"tensor", &Layout::tensor},
                                                             {"pipeline", &Layout::pipeline},
                                                             {"context", &Layout::context},
                                                             {"expert", &Layout::expert}};
    for (const auto& [name, member] : degrees) {
      set(name, member, 2 * (s.layout.*member));
      if (s.layout.*member % 2 == 0) set(name, member, s.layout.*member / 2);
    }
    if (s.layout.pipeline > 1 && s.layout.interleave == 1)
      changes.add("an interleaved pipeline of 2 parts a stage", [](Plan& p) {
        p.only_job().strategy.layout.schedule = PipelineSchedule::interleaved;
        p.only_job().strategy.layout.interleave = 2;
      });
  }
  constexpr int kHighest = 3;
  if (s.layout.zero_stage < kHighest)
    set("zero_stage", &Layout::zero_stage, s.layout.zero_stage + 1);
  if (s.layout.zero_stage > traits.least_zero_stage)
    set("zero_stage", &Layout::zero_stage, s.layout.zero_stage - 1);
  changes.plan_option.clear();
  if (s.layout.offload_optimizer)
    changes.add("the optimizer's state on the accelerators",
                [](Plan& p) { p.only_job().strategy.layout.offload_optimizer = false; });
}

void add_algorithms(Changes& changes, const Plan& plan, const StepEstimate& now) {
  // Processes on CPUs choose between a ring and the direct way by themselves.
  if (now.all_reduce.empty() || !computing_pools(plan).front()->accelerator) return;
  const PlannedStrategy& s = plan.only_job().strategy;
  const Fabric fabric = fabric_of(plan, s, s.workers);
  for (const AllReduceAlgorithm& each : all_reduces()) {
    const AllReduceKind kind = each.kind;
    if (!each.runs_on(fabric) || to_text(kind) == now.all_reduce) continue;
    changes.add(fmt::format("{} all-reduce instead of {}", to_text(kind), now.all_reduce),
                [kind](Plan& p) { p.only_job().strategy.all_reduce = kind; });
  }
}

}  // namespace

std::vector<Change> changes_that_apply(const Plan& plan, const StepEstimate& now,
                                       const NetworkModel& network) {
  Changes changes(plan);
  add_hardware(changes, plan, now);
  changes.plan_option = "--global-batch";
  add_batch(changes, plan);
  changes.plan_option = "--nodes";
  add_workers(changes, plan);
  add_servers(changes, plan);
  changes.plan_option = "--layouts";
  add_layouts(changes, plan);
  changes.plan_option.clear();
  add_algorithms(changes, plan, now);
  return changes.estimate(network);
}

}  // namespace reckon
