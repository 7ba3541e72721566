#include <algorithm>
#include <vector>

#include "sim/cluster/autoscaler.h"
#include "sim/cluster/never.h"

// Slurm's power saving on machines of a cloud [slurm.schedmd.com, "Power Saving Guide" and
// slurm.conf]: a node that has work is resumed, one that was idle for SuspendTime is suspended.
namespace reckon {
namespace {

using namespace std::chrono_literals;

/// So many nodes in a minute from the first of them.
class MinuteRate {
 public:
  explicit MinuteRate(int most) : most_(most) {}
  int left(SimTime now) const {
    if (most_ == 0) return std::numeric_limits<int>::max();
    return now >= begin_ + 1min ? most_ : most_ - used_;
  }
  void use(SimTime now, int nodes) {
    if (now >= begin_ + 1min) begin_ = now, used_ = 0;
    used_ += nodes;
  }
  /// When there is room again.
  SimTime next(SimTime now) const { return left(now) > 0 ? now : begin_ + 1min; }

 private:
  int most_;
  int used_ = 0;
  SimTime begin_ = SimTime{} - 1min;
};

class SlurmPowerSaving final : public Autoscaler {
 public:
  explicit SlurmPowerSaving(const PlannedCluster& cluster)
      : rules_(*cluster.slurm),
        resume_timeout_(clock_or_never(rules_.resume_timeout)),
        suspend_timeout_(clock_or_never(rules_.suspend_timeout)),
        interval_(std::max(clock_or_never(rules_.power_save_interval), SimDuration{1})),
        resumes_(rules_.resume_rate),
        suspends_(rules_.suspend_rate),
        excluded_(cluster.pools.size(), 0),
        unavailable_(cluster.pools.size()) {
    for (std::size_t p = 0; p < cluster.pools.size(); ++p)
      for (const SlurmExcludedNodes& row : rules_.suspend_exc_nodes)
        if (row.pool == cluster.pools[p].name)
          excluded_[p] = std::max(excluded_[p], row.count.value_or(cluster.pools[p].nodes_max));
  }

  /// "Nodes will automatically be resumed by ResumeProgram to complete work allocated to them": at
  /// once, as the thread of power saving "will do work sooner if there are node state changes".
  SimTime next_look(ScaledCluster& cluster) override {
    const SimTime now = cluster.now();
    SimTime at = SimTime::max();
    for (const Pool& pool : cluster.cluster().pools) {
      if (!scales(pool) || cluster.missing(pool) <= 0) continue;
      const SimTime room = room_at(cluster, pool);
      if (room != SimTime::max()) at = std::min(at, std::max(room, resumes_.next(now)));
    }
    return at;
  }

  void look(ScaledCluster& cluster) override {
    const SimTime now = cluster.now();
    for (Pool& pool : cluster.cluster().pools) {
      if (!scales(pool)) continue;
      const int nodes = std::min({cluster.missing(pool), room(cluster, pool), resumes_.left(now)});
      if (nodes <= 0) continue;
      resumes_.use(now, nodes);
      for (int k = 0; k < nodes; ++k) cluster.request_node(pool);
    }
  }

  /// ResumeTimeout.
  SimTime gives_up_at(const Pool& /*pool*/, SimTime requested) const override {
    return requested + resume_timeout_;
  }
  void node_came(Pool& /*pool*/) override {}
  /// The node is DOWN. It is suspended like an idle one, SuspendTime later, and is idle then only
  /// under idle_on_node_suspend; else it stays so until somebody resumes it, whom nobody simulates.
  void gave_up(ScaledCluster& cluster, Pool& pool) override {
    const bool returns = rules_.idle_on_node_suspend && rules_.suspend_time;
    unavailable_[index_of(cluster, pool)].push_back(
        returns ? cluster.now() + clock_or_never(*rules_.suspend_time) + suspend_timeout_
                : SimTime::max());
  }
  bool leaves_fallbacks(ScaledCluster& /*cluster*/) override { return false; }

  /// SuspendTime, at a run of the thread; SuspendRate; SuspendExcNodes.
  SimTime deletes_at(ScaledCluster& cluster, const Node& node) override {
    if (!rules_.suspend_time) return SimTime::max();
    const Pool& pool = cluster.cluster().pools[node.pool];
    if (pool.size(cluster.cluster().slots(pool)) <= excluded_[node.pool]) return SimTime::max();
    const SimTime now = cluster.now();
    const SimDuration idle =
        node.free_since.time_since_epoch() + clock_or_never(*rules_.suspend_time);
    const SimTime due{(idle + interval_ - SimDuration{1}) / interval_ * interval_};
    return due > now ? due : suspends_.next(now);
  }
  /// SuspendTimeout: it cannot be resumed before.
  void node_went(const Node& node, SimTime now) override {
    if (!node.was_ready) return;
    suspends_.use(now, 1);
    unavailable_[node.pool].push_back(now + suspend_timeout_);
  }

 private:
  static bool scales(const Pool& pool) { return pool.autoscaled && !pool.preferred; }
  static std::size_t index_of(ScaledCluster& cluster, const Pool& pool) {
    return std::size_t(&pool - cluster.cluster().pools.data());
  }
  /// Nodes that are powered down and may be resumed.
  int room(ScaledCluster& cluster, const Pool& pool) {
    std::vector<SimTime>& until = unavailable_[index_of(cluster, pool)];
    std::erase_if(until, [&](SimTime t) { return t <= cluster.now(); });
    const int size = pool.size(cluster.cluster().slots(pool));
    return pool.plan->nodes_max - size - int(until.size());
  }
  SimTime room_at(ScaledCluster& cluster, const Pool& pool) {
    if (room(cluster, pool) > 0) return cluster.now();
    const std::vector<SimTime>& until = unavailable_[index_of(cluster, pool)];
    return until.empty() ? SimTime::max() : *std::ranges::min_element(until);
  }

  const SlurmPowerSpec& rules_;
  const SimDuration resume_timeout_, suspend_timeout_, interval_;
  MinuteRate resumes_, suspends_;
  std::vector<int> excluded_;                      // by pool
  std::vector<std::vector<SimTime>> unavailable_;  // by pool: until when nodes are
};

}  // namespace

std::unique_ptr<Autoscaler> make_slurm_power_saving(const PlannedCluster& cluster,
                                                    const LifeOptions& /*options*/) {
  return std::make_unique<SlurmPowerSaving>(cluster);
}

}  // namespace reckon
