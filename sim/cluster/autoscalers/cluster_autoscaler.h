#pragma once
#include "sim/cluster/autoscaler.h"
#include "sim/cluster/autoscaler_times.h"
#include "sim/cluster/autoscalers/expanders.h"

// The Kubernetes cluster-autoscaler [kubernetes/autoscaler, cluster-autoscaler/FAQ.md]. Each pool
// is a node group. Without expanders fallback pools are what its priority expander makes of them:
// they serve pods while the preferred group backs off.
namespace reckon {

class ClusterAutoscaler : public Autoscaler {
 public:
  ClusterAutoscaler(const PlannedCluster& cluster, const AutoscalerRules& rules,
                    const LifeOptions& options);

  SimTime next_look(ScaledCluster& cluster) override;
  void look(ScaledCluster& cluster) override;
  SimTime gives_up_at(const Pool& pool, SimTime requested) const override;
  void node_came(Pool& pool) override;
  void gave_up(ScaledCluster& cluster, Pool& pool) override;
  bool leaves_fallbacks(ScaledCluster& cluster) override;
  SimTime deletes_at(ScaledCluster& cluster, const Node& node) override;

 protected:
  /// Nodes that the group may still have.
  virtual int room(ScaledCluster& cluster, const Pool& pool) const;
  /// One of the options, or none; `now` it may say of groups that they have no capacity.
  virtual std::optional<ScaleUpOption> choose(ScaledCluster& cluster, std::uint32_t home,
                                              std::vector<ScaleUpOption> options);
  const PlannedCluster& rented() const { return rented_; }
  const AutoscalerTimes& times() const { return times_; }
  ScaleUpQuestion question(ScaledCluster& cluster, std::uint32_t home) const;
  RandomStream& random() { return random_; }

 private:
  int addable(ScaledCluster& cluster, const Pool& pool) const;
  void add(ScaledCluster& cluster, std::uint32_t pool, int nodes);
  void choose_and_add(ScaledCluster& cluster, std::uint32_t home);
  std::vector<ScaleUpOption> shares_of(ScaledCluster& cluster, ScaleUpOption chosen,
                                       const std::vector<ScaleUpOption>& options) const;

  const PlannedCluster& rented_;
  const AutoscalerTimes times_;
  const int most_at_once_;
  const std::vector<std::optional<int>> priorities_;  // by pool
  RandomStream random_;
  SimTime planned_ = SimTime::max();
  SimTime last_scan_ = SimTime::min(), last_scale_up_ = SimTime::min();
};

}  // namespace reckon
