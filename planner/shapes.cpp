#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "planner/site.h"
#include "sim/step/step_model.h"

// The model as a whole on every accelerator: single, mirrored, multi-worker, parameter servers, TPU
// slices.
namespace reckon::planner {
namespace {

const StrategySpec& strategy_of(const Question& question) {
  return question.file.scenario.workload->strategy;
}

bool is_data_parallel(StrategyKind kind) {
  return kind == StrategyKind::single || kind == StrategyKind::mirrored ||
         kind == StrategyKind::multi_worker_mirrored || kind == StrategyKind::tpu;
}

/// Accelerators of one worker, by the rules of make_plan (plan_strategy.cpp).
int accelerators_per_worker(const Question& question, StrategyKind kind, int per_node) {
  const StrategySpec& given = strategy_of(question);
  if (given.kind == kind && given.accelerators_per_worker) return *given.accelerators_per_worker;
  const bool one = kind == StrategyKind::single || kind == StrategyKind::parameter_server;
  return one ? std::min(per_node, 1) : per_node;
}

int workers_of(StrategyKind kind, int nodes, int per_node, int per_worker) {
  const bool one =
      kind == StrategyKind::single || kind == StrategyKind::mirrored || kind == StrategyKind::tpu;
  if (one) return 1;
  return per_worker == 0 ? nodes : nodes * (per_node / per_worker);
}

class WholeShapes {
 public:
  WholeShapes(const ShapeSource& source, Rejections& rejected) : s_(source), rejected_(rejected) {}
  std::vector<Shape> shapes;

  void add(StrategyKind kind, int nodes, int servers, Recompute recompute) {
    Shape shape;
    shape.kind = kind;
    shape.nodes = nodes;
    shape.parameter_servers = servers;
    shape.layout.recompute = recompute;
    const int per_node = s_.hardware.per_node;
    const int per_worker = accelerators_per_worker(s_.question, kind, per_node);
    shape.layout.data = workers_of(kind, nodes, per_node, per_worker) * std::max(1, per_worker);
    if (!set_batch(shape)) return;
    apply_shape(shape, s_.question, s_.worker_pool, s_.plan);
    if (is_beyond_runs(s_.plan.jobs.front(), s_.plan.jobs.front().global_batch)) {
      ++rejected_[kBatchNeverReached];
      return;
    }
    if (!fits(shape)) {
      ++rejected_[kTooLittleMemory];
      return;
    }
    apply_shape(shape, s_.question, s_.worker_pool, s_.plan);
    const PlannedWorkload& job = s_.plan.jobs.front();
    shape.steps = job.steps;
    const StepEstimate step = step_of(job);
    shape.step_seconds = step.step.count();
    if (s_.takes_evidence) {
      const EvidenceFeatures f = features_of(s_.plan, job);
      move_by(shape, s_.question.base.evidence->residual(f, device_share(step)));
    }
    shapes.push_back(shape);
  }

 private:
  /// Memory of data parallelism knows the batch of one accelerator, not how many there are.
  bool fits(const Shape& shape) {
    const auto key = std::tuple(shape.kind, shape.layout.micro_batch, shape.layout.recompute);
    const auto found = fits_.find(key);
    if (found != fits_.end()) return found->second;
    apply_shape(shape, s_.question, s_.worker_pool, s_.plan);
    const bool does = planner::fits(s_, estimate_memory(s_.plan, s_.plan.jobs.front()));
    fits_.emplace(key, does);
    return does;
  }
  bool fits_with(Shape shape, std::int64_t batch) {
    shape.layout.micro_batch = int(batch);
    return fits(shape);
  }

  /// No shape changes the model, which takes longer to fold than its step to estimate.
  StepEstimate step_of(const PlannedWorkload& job) {
    if (job.strategy.kind == StrategyKind::parameter_server)
      return estimate_step(s_.plan, job, s_.network);
    if (!fold_) fold_.emplace(job.model);
    return estimate_step(s_.plan, job, *fold_, s_.network);
  }

  bool set_batch(Shape& shape) {
    const WorkloadSpec& w = *s_.question.file.scenario.workload;
    Layout& l = shape.layout;
    const auto micro = w.strategy.kind == shape.kind ? w.strategy.micro_batch : std::nullopt;
    if (s_.question.may.batch_per_accelerator)
      return share_out(shape, *s_.question.may.batch_per_accelerator, micro);
    if (s_.question.may.global_batch) {
      // Backup workers compute, but their samples do not count (plan_batch.cpp).
      const int backup = w.strategy.kind == shape.kind ? w.strategy.backup_workers.value_or(0) : 0;
      const std::int64_t useful = l.data - backup;
      if (useful < 1 || *s_.question.may.global_batch % useful != 0) {
        ++rejected_[kBatchDoesNotDivide];
        return false;
      }
      return share_out(shape, *s_.question.may.global_batch / useful,
                       micro ? micro : largest_pass(shape, *s_.question.may.global_batch / useful));
    }
    l.micro_batches = 1;
    l.micro_batch = 1;
    const std::int64_t most = most_global_batch(s_.question, s_.plan.jobs.front());
    if (l.data > most) {
      ++rejected_[is_beyond_runs(s_.plan.jobs.front(), l.data) ? kBatchNeverReached
                                                               : kBatchTooLarge];
      return false;
    }
    for (std::int64_t next = 2; next * l.data <= most; next *= 2) {
      if (!fits_with(shape, next)) break;
      l.micro_batch = int(next);
    }
    return true;
  }
  bool share_out(Shape& shape, std::int64_t share, std::optional<int> pass) {
    const std::int64_t one = pass.value_or(int(share));
    if (share % one != 0) {
      ++rejected_[kBatchDoesNotDivide];
      return false;
    }
    shape.layout.micro_batch = int(one);
    shape.layout.micro_batches = share / one;
    return true;
  }
  /// The fewest passes that fit: of the share's divisors the largest; 1 where none fits.
  int largest_pass(const Shape& shape, std::int64_t share) {
    for (std::int64_t passes = 1; passes < share; ++passes)
      if (share % passes == 0 && fits_with(shape, share / passes)) return int(share / passes);
    return 1;
  }

  const ShapeSource& s_;
  Rejections& rejected_;
  std::map<std::tuple<StrategyKind, int, Recompute>, bool> fits_;
  std::optional<ModelFold> fold_;
};

constexpr const char* kMoreServersThanNodes =
    "more parameter servers than nodes, each of which holds one";

std::vector<int> servers_for(const ShapeSource& source, int nodes) {
  const Freedom& may = source.question.may;
  const bool colocated = colocates_servers(source.question);
  if (may.parameter_servers.empty()) {
    const int own = source.plan.jobs.front().strategy.parameter_servers;
    return {colocated ? strategy_of(source.question).parameter_servers.value_or(nodes) : own};
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

bool fits(const ShapeSource& source, const MemoryEstimate& memory) {
  if (fits(source.question, memory)) return true;
  const auto lacks = [](const MemoryEstimate& m) { return m.required() / m.available; };
  if (!source.closest || lacks(memory) < lacks(*source.closest)) source.closest = memory;
  return false;
}

void move_by(Shape& shape, const Residual& residual) {
  shape.step_seconds *= std::exp(-residual.mean);
  shape.residual_half_width = residual.half_width;
}

std::int64_t steps_of(const Question& question, const PlannedWorkload& job,
                      std::int64_t global_batch) {
  const TrainLength& train = *question.file.scenario.workload->train;
  if (train.unit == TrainLength::Unit::steps) return std::int64_t(std::ceil(train.amount - 1e-9));
  const double samples =
      job.convergence ? samples_to_target(*job.convergence, global_batch).v : job.total_samples;
  constexpr double kBeyondAny = 1e18;  // no plan has so many: simulated are 1e12
  return std::int64_t(std::min(std::ceil(samples / double(global_batch) - 1e-9), kBeyondAny));
}

bool is_beyond_runs(const PlannedWorkload& job, std::int64_t global_batch) {
  return job.convergence && global_batch > job.convergence->largest_batch;
}
std::int64_t most_global_batch(const Question& question, const PlannedWorkload& job) {
  const std::int64_t allowed = question.may.most_global_batch;
  return job.convergence ? std::min(allowed, job.convergence->largest_batch) : allowed;
}

void apply_shape(const Shape& shape, const Question& question, std::size_t worker_pool,
                 Plan& plan) {
  PlannedWorkload& job = plan.jobs.front();
  PlannedPool& pool = plan.pools[worker_pool];
  pool.nodes_initial = pool.nodes_min = pool.nodes_max = shape.nodes;
  PlannedStrategy& s = job.strategy;
  const Layout& l = shape.layout;
  s.kind = shape.kind;
  const int per_node = pool.accelerators_per_node;
  s.accelerators_per_worker = accelerators_per_worker(question, shape.kind, per_node);
  s.workers = workers_of(shape.kind, shape.nodes, per_node, s.accelerators_per_worker);
  s.parameter_servers = shape.parameter_servers;
  for (PlannedPool& other : plan.pools)
    if (other.role == Role::parameter_server && shape.parameter_servers > 0)
      other.nodes_initial = other.nodes_min = other.nodes_max = shape.parameter_servers;
  s.recompute = l.recompute;
  s.tensor = l.tensor;
  s.pipeline = l.pipeline;
  s.context = l.context;
  s.expert = l.expert;
  s.zero_stage = l.zero_stage;
  s.sequence_parallel = l.sequence_parallel;
  s.schedule = l.schedule;
  s.interleave = l.interleave;
  s.offload_optimizer = l.offload_optimizer;
  s.overlap = l.overlap;
  job.batch_per_accelerator = l.micro_batch;
  const std::int64_t dropped = std::int64_t{s.backup_workers} * l.micro_batch * l.micro_batches *
                               std::max(1, s.accelerators_per_worker);
  const std::int64_t batch =
      l.global_batch() - (shape.kind == StrategyKind::parameter_server ? dropped : 0);
  const TrainLength& train = *question.file.scenario.workload->train;
  if (train.unit == TrainLength::Unit::steps) job.total_samples = train.amount * double(batch);
  change_batch(job, batch);
}

std::vector<StrategyKind> kinds_for(const ShapeSource& source, int nodes) {
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
    kinds.push_back(is_data_parallel(own) && !keep ? by_size : own);
  }
  for (const StrategyKind kind : free)
    if (!is_data_parallel(kind) || kind == by_size) kinds.push_back(kind);
  // What cuts the model has no rates for processors.
  const bool accelerated = source.plan.pools[source.worker_pool].accelerator.has_value();
  std::erase_if(kinds, [&](StrategyKind kind) {
    const bool needs_several = cuts_the_model(kind) && (!accelerated || nodes * per_node < 2);
    const bool servers = !source.hardware.server_machine.empty();
    if (servers && kind != StrategyKind::parameter_server) return true;
    const bool of_slices = kind == StrategyKind::tpu || cuts_the_model(kind);
    return needs_several || (slice && (!of_slices || nodes > 1));
  });
  return kinds;
}

std::vector<Shape> whole_shapes(const ShapeSource& source, Rejections& rejected) {
  WholeShapes made(source, rejected);
  std::vector<Recompute> modes = source.question.may.recompute;
  if (modes.empty()) modes = {strategy_of(source.question).recompute.value_or(Recompute::none)};
  for (const int nodes : source.question.may.nodes)
    for (const StrategyKind kind : kinds_for(source, nodes)) {
      if (cuts_the_model(kind)) continue;
      for (const Recompute mode : modes) {
        if (kind != StrategyKind::parameter_server)
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
  return std::move(made.shapes);
}

}  // namespace reckon::planner
