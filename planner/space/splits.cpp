#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "planner/space/site.h"
#include "sim/scenario/resolve/training/workers.h"
#include "sim/step/memory/layout_memory.h"
#include "sim/step/servers/delayed_updates.h"
#include "sim/step/step_model.h"

// The model as a whole on every accelerator: single, mirrored, multi-worker, parameter servers, TPU
// slices.
namespace reckon::planner {
namespace {

const StrategySpec& strategy_of(const Question& question) {
  return question.file.scenario.workload->strategy;
}

class WholeSplits {
 public:
  WholeSplits(const SplitSource& source, Rejections& rejected) : s_(source), rejected_(rejected) {}
  std::vector<Split> splits;

  void add(StrategyKind kind, int nodes, int servers, Recompute recompute) {
    Split split;
    split.kind = kind;
    split.nodes = nodes;
    split.parameter_servers = servers;
    split.layout.recompute = recompute;
    split.layout.data = accelerators_of(kind, nodes);
    if (!set_batch(split)) return;
    if (const Diagnostics wrong = s_.on.take(split); !wrong.empty()) {
      ++rejected_[wrong.front().what];
      return;
    }
    if (is_beyond_runs(s_.on.job(), s_.on.job().global_batch)) {
      ++rejected_[kBatchNeverReached];
      return;
    }
    if (!fits(split)) {
      ++rejected_[kTooLittleMemory];
      return;
    }
    const PlannedWorkload& job = s_.on.job();
    const StepEstimate step = step_of(job);
    split.steps = delayed_steps(job, step);
    split.step_seconds = step.step.count();
    if (s_.takes_evidence) {
      const EvidenceFeatures f = features_of(s_.on.plan, job);
      move_by(split, s_.question.base.evidence->residual(f, device_share(step)));
    }
    splits.push_back(split);
  }

 private:
  /// Of all workers; those that compute on CPUs count as one each.
  int accelerators_of(StrategyKind kind, int nodes) const {
    const StrategySpec& given = strategy_of(s_.question);
    StrategySpec other;
    other.kind = kind;
    const int per_node = s_.hardware.per_node;
    const int each =
        planning::accelerators_per_worker(given.kind == kind ? given : other, per_node);
    const bool one = planning::has_one_worker(kind, !s_.hardware.slice.empty());
    return (one ? 1 : planning::workers_on(nodes, per_node, each)) * std::max(1, each);
  }

  /// Memory of data parallelism knows the batch of one accelerator, not how many there are. What
  /// cannot be planned is told when the split is taken.
  bool fits(const Split& split) {
    const auto key = std::tuple(split.kind, split.layout.micro_batch, split.layout.recompute);
    const auto found = fits_.find(key);
    if (found != fits_.end()) return found->second;
    if (!s_.on.take(split).empty()) return true;
    const PlannedWorkload& job = s_.on.job();
    const bool does = planner::fits(s_, estimate_memory(s_.on.plan, job, fold_of(job).folded));
    fits_.emplace(key, does);
    return does;
  }
  bool fits_with(Split split, std::int64_t batch) {
    split.layout.micro_batch = int(batch);
    return fits(split);
  }

  /// No split changes the model, which takes longer to fold than its step to estimate.
  const ModelFold& fold_of(const PlannedWorkload& job) {
    if (!fold_) fold_.emplace(job.model);
    return *fold_;
  }
  StepEstimate step_of(const PlannedWorkload& job) {
    if (job.strategy.servers) return estimate_step(s_.on.plan, job, s_.network);
    return estimate_step(s_.on.plan, job, fold_of(job), s_.network);
  }

  bool set_batch(Split& split) {
    const WorkloadSpec& w = *s_.question.file.scenario.workload;
    Layout& l = split.layout;
    const auto micro = w.strategy.kind == split.kind ? w.strategy.micro_batch : std::nullopt;
    if (s_.question.may.batch_per_accelerator)
      return share_out(split, *s_.question.may.batch_per_accelerator, micro);
    if (s_.question.may.global_batch) {
      // Backup workers compute, but their samples do not count (training/batch.cpp).
      const int backup = w.strategy.kind == split.kind ? w.strategy.backup_workers.value_or(0) : 0;
      const std::int64_t useful = l.data - backup;
      if (useful < 1 || *s_.question.may.global_batch % useful != 0) {
        ++rejected_[kBatchDoesNotDivide];
        return false;
      }
      return share_out(split, *s_.question.may.global_batch / useful,
                       micro ? micro : largest_pass(split, *s_.question.may.global_batch / useful));
    }
    l.micro_batches = 1;
    l.micro_batch = 1;
    const std::int64_t most = most_global_batch(s_.question, s_.on.job());
    if (l.data > most) {
      ++rejected_[is_beyond_runs(s_.on.job(), l.data) ? kBatchNeverReached : kBatchTooLarge];
      return false;
    }
    for (std::int64_t next = 2; next * l.data <= most; next *= 2) {
      if (!fits_with(split, next)) break;
      l.micro_batch = int(next);
    }
    return true;
  }
  bool share_out(Split& split, std::int64_t share, std::optional<int> pass) {
    const std::int64_t one = pass.value_or(int(share));
    if (share % one != 0) {
      ++rejected_[kBatchDoesNotDivide];
      return false;
    }
    split.layout.micro_batch = int(one);
    split.layout.micro_batches = share / one;
    return true;
  }
  /// The fewest passes that fit: of the share's divisors the largest; 1 where none fits.
  int largest_pass(const Split& split, std::int64_t share) {
    for (std::int64_t passes = 1; passes < share; ++passes)
      if (share % passes == 0 && fits_with(split, share / passes)) return int(share / passes);
    return 1;
  }

  const SplitSource& s_;
  Rejections& rejected_;
  std::map<std::tuple<StrategyKind, int, Recompute>, bool> fits_;
  std::optional<ModelFold> fold_;
};

constexpr const char* kMoreServersThanNodes =
    "more parameter servers than nodes, each of which holds one";

std::vector<int> servers_for(const SplitSource& source, int nodes) {
  const Freedom& may = source.question.may;
  const bool colocated = colocates_servers(source.question);
  if (may.parameter_servers.empty()) {
    const auto& given = strategy_of(source.question).parameter_servers;
    const int count = given.value_or(colocated ? nodes : source.on.servers);
    return {std::max(count, source.hardware.server_machine.empty() ? 0 : 1)};
  }
  std::vector<int> counts = may.parameter_servers;
  if (colocated) {
    std::erase(counts, 0);  // it has some
    return counts;
  }
  // Machines of servers are kinds of hardware of their own, as are servers beside the workers.
  const bool machine = !source.hardware.server_machine.empty();
  if (!may.server_machines.empty())
    std::erase_if(counts, [machine](int count) { return (count > 0) != machine; });
  return counts;
}

}  // namespace

bool fits(const SplitSource& source, const MemoryEstimate& memory) {
  if (fits(source.question, memory)) return true;
  const auto lacks = [](const MemoryEstimate& m) { return m.required() / m.available; };
  if (!source.closest || lacks(memory) < lacks(*source.closest)) source.closest = memory;
  return false;
}

void move_by(Split& split, const Residual& residual) {
  split.step_seconds *= std::exp(-residual.mean);
  split.residual_half_width = residual.half_width;
}

bool is_beyond_runs(const PlannedWorkload& job, std::int64_t global_batch) {
  return job.convergence && global_batch > job.convergence->largest_batch;
}
std::int64_t most_global_batch(const Question& question, const PlannedWorkload& job) {
  const std::int64_t allowed = question.may.most_global_batch;
  return job.convergence ? std::min(allowed, job.convergence->largest_batch) : allowed;
}

std::vector<StrategyKind> kinds_for(const SplitSource& source, int nodes) {
  const std::vector<StrategyKind>& free = source.question.may.kinds;
  const StrategyKind own = strategy_of(source.question).kind;
  const int per_node = std::max(1, source.hardware.per_node);
  const bool slice = !source.hardware.slice.empty();
  // Data parallelism has a name for each number of nodes and accelerators; which one the scenario
  // has says only that it is meant.
  const StrategyKind by_size = slice          ? StrategyKind::tpu
                               : nodes > 1    ? StrategyKind::multi_worker_mirrored
                               : per_node > 1 ? StrategyKind::mirrored
                                              : StrategyKind::single;
  std::vector<StrategyKind> kinds;
  if (free.empty()) {
    const bool keep = own == StrategyKind::multi_worker_mirrored && !slice;
    kinds.push_back(traits_of(own).data_parallel() && !keep ? by_size : own);
  }
  for (const StrategyKind kind : free)
    if (!traits_of(kind).data_parallel() || kind == by_size) kinds.push_back(kind);
  std::erase_if(kinds, [&](StrategyKind kind) {
    const StrategyTraits& strategy = traits_of(kind);
    const bool needs_several = strategy.cuts && nodes * per_node < 2;
    const bool servers = !source.hardware.server_machine.empty();
    if (servers && !strategy.servers) return true;
    return needs_several || (slice && (!strategy.on_slices || nodes > 1));
  });
  return kinds;
}

std::vector<Split> whole_splits(const SplitSource& source, Rejections& rejected) {
  WholeSplits made(source, rejected);
  std::vector<Recompute> modes = source.question.may.recompute;
  if (modes.empty()) modes = {strategy_of(source.question).recompute.value_or(Recompute::none)};
  for (const int nodes : source.question.may.nodes)
    for (const StrategyKind kind : kinds_for(source, nodes)) {
      const StrategyTraits& strategy = traits_of(kind);
      if (strategy.cuts) continue;
      for (const Recompute mode : modes) {
        if (!strategy.servers)
          made.add(kind, nodes, 0, mode);
        else
          for (const int count : servers_for(source, nodes)) {
            if (colocates_servers(source.question) && count > nodes)
              ++rejected[kMoreServersThanNodes];
            else
              made.add(kind, nodes, count, mode);
          }
      }
    }
  return std::move(made.splits);
}

}  // namespace reckon::planner
