#include "sim/step/stage_times.h"

#include <algorithm>
#include <cmath>

#include "sim/step/assumptions.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/overlap.h"

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

template <class Cost>
BlockTraffic traffic_of(const StageModel<Cost>& m, const BlockState& b) {
  const Fabric& dense = m.groups.state;
  const Fabric& expert = m.groups.expert_state;
  BlockTraffic t;
  const Bytes gradients = b.trainable * m.size.gradient;
  const Bytes of_experts = b.expert_trainable * m.size.gradient;
  t.reduce = m.cost.reduce_scatter(dense, gradients);
  t.sent_by_reduce = others(dense) * gradients + others(expert) * of_experts;
  if (of_experts.v > 0) t.reduce += m.cost.reduce_scatter(expert, of_experts);
  // Frozen parameters are sharded by stage 3 alone, and are then gathered like the others.
  const bool all = m.layout.zero_stage >= 3;
  const Bytes parameters = (all ? b.parameters : b.trainable) * m.size.gathered;
  const Bytes expert_parameters =
      (all ? b.expert_parameters : b.expert_trainable) * m.size.gathered;
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

/// The all-reduces of zero_stage 0. Experts have fewer replicas, and buckets of their own.
template <class Cost>
auto bucket_chain(const StageModel<Cost>& m) {
  return BucketChain([&m](Bytes size) { return m.sum(m.groups.state, size, m.cost); });
}

template <class Chain, class Cost>
void reduce_block(Chain& chain, const StageModel<Cost>& m, double n, Seconds backward,
                  const BlockState& b) {
  const bool shared = m.groups.state.ranks() > 1;
  chain.add(n, backward, (shared ? b.trainable : 0) * m.size.gradient,
            b.largest_trainable * m.size.gradient);
  const Bytes of_experts = b.expert_trainable * m.size.gradient;
  if (of_experts.v <= 0 || m.groups.expert_state.ranks() <= 1) return;
  const double buckets = std::max(1.0, std::ceil(of_experts / step_assumptions::kBucketSize));
  const auto one = m.sum(m.groups.expert_state, of_experts / buckets, m.cost);
  chain.add_other(n, buckets * one.time, buckets * one.sent_by_rank);
}

/// The device idles while the host issues less than it could do.
void stage_waits_for_host(StageTime& s, Seconds host) {
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
  auto buckets = bucket_chain(m);
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
    if (l.zero_stage == 0) {
      reduce_block(buckets, m, n, t.whole_backward(), states[run.what]);
      return;
    }
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
    buckets.finish();
    const ReductionChain& all = l.zero_stage == 0 ? buckets.chain() : chain;
    s.state_traffic += buckets.chain().sum();
    s.state_sent += buckets.sent();
    s.reduction = l.overlap ? all.overrun() : all.sum();
  }
  if (l.pipeline > 1) {
    const double share = l.sequence_parallel ? 1.0 / (l.tensor * l.context) : 1.0 / l.context;
    const std::size_t at = l.pipeline > 1 ? 1 : 0;  // what the second part takes in
    const Part& next = walk.partition.kinds[walk.partition.parts[at]];
    const Bytes size = m.model.blocks()[next.front().what].input_elements * share *
                       double(l.micro_batch) * m.size.activation;
    const Seconds transfer = m.cost.send(m.groups.boundary, size);
    s.pass.sent += 2.0 * l.interleave * size;
    s.transfer = transfer;
    // The interleaved schedule sends while the next part is at work.
    if (m.sends_beside || (l.schedule == PipelineSchedule::interleaved && l.overlap))
      s.pass.hidden += 2.0 * l.interleave * transfer;
    else
      s.transfers = 2.0 * l.interleave * transfer;
  }
  stage_waits_for_host(s, host_time(s.pass.dispatches, m.core));
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
