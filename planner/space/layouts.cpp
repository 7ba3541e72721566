#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "planner/space/site.h"
#include "sim/base/parallel.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/step/input.h"
#include "sim/step/step_model.h"

// Every way to cut the model over so many nodes: data x tensor x pipeline x context x expert
// parallelism, ZeRO, micro-batch, schedule and recomputation.
namespace reckon::planner {
namespace {

/// Passes of a copy get no shorter by much beyond this, and memory grows.
constexpr int kLargestMicroBatch = 64;
/// From so long a sequence on its tokens are shared out [Liu et al. 2023, "Ring Attention"].
constexpr std::int64_t kLongSequence = 32'768;

std::vector<int> divisors(std::int64_t n, std::int64_t most) {
  std::vector<int> out;
  for (std::int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) out.push_back(int(d));
  return out;
}
std::vector<int> powers_of_two(std::int64_t most) {
  std::vector<int> out;
  for (std::int64_t d = 1; d <= most; d *= 2) out.push_back(int(d));
  return out;
}

/// A node without accelerators computes on its CPUs as one rank.
int ranks_of_node(const SplitSource& source) { return std::max(1, source.hardware.per_node); }

class CutSplits {
 public:
  CutSplits(const SplitSource& source, Rejections& rejected)
      : s_(source),
        w_(*source.question.file.scenario.workload),
        model_(source.on.job().model, step_setting(source.on.plan, source.on.job())),
        rejected_(rejected) {
    modes_ = s_.question.may.recompute;
    if (modes_.empty())
      modes_ = s_.question.may.layouts
                   ? std::vector{Recompute::none, Recompute::selective, Recompute::full}
                   : std::vector{w_.strategy.recompute.value_or(Recompute::none)};
  }
  std::vector<Split> splits;

  void add_sharded(int nodes) {
    Layout l;
    l.data = nodes * ranks_of_node(s_);
    const bool own = w_.strategy.kind == StrategyKind::sharded;
    l.overlap = w_.strategy.overlap.value_or(true);
    l.offload_optimizer = own && w_.strategy.offload_optimizer.value_or(false);
    l.stops_recomputing = true;
    std::vector<int> stages{1, 2, 3};
    if (own && w_.strategy.zero_stage && !s_.question.may.layouts)
      stages = {*w_.strategy.zero_stage};
    else if (own && !s_.question.may.layouts && s_.question.may.kinds.empty())
      stages = {3};
    for (const int stage : stages)
      for (const Recompute mode : modes_) {
        l.zero_stage = stage;
        l.recompute = mode;
        add_batches(StrategyKind::sharded, nodes, l,
                    own && !s_.question.may.layouts ? w_.strategy.micro_batch : std::nullopt);
      }
  }

  void add_model_parallel(int nodes) {
    if (!s_.question.may.global_batch) {
      ++rejected_["model parallelism without a global batch"];
      return;
    }
    const std::int64_t accelerators = std::int64_t{nodes} * ranks_of_node(s_);
    const LayoutLimits& limits = model_.limits();
    if (!s_.question.may.layouts && w_.strategy.kind == StrategyKind::model_parallel)
      return add_own_degrees(nodes, accelerators);
    const std::int64_t contexts =
        limits.attention && limits.sequence_length >= kLongSequence ? 16 : 1;
    for (const int tensor : divisors(ranks_of_node(s_), limits.attention ? 64 : 1))
      for (const int context : powers_of_two(contexts)) {
        const std::int64_t rest = accelerators / tensor / context;
        if (rest * tensor * context != accelerators) continue;
        for (const int pipeline : divisors(rest, limits.blocks)) {
          const std::int64_t data = rest / pipeline;
          if (*s_.question.may.global_batch % data != 0) {
            ++rejected_[kBatchDoesNotDivide];
            continue;
          }
          Layout l;
          l.tensor = tensor;
          l.context = context;
          l.pipeline = pipeline;
          l.data = int(data);
          l.sequence_parallel = tensor > 1;
          add_experts(nodes, l);
        }
      }
  }

  /// Step times of all splits, on several threads.
  void time_them() {
    // `steps` follows from the batch alone.
    for (Split& split : splits) {
      planning::take_batch(s_.on.job(), *w_.train, split.layout.global_batch());
      split.steps = s_.on.job().steps;
    }
    const auto tables = tables_by_nodes();
    constexpr std::size_t kChunk = 256;
    parallel_for((splits.size() + kChunk - 1) / kChunk, 0, [&](std::size_t chunk) {
      const std::size_t end = std::min(splits.size(), (chunk + 1) * kChunk);
      for (std::size_t k = chunk * kChunk; k < end; ++k) time_it(splits[k], tables);
    });
  }

 private:
  using TablesByNodes = std::map<int, ResidualTable>;
  /// What evidence says of the splits of so many nodes; empty: nothing.
  TablesByNodes tables_by_nodes() {
    TablesByNodes tables;
    if (!s_.takes_evidence) return tables;
    for (const Split& split : splits) {
      if (tables.contains(split.nodes)) continue;
      if (!s_.on.take(split).empty()) continue;  // refused when it is forecast
      const EvidenceFeatures f = features_of(s_.on.plan, s_.on.job());
      tables.emplace(split.nodes, s_.question.base.evidence->table(f));
    }
    return tables;
  }

  /// As estimate_step says it: no sooner than the input comes.
  void time_it(Split& split, const TablesByNodes& tables) const {
    const PlannedPool& pool = s_.on.workers();
    const Layout& layout = split.layout;
    const double samples = double(layout.global_batch()) / double(layout.accelerators());
    const Seconds input = input_times(pool, s_.on.job(), samples).slowest();
    StepEstimate step = model_.estimate(layout);
    step.step = std::max(step.step + pool.host_step.value, input);
    split.step_seconds = step.step.count();
    const auto table = tables.find(split.nodes);
    if (table != tables.end())
      move_by(split, table->second.at(std::log(double(layout.accelerators())), std::log(samples),
                                      device_share(step)));
  }

  void add_own_degrees(int nodes, std::int64_t accelerators) {
    const StrategySpec& given = w_.strategy;
    Layout l;
    l.tensor = given.tensor.value_or(1);
    l.pipeline = given.pipeline.value_or(1);
    l.context = given.context.value_or(1);
    l.expert = given.expert.value_or(1);
    l.zero_stage = given.zero_stage.value_or(0);
    l.sequence_parallel = l.tensor > 1 && given.sequence_parallel.value_or(true);
    l.schedule = given.schedule.value_or(PipelineSchedule::one_forward_one_backward);
    l.interleave = l.schedule == PipelineSchedule::interleaved ? given.interleave.value_or(2) : 1;
    l.overlap = given.overlap.value_or(true);
    l.offload_optimizer = given.offload_optimizer.value_or(false);
    l.data = int(accelerators / (std::int64_t{l.tensor} * l.pipeline * l.context));
    if (l.data == 0) return reject("fewer accelerators than one copy of the model takes");
    for (const Recompute mode : modes_) {
      l.recompute = mode;
      add_batches(StrategyKind::model_parallel, nodes, l, given.micro_batch.value_or(1));
    }
  }

  void add_experts(int nodes, Layout l) {
    std::vector<int> degrees{1};
    for (const std::int64_t experts : model_.limits().experts)
      for (const int d : divisors(std::gcd(experts, std::int64_t{l.data}), 256))
        if (std::ranges::find(degrees, d) == degrees.end()) degrees.push_back(d);
    for (const int expert : degrees) {
      l.expert = expert;
      add_stages(nodes, l);
    }
  }

  /// ZeRO beyond the optimizer's state gathers or scatters in every pass, which a pipeline repeats
  /// for every micro-batch: it is tried without one.
  void add_stages(int nodes, Layout l) {
    const bool shards = l.replicas_of_state() > 1;
    for (const int stage : {0, 1, 2, 3}) {
      if (stage > 0 && !shards) break;
      if (stage > 1 && l.pipeline > 1) break;
      l.zero_stage = stage;
      for (const int parts : interleavings(l)) {
        l.schedule =
            parts > 1 ? PipelineSchedule::interleaved : PipelineSchedule::one_forward_one_backward;
        l.interleave = parts;
        for (const Recompute mode : modes_) {
          l.recompute = mode;
          add_batches(StrategyKind::model_parallel, nodes, l, std::nullopt);
        }
      }
    }
  }
  std::vector<int> interleavings(const Layout& l) const {
    std::vector<int> parts{1};
    for (int v = 2; l.pipeline > 1 && v * l.pipeline <= model_.limits().blocks; ++v)
      if (model_.limits().blocks % (v * l.pipeline) == 0) parts.push_back(v);
    return parts;
  }

  void add_batches(StrategyKind kind, int nodes, Layout l, std::optional<int> micro) {
    std::int64_t share = 0;
    if (s_.question.may.global_batch && kind == StrategyKind::model_parallel) {
      share = *s_.question.may.global_batch / l.data;
      if (share * l.data != *s_.question.may.global_batch) return reject(kBatchDoesNotDivide);
    } else if (s_.question.may.global_batch) {
      share = *s_.question.may.global_batch / l.accelerators();
      if (share * l.accelerators() != *s_.question.may.global_batch)
        return reject(kBatchDoesNotDivide);
    } else if (s_.question.may.batch_per_accelerator) {
      share = *s_.question.may.batch_per_accelerator;
      if (!micro) micro = int(share);
    } else {
      return add_largest(kind, nodes, l);
    }
    if (micro) {
      if (share % *micro != 0) return reject(kBatchDoesNotDivide);
      l.micro_batch = *micro;
      l.micro_batches = share / *micro;
      add(kind, nodes, l);
      return;
    }
    for (const int batch : powers_of_two(std::min<std::int64_t>(share, kLargestMicroBatch))) {
      if (share % batch != 0) break;
      l.micro_batch = batch;
      l.micro_batches = share / batch;
      if (!add(kind, nodes, l)) break;  // memory grows with the batch
    }
  }

  void add_largest(StrategyKind kind, int nodes, Layout l) {
    l.micro_batches = 1;
    const PlannedWorkload& job = s_.on.job();
    const std::int64_t most = most_global_batch(s_.question, job);
    if (l.data > most)
      return reject(is_beyond_runs(job, l.data) ? kBatchNeverReached : kBatchTooLarge);
    const auto fits = [&](int batch) {
      l.micro_batch = batch;
      return planner::fits(s_, memory_.at(l));
    };
    int batch = 1;
    while (std::int64_t{2} * batch * l.data <= most && fits(2 * batch)) batch *= 2;
    l.micro_batch = batch;
    add(kind, nodes, l);
  }

  /// False: it does not fit in memory.
  bool add(StrategyKind kind, int nodes, const Layout& l) {
    const std::int64_t batch =
        s_.question.may.global_batch ? *s_.question.may.global_batch : l.global_batch();
    if (!broken_rules(model_.limits(), l, int(l.accelerators()), batch).empty()) {
      reject("the layout breaks a rule of the model");
      return true;
    }
    if (is_beyond_runs(s_.on.job(), batch)) {
      reject(kBatchNeverReached);
      return true;
    }
    if (!planner::fits(s_, memory_.at(l))) {
      reject(kTooLittleMemory);
      return false;
    }
    Split split;
    split.kind = kind;
    split.nodes = nodes;
    split.layout = l;
    splits.push_back(split);
    return true;
  }
  void reject(const char* reason) { ++rejected_[reason]; }

  const SplitSource& s_;
  const WorkloadSpec& w_;
  const StepModel model_;
  LayoutMemory memory_{model_};
  Rejections& rejected_;
  std::vector<Recompute> modes_;
};

}  // namespace

std::vector<Split> cut_splits(const SplitSource& source, Rejections& rejected) {
  const std::vector<int>& nodes = source.question.may.nodes;
  const auto allowed = [&](int n, StrategyKind kind) {
    return std::ranges::count(kinds_for(source, n), kind) > 0;
  };
  const auto any = [&](StrategyKind kind) {
    return std::ranges::any_of(nodes, [&](int n) { return allowed(n, kind); });
  };
  if (!any(StrategyKind::sharded) && !any(StrategyKind::model_parallel)) return {};
  // The setting's fabric has to hold the largest layout.
  Split largest;
  largest.kind = StrategyKind::sharded;
  largest.nodes = nodes.back();
  largest.layout.data = nodes.back() * ranks_of_node(source);
  largest.layout.zero_stage = 3;
  const Diagnostics wrong = source.on.take(largest);
  if (source.on.job().strategy.accelerators() < largest.layout.accelerators()) {
    ++rejected[wrong.empty() ? "accelerators that the strategy does not use" : wrong.front().what];
    return {};
  }
  CutSplits made(source, rejected);
  for (const int n : nodes) {
    if (allowed(n, StrategyKind::sharded)) made.add_sharded(n);
    if (allowed(n, StrategyKind::model_parallel)) made.add_model_parallel(n);
  }
  made.time_them();
  return std::move(made.splits);
}

}  // namespace reckon::planner
