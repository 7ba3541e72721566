#include "sim/step/block_times.h"

#include <algorithm>

#include "sim/scenario/rank_places.h"
#include "sim/step/layer_shares.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/network/torus_times.h"

namespace reckon {
namespace {

/// Adds the waiting of one layer of a class to its block's time.
template <class Cost>
class Waiting {
 public:
  Waiting(const Layout& layout, const RankGroups& groups, const ElementSizes& size,
          double expert_imbalance, const Cost& cost)
      : l_(layout), groups_(groups), shares_(layout, expert_imbalance), size_(size), cost_(cost) {}

  void add(BlockTime& t, const LayerClass& layer, const LayerCost& cost, double times) const {
    if (l_.tensor > 1) add_tensor(t, layer, times);
    if (l_.context > 1 && layer.key_value_elements > 0) add_context(t, layer, cost, times);
    if (l_.expert > 1 && layer.exchanges_tokens) add_expert(t, layer, times);
  }

 private:
  Bytes bytes(double elements, double share, Bytes element) const {
    return elements * share * double(l_.micro_batch) * element;
  }

  void add_tensor(BlockTime& t, const LayerClass& layer, double times) const {
    const double rows = layer.experts > 0 ? shares_.imbalance : 1;
    Seconds forward{}, backward{};
    int issued_forward = 0, issued_backward = 0;  // collectives, which the host issues as kernels
    const Fabric& f = groups_.tensor;
    const auto sum = [&](Bytes m) { return cost_.all_reduce(f, m, AllReduceKind::automatic).time; };
    const double share = double(l_.tensor - 1) / l_.tensor;
    if (layer.sharding.gathers) {
      const Bytes m = bytes(layer.count.elements_in * rows, shares_.whole, size_.exchanged);
      if (l_.sequence_parallel) {
        forward = cost_.all_gather(f, m);
        backward = cost_.reduce_scatter(f, m);
        // For the weights' gradient, behind the input's.
        if (l_.overlap)
          t.hidden += times * forward;
        else
          backward += forward;
        t.sent += times * share * m;
        issued_forward = 1;
        issued_backward = 2;
      } else {
        backward = sum(m);
        issued_backward = 1;
      }
      t.sent += times * 2 * share * m;
    } else if (layer.sharding.cut == TensorCut::row) {
      const Bytes m = bytes(layer.count.elements_out * rows, shares_.whole, size_.exchanged);
      if (l_.sequence_parallel) {
        forward = cost_.reduce_scatter(f, m);
        backward = cost_.all_gather(f, m);
        issued_backward = 1;
      } else {
        forward = sum(m);
      }
      issued_forward = 1;
      t.sent += times * 2 * share * m;
    }
    const bool again = recomputed(layer, l_);
    t.dispatches += times * (issued_forward * (again ? 2 : 1) + issued_backward);
    if (again) backward += forward;
    t.tensor_forward += times * forward;
    t.tensor_backward += times * backward;
  }

  void add_context(BlockTime& t, const LayerClass& layer, const LayerCost& cost,
                   double times) const {
    const double hops = l_.context - 1;
    const Bytes part = bytes(layer.key_value_elements, shares_.split, size_.activation);
    const auto exposed = [&](Bytes size, Seconds arithmetic) {
      const Seconds transfer = cost_.ring_hop(groups_.context, size);
      const Seconds waiting = std::max(Seconds{}, transfer - arithmetic / l_.context);
      t.hidden += times * hops * (transfer - waiting);
      t.sent += times * hops * size;
      return times * hops * waiting;
    };
    const Seconds forward = exposed(part, cost.forward);
    t.context_forward += forward;
    t.context_backward += exposed(2 * part, cost.backward);
    if (recomputed(layer, l_)) t.context_backward += forward;
  }

  void add_expert(BlockTime& t, const LayerClass& layer, double times) const {
    // What a dispatch makes and a combination takes.
    const double rows = std::max(layer.count.elements_in, layer.count.elements_out);
    const Bytes m = bytes(rows * shares_.imbalance, shares_.tokens, size_.activation);
    const Seconds once = times * cost_.all_to_all(groups_.expert, m);
    const bool again = recomputed(layer, l_);
    t.dispatches += times * (again ? 3 : 2);
    t.expert_forward += once;
    t.expert_backward += once * (again ? 2 : 1);
    t.sent += times * (again ? 3 : 2) * (double(l_.expert - 1) / l_.expert) * m;
  }

  const Layout& l_;
  const RankGroups& groups_;
  LayoutShares shares_;
  const ElementSizes& size_;
  const Cost& cost_;
};

/// Two ranks, one in each of two neighbouring stages, and how many such pairs share a NIC.
Fabric boundary_of(const Fabric& job, const Layout& l) {
  if (l.pipeline == 1) return Fabric{};
  const std::int64_t stage = l.accelerators() / l.pipeline;  // ranks of one
  Fabric f = job;
  f.ranks_per_node = 1;
  f.nodes = 2;
  if (job.nodes == 1) {
    f.nodes = 1;
    f.ranks_per_node = 2;
    return f;
  }
  // Where a node holds several stages only the ranks of its last one cross to the next node.
  const double crossing = double(std::min<std::int64_t>(stage, job.ranks_per_node));
  f.nic = job.nic / crossing;
  if (job.leaf_nodes > 0) {
    // Of a leaf's nodes those of one stage send out of it, to the next stage's `apart` nodes on.
    const std::int64_t apart = std::max<std::int64_t>(1, stage / job.ranks_per_node);
    const double stages = double(std::max<std::int64_t>(1, job.leaf_nodes / apart));
    f.leaf_nodes = 1;
    f.oversubscription = std::max(1.0, job.oversubscription / stages);
  }
  return f;
}

}  // namespace

RankGroups::RankGroups(const Fabric& job, const Layout& l) {
  if (job.on_torus) {
    const TorusGroups g = torus_groups(job, {.tensor = l.tensor,
                                             .context = l.context,
                                             .expert = l.expert,
                                             .data = l.data / l.expert,
                                             .pipeline = l.pipeline});
    tensor = g.tensor;
    context = g.context;
    expert = g.expert;
    state = g.state;
    expert_state = g.expert_state;
    boundary = g.pipeline;
    return;
  }
  const RankStrides strides(l);
  const std::int64_t replicas = l.replicas_of_state();
  tensor = group_of(job, strides.tensor, l.tensor);
  context = group_of(job, strides.context, l.context);
  expert = group_of(job, strides.expert(), l.expert);
  state = group_of(job, strides.state(), replicas);
  expert_state = group_of(job, std::int64_t{l.tensor} * l.expert,
                          std::max<std::int64_t>(1, replicas / l.expert));
  boundary = boundary_of(job, l);
}

bool recomputed(const LayerClass& layer, const Layout& layout) {
  if (layout.recompute == Recompute::selective) return layer.count.work == WorkKind::attention;
  return layout.recompute == Recompute::full && layer.in_block &&
         !(layer.ends_block && layout.stops_recomputing);
}

std::vector<LayerCost> layer_costs(const FoldedModel& model, const Layout& layout,
                                   const ElementSizes& size, const Processor& core,
                                   double expert_imbalance) {
  const LayoutShares shares(layout, expert_imbalance);
  const double batch = double(layout.micro_batch) / core.cores;
  std::vector<LayerCost> costs;
  costs.reserve(model.layers().size());
  for (const LayerClass& layer : model.layers()) {
    // Inputs and views are no kernels.
    const bool kernel = layer.count.forward.v > 0 || layer.count.elements_out > 0;
    costs.push_back(kernel ? cost_of(work_of(layer, shares), size, core, batch) : LayerCost{});
  }
  return costs;
}

template <class Cost>
std::vector<BlockTime> block_times(const FoldedModel& model, const Layout& layout,
                                   const RankGroups& groups, const ElementSizes& size,
                                   const Processor& core, double expert_imbalance,
                                   const Cost& cost_of) {
  const auto costs = layer_costs(model, layout, size, core, expert_imbalance);
  const Waiting<Cost> waiting(layout, groups, size, expert_imbalance, cost_of);
  std::vector<BlockTime> times;
  times.reserve(model.blocks().size());
  for (const BlockClass& block : model.blocks()) {
    BlockTime t;
    for (const Run& run : block.layers) {
      const LayerCost& cost = costs[run.what];
      const LayerClass& layer = model.layers()[run.what];
      const double n = run.times;
      const bool again = recomputed(layer, layout);
      t.forward += n * cost.forward;
      t.backward += n * (cost.backward + (again ? cost.forward : Seconds{}));
      if (cost.forward_by_memory) t.bound_by_memory += n * (again ? 2 : 1) * cost.forward;
      if (cost.backward_by_memory) t.bound_by_memory += n * cost.backward;
      t.dispatches += n * ((again ? 2 : 1) * cost.forward_kernels + cost.backward_kernels);
      waiting.add(t, layer, cost, n);
    }
    times.push_back(t);
  }
  return times;
}

template std::vector<BlockTime> block_times(const FoldedModel&, const Layout&, const RankGroups&,
                                            const ElementSizes&, const Processor&, double,
                                            const ClosedForms&);
template std::vector<BlockTime> block_times(const FoldedModel&, const Layout&, const RankGroups&,
                                            const ElementSizes&, const Processor&, double,
                                            const CollectiveCost&);

}  // namespace reckon
