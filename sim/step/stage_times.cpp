#include "sim/step/stage_times.h"

#include <algorithm>
#include <cmath>

#include "sim/step/assumptions.h"
#include "sim/step/network/collective_cost.h"

namespace reckon {
namespace {

void add(BlockTime& sum, const BlockTime& t, double times) {
  sum.forward += times * t.forward;
  sum.backward += times * t.backward;
  sum.bound_by_memory += times * t.bound_by_memory;
  sum.tensor_forward += times * t.tensor_forward;
  sum.tensor_backward += times * t.tensor_backward;
  sum.context_forward += times * t.context_forward;
  sum.context_backward += times * t.context_backward;
  sum.expert_forward += times * t.expert_forward;
  sum.expert_backward += times * t.expert_backward;
  sum.dispatches += times * t.dispatches;
  sum.hidden += times * t.hidden;
  sum.sent += times * t.sent;
}

/// Collectives of one block's state.
struct BlockTraffic {
  Seconds gather{}, reduce{};
  Bytes sent_by_gather{}, sent_by_reduce{};
};

double others(const Fabric& f) { return double(f.ranks() - 1) / f.ranks(); }

/// All-reduce in buckets as PyTorch's DDP fills them.
template <class Cost>
Seconds bucketed(const StageModel<Cost>& m, const Fabric& f, Bytes size) {
  if (size.v <= 0 || f.ranks() <= 1) return {};
  const double buckets = std::max(1.0, std::ceil(size / step_assumptions::kBucketSize));
  return buckets * m.cost.all_reduce(f, size / buckets, m.all_reduce).time;
}

template <class Cost>
BlockTraffic traffic_of(const StageModel<Cost>& m, const BlockState& b) {
  const Fabric& dense = m.groups.state;
  const Fabric& expert = m.groups.expert_state;
  BlockTraffic t;
  const Bytes gradients = b.trainable * m.size.gradient;
  const Bytes of_experts = b.expert_trainable * m.size.gradient;
  if (m.layout.zero_stage == 0) {
    t.reduce = bucketed(m, dense, gradients) + bucketed(m, expert, of_experts);
    t.sent_by_reduce = 2 * (others(dense) * gradients + others(expert) * of_experts);
    return t;
  }
  t.reduce = m.cost.reduce_scatter(dense, gradients);
  t.sent_by_reduce = others(dense) * gradients + others(expert) * of_experts;
  if (of_experts.v > 0) t.reduce += m.cost.reduce_scatter(expert, of_experts);
  // Frozen parameters are sharded by stage 3 alone, and are then gathered like the others.
  const bool all = m.layout.zero_stage >= 3;
  const Bytes parameters = (all ? b.parameters : b.trainable) * m.size.weight;
  const Bytes expert_parameters = (all ? b.expert_parameters : b.expert_trainable) * m.size.weight;
  t.gather = m.cost.all_gather(dense, parameters);
  if (expert_parameters.v > 0) t.gather += m.cost.all_gather(expert, expert_parameters);
  t.sent_by_gather = others(dense) * parameters + others(expert) * expert_parameters;
  return t;
}

/// A stage's blocks in the order of the network, with what each takes.
struct Walk {
  const Partition& partition;
  int pipeline, interleave, stage;
  template <class F>
  void operator()(F f) const {
    for (int part = 0; part < interleave; ++part) {
      const std::size_t at = std::size_t(part) * std::size_t(pipeline) + std::size_t(stage);
      for (const Run& run : partition.kinds[partition.parts[at]]) f(run);
    }
  }
  template <class F>
  void backward(F f) const {
    for (int part = interleave; part-- > 0;) {
      const std::size_t at = std::size_t(part) * std::size_t(pipeline) + std::size_t(stage);
      const Part& runs = partition.kinds[partition.parts[at]];
      for (auto run = runs.rbegin(); run != runs.rend(); ++run) f(*run);
    }
  }
};

/// Reductions one after another, each when its block's backward pass is over (overlap.h), in closed
/// form for a run of n blocks alike: the last reduction ends when the earliest limit lets it.
class ReductionChain {
 public:
  void add(double n, Seconds backward, Seconds reduce) {
    const Seconds before = at_;
    sum_ += n * reduce;
    at_ += n * backward;
    end_ = std::max({end_ + n * reduce, before + backward + n * reduce, at_ + reduce});
  }
  Seconds overrun() const { return std::max(Seconds{}, end_ - at_); }
  /// What all of them take, one after the other.
  Seconds sum() const { return sum_; }

 private:
  Seconds at_{}, end_{}, sum_{};
};

/// The device idles while the host issues less than it could do.
void wait_for_host(StageTime& s, Seconds host) {
  const Seconds idle = host - s.whole();
  const Seconds busy = s.pass.forward + s.pass.backward;
  if (idle.count() <= 0 || busy.count() <= 0) return;
  s.pass.waiting_for_host = idle;
  s.pass.forward += idle * (s.pass.forward / busy);
  s.pass.backward = busy + idle - s.pass.forward;
}

template <class Cost>
StageTime time_of_stage(const StageModel<Cost>& m, std::span<const BlockTime> times,
                        std::span<const BlockState> states, int stage) {
  const Layout& l = m.layout;
  const Walk walk{m.model.partition(l.pipeline * l.interleave), l.pipeline, l.interleave, stage};
  const double ranks = l.replicas_of_state();
  const double expert_ranks = std::max(1.0, ranks / l.expert);
  const bool gathers = l.zero_stage >= 3 && l.replicas_of_state() > 1;
  const double passes = double(l.micro_batches);
  const double reductions = l.zero_stage >= 2 ? passes : 1;
  StageTime s;
  ReductionChain chain;
  Seconds first_gather{}, before{}, last_scatter{};
  bool first = true;
  walk([&](const Run& run) {
    const BlockTime& t = times[run.what];
    const double n = run.times;
    add(s.pass, t, n);
    const BlockState& b = states[run.what];
    s.trainable += n * (l.zero_stage >= 1 ? b.trainable / ranks + b.expert_trainable / expert_ranks
                                          : b.trainable + b.expert_trainable);
    if (!gathers) return;
    const Seconds gather = traffic_of(m, b).gather;
    if (first)
      s.gathers_forward += gather;
    else
      s.gathers_forward += std::max(Seconds{}, gather - before);
    s.gathers_forward += (n - 1) * std::max(Seconds{}, gather - t.whole_forward());
    before = t.whole_forward();
    first = false;
  });
  first = true;
  walk.backward([&](const Run& run) {
    const BlockTime& t = times[run.what];
    const double n = run.times;
    const BlockTraffic traffic = traffic_of(m, states[run.what]);
    const double gathered = l.zero_stage >= 3 ? 2 * passes : l.zero_stage >= 1 ? 1 : 0;
    s.state_traffic += n * (reductions * traffic.reduce + gathered * traffic.gather);
    s.state_sent += n * (reductions * traffic.sent_by_reduce + gathered * traffic.sent_by_gather);
    if (l.zero_stage == 1 || l.zero_stage == 2) s.collection += n * traffic.gather;
    if (!gathers) {
      chain.add(n, t.whole_backward(), traffic.reduce);
      return;
    }
    if (first) first_gather = traffic.gather;
    first = false;
    s.gathers_backward +=
        n * std::max(Seconds{}, traffic.gather + traffic.reduce - t.whole_backward());
    last_scatter = traffic.reduce;
  });
  if (gathers) {
    s.gathers_backward += first_gather;
    s.scatters = last_scatter;
  } else if (l.zero_stage >= 2) {
    s.scatters = chain.overrun();
  } else {
    s.reduction = l.overlap ? chain.overrun() : chain.sum();
  }
  if (l.pipeline > 1) {
    const double share = l.sequence_parallel ? 1.0 / (l.tensor * l.context) : 1.0 / l.context;
    const std::size_t at = l.pipeline > 1 ? 1 : 0;  // what the second part takes in
    const Part& next = walk.partition.kinds[walk.partition.parts[at]];
    const Bytes size = m.model.blocks()[next.front().what].input_elements * share *
                       double(l.micro_batch) * m.size.activation;
    const Seconds transfer = m.cost.send(m.groups.boundary, size);
    s.pass.sent += 2.0 * l.interleave * size;
    // The interleaved schedule sends while the next part is at work.
    if (l.schedule == PipelineSchedule::interleaved && l.overlap)
      s.pass.hidden += 2.0 * l.interleave * transfer;
    else
      s.transfers = 2.0 * l.interleave * transfer;
  }
  wait_for_host(s, host_time(s.pass.dispatches, m.core));
  return s;
}

}  // namespace

StageTime stage_time(const StageModel<ClosedForms>& m, std::span<const BlockTime> times,
                     std::span<const BlockState> states, int stage) {
  return time_of_stage(m, times, states, stage);
}

StageTime stage_time(const StageModel<CollectiveCost>& m, std::span<const BlockTime> times,
                     std::span<const BlockState> states, int stage) {
  return time_of_stage(m, times, states, stage);
}

}  // namespace reckon
