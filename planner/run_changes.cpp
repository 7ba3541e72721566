#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "planner/question.h"
#include "planner/remedies.h"
#include "planner/space/space.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/split_text.h"

// Changes of a run that trains the same: numbers of workers, and what a model is cut into.
namespace reckon::planner {
namespace {

const PlannedStrategy& planned_strategy(const Plan& plan) { return plan.only_job().strategy; }

/// Keys that a strategy of another kind would not have, or that no change writes.
bool has_more_than_a_layout(const StrategySpec& s) {
  return s.parameter_servers || s.backup_workers || s.staleness || s.synchronous || s.colocated ||
         s.shards || s.partition || s.sparse_embeddings || s.partition_strategy ||
         !s.stages.empty() || s.all_reduce != AllReduceKind::automatic || s.accelerators_per_worker;
}

class RunChanges {
 public:
  RunChanges(const Scenario& scenario, const Plan& now) : s_(scenario), now_(now) {}
  std::vector<std::vector<Change>> made;

  void on(int nodes) {
    const StrategySpec& given = s_.workload->strategy;
    const int nodes_now = std::max(1, worker_pool(s_).nodes.initial);
    const int workers = planned_strategy(now_).workers * nodes / nodes_now;
    if (workers < 1 || workers * nodes_now != planned_strategy(now_).workers * nodes) return;
    const StrategyTraits& traits = traits_of(given.kind);
    if (!traits.any_degrees) keep_kind(nodes, workers);
    if (has_more_than_a_layout(given) || !traits.on_machines) return;
    const int each = std::max(1, planned_strategy(now_).accelerators_per_worker);
    whole(nodes, workers, each);
    for (const int stage : {1, 2, 3}) sharded(nodes, workers, each, stage);
    cut(nodes, workers * each);
  }

 private:
  const WorkloadSpec& workload() const { return *s_.workload; }

  /// Nodes, and how a step's samples are shared out over so many copies of the model; nullopt: not
  /// evenly.
  std::optional<std::vector<Change>> shared(int nodes, std::int64_t copies) const {
    const std::int64_t batch = now_.only_job().global_batch;
    if (copies < 1 || batch % copies != 0) return std::nullopt;
    const std::int64_t share = batch / copies;
    const auto& micro = workload().strategy.micro_batch;
    if (micro && share % *micro != 0) return std::nullopt;
    std::vector<Change> changes;
    const PoolSpec& pool = worker_pool(s_);
    if (nodes != pool.nodes.initial) {
      const bool fixed = pool.nodes.min == pool.nodes.max;
      changes.emplace_back(
          SetNodes{pool.name, fixed ? NodesSpec{nodes, nodes, nodes}
                                    : NodesSpec{nodes, std::min(pool.nodes.min, nodes),
                                                std::max(pool.nodes.max, nodes)}});
    }
    if (!workload().global_batch) changes.emplace_back(SetBatchPerAccelerator{int(share)});
    return changes;
  }

  void add(std::optional<std::vector<Change>> changes, std::optional<Change> then) {
    if (!changes) return;
    if (then) changes->push_back(std::move(*then));
    made.push_back(std::move(*changes));
  }

  /// As it is, on other nodes.
  void keep_kind(int nodes, int workers) {
    const StrategySpec& given = workload().strategy;
    if (traits_of(given.kind).one_worker()) return;
    const std::int64_t ranks =
        std::int64_t{workers} * std::max(1, planned_strategy(now_).accelerators_per_worker);
    const std::int64_t useful = ranks - given.backup_workers.value_or(0);
    add(shared(nodes, useful),
        given.workers ? std::optional<Change>(SetWorkers{workers}) : std::nullopt);
  }

  StrategySpec of_kind(StrategyKind kind) const {
    StrategySpec s;
    s.kind = kind;
    s.recompute = workload().strategy.recompute;
    s.micro_batch = workload().strategy.micro_batch;
    return s;
  }

  void whole(int nodes, int workers, int each) {
    if (workload().strategy.kind == StrategyKind::multi_worker_mirrored) return;  // as it is
    StrategySpec s = of_kind(workers > 1 ? StrategyKind::multi_worker_mirrored
                             : each > 1  ? StrategyKind::mirrored
                                         : StrategyKind::single);
    if (workers > 1) s.workers = workers;
    add(shared(nodes, std::int64_t{workers} * each), SetStrategy{s});
  }

  void sharded(int nodes, int workers, int each, int stage) {
    if (workers * each < 2) return;
    StrategySpec s = of_kind(StrategyKind::sharded);
    s.workers = workers;
    s.zero_stage = stage;
    add(shared(nodes, std::int64_t{workers} * each), SetStrategy{s});
  }

  /// Powers of two of tensor ranks and stages; the rest are copies. A step's samples are then the
  /// scenario's to say, not an accelerator's.
  void cut(int nodes, int ranks) {
    if (!workload().global_batch) return;
    for (int tensor = 1; tensor <= ranks; tensor *= 2)
      for (int pipeline = 1; tensor * pipeline <= ranks; pipeline *= 2) {
        if (ranks % (tensor * pipeline) != 0) continue;
        StrategySpec s = of_kind(StrategyKind::model_parallel);
        s.data = ranks / (tensor * pipeline);
        s.tensor = tensor;
        s.pipeline = pipeline;
        if (!s.micro_batch) s.micro_batch = 1;
        add(shared(nodes, *s.data), SetStrategy{s});
      }
  }

  const Scenario& s_;
  const Plan& now_;
};

/// "two", "13".
std::string number_word(int n) {
  static constexpr std::array kWords{"no",    "one",   "two",  "three", "four",   "five",  "six",
                                     "seven", "eight", "nine", "ten",   "eleven", "twelve"};
  return n < int(kWords.size()) ? kWords[std::size_t(n)] : format_count(n);
}

}  // namespace

std::vector<std::vector<Change>> changes_of_run(const Scenario& scenario, const Plan& now,
                                                const std::vector<int>& nodes) {
  if (!scenario.workload || !planned_strategy(now).synchronous()) return {};
  RunChanges changes(scenario, now);
  for (const int n : nodes) changes.on(n);
  return std::move(changes.made);
}

std::vector<int> nodes_of_run(const Scenario& scenario) {
  if (scenario.plan) {
    const auto& vary = scenario.plan->vary;
    if (const auto said = vary.find("nodes"); said != vary.end()) return counts_of(said->second);
  }
  const NodesSpec& own = worker_pool(scenario).nodes;
  const bool ranges = own.min < own.max;
  const int low = ranges ? std::max(1, own.min) : 1;
  const int high = ranges ? own.max : 2 * std::max(1, own.initial);
  return counts_of({fmt::format("{}..{}", low, high)});
}

bool same_layout(const PlannedStrategy& a, const PlannedStrategy& b) {
  const Layout &x = a.layout, &y = b.layout;
  const bool cut = cuts_the_model(a) || cuts_the_model(b);
  return (!cut || a.kind == b.kind) && x.tensor == y.tensor && x.pipeline == y.pipeline &&
         x.context == y.context && x.expert == y.expert && x.zero_stage == y.zero_stage &&
         x.schedule == y.schedule && x.interleave == y.interleave && x.recompute == y.recompute;
}

std::string what_changes(const Plan& now, const Plan& next) {
  const PlannedStrategy &a = planned_strategy(now), &b = planned_strategy(next);
  const int more = b.workers - a.workers;
  std::string what;
  if (more > 0)
    what = fmt::format("{} more worker{}", number_word(more), more == 1 ? "" : "s");
  else if (more < 0)
    what = fmt::format("{} worker{} fewer", number_word(-more), more == -1 ? "" : "s");
  if (same_layout(a, b)) return what;
  return (what.empty() ? std::string("the same workers") : what) + " as " +
         split_text(next.only_job());
}

}  // namespace reckon::planner
