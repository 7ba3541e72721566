#pragma once
#include <memory>
#include <string_view>

#include "sim/step/network/collective_times.h"

// What a step asks of the network about the collectives of a group of ranks: one interface, whoever
// answers. Formulas do, or a NetworkModel that is given the flows; which of them is decided here
// and nowhere else.
namespace reckon {

/// Times of collectives; arguments as those of collective_times.h.
class CollectiveCost {
 public:
  virtual ~CollectiveCost() = default;
  virtual TimedAllReduce all_reduce(const Fabric& group, Bytes size, AllReduceKind kind) const = 0;
  virtual Seconds all_gather(const Fabric& group, Bytes size) const = 0;
  virtual Seconds reduce_scatter(const Fabric& group, Bytes size) const = 0;
  virtual Seconds all_to_all(const Fabric& group, Bytes size) const = 0;
  virtual Seconds send(const Fabric& group, Bytes size) const = 0;
  virtual Seconds ring_hop(const Fabric& group, Bytes size) const = 0;
  /// Who answers: StepEstimate::engine.
  virtual std::string_view engine() const = 0;
};

/// collective_times.h. Final: whoever holds one calls it directly, a million times a second.
class ClosedForms final : public CollectiveCost {
 public:
  TimedAllReduce all_reduce(const Fabric& f, Bytes size, AllReduceKind kind) const override {
    return all_reduce_time(f, size, kind);
  }
  Seconds all_gather(const Fabric& f, Bytes size) const override {
    return all_gather_time(f, size);
  }
  Seconds reduce_scatter(const Fabric& f, Bytes size) const override {
    return reduce_scatter_time(f, size);
  }
  Seconds all_to_all(const Fabric& f, Bytes size) const override {
    return all_to_all_time(f, size);
  }
  Seconds send(const Fabric& f, Bytes size) const override { return send_time(f, size); }
  Seconds ring_hop(const Fabric& f, Bytes size) const override { return ring_hop_time(f, size); }
  std::string_view engine() const override { return kClosedForms; }
};

/// The folded graph of each collective (collectives.h), timed by `network`, which outlives it.
class SimulatedCollectives final : public CollectiveCost {
 public:
  explicit SimulatedCollectives(const NetworkModel& network) : network_(network) {}
  TimedAllReduce all_reduce(const Fabric& group, Bytes size, AllReduceKind kind) const override;
  Seconds all_gather(const Fabric& group, Bytes size) const override;
  Seconds reduce_scatter(const Fabric& group, Bytes size) const override;
  Seconds all_to_all(const Fabric& group, Bytes size) const override;
  Seconds send(const Fabric& group, Bytes size) const override;
  Seconds ring_hop(const Fabric& group, Bytes size) const override;
  std::string_view engine() const override { return network_.name(); }

 private:
  const NetworkModel& network_;
};

/// Of the collectives of a layout's groups (NetworkModel::by_formula). The network outlives it.
std::unique_ptr<CollectiveCost> cost_in_layouts(const NetworkModel& network);
/// Of the collectives of workers, which are no layout's groups: by formula where the network
/// answers all so. The network outlives it.
std::unique_ptr<CollectiveCost> cost_of_collectives(const NetworkModel& network);

/// `ask(cost)`, with ClosedForms as the type that it is: its formulas are then called directly.
template <class Ask>
auto with_type_of(const CollectiveCost& cost, Ask ask) {
  const auto* formulas = dynamic_cast<const ClosedForms*>(&cost);
  return formulas != nullptr ? ask(*formulas) : ask(cost);
}

}  // namespace reckon
