#pragma once
#include <algorithm>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "sim/cluster/disruptions.h"
#include "sim/queue/karpenter/consolidation.h"
#include "sim/queue/karpenter/karpenter_nodes.h"
#include "sim/queue/karpenter/karpenter_run.h"

// One run in progress. Internal to sim/queue/karpenter: karpenter_run.cpp has the flow, jobs and
// pods, karpenter_scaling.cpp the nodes, karpenter_disruption.cpp which of them go.
namespace reckon::karpenter {

class Life {
 public:
  Life(std::span<const JobRequest> jobs, const KarpenterMarket& market,
       const KubernetesSpec& kubernetes, const RunOptions& options, KarpenterRun& out);
  void simulate();

 private:
  enum class Kind {
    submit,
    ended,
    batch,
    ready,
    notice,
    reclaimed,
    expired,
    grace_over,
    poll,
    validate,
    drift
  };
  struct Event {
    SimTime at{};
    std::size_t order = 0;
    Kind kind = Kind::submit;
    std::size_t entity = 0, stamp = 0;
    friend bool operator>(const Event& a, const Event& b) {
      return std::tie(a.at, a.order) > std::tie(b.at, b.order);
    }
  };
  struct JobState {
    std::size_t first_pod = 0, pods = 0, bound = 0;
    std::size_t stamp = 0;  // of its planned end
    bool running = false, done = false;
    int in_vain = 0;  // evictions since it last kept work
    SimTime since{};
    SimDuration left{};
  };
  /// A command that was found, or whose replacement is coming.
  struct Command {
    ConsolidationKind kind = ConsolidationKind::empty;
    std::vector<std::size_t> nodes;
    std::vector<std::size_t> replacements;  // nodes
    std::vector<NodeClaim> claims{};        // of drift: what replaces it
  };
  /// Of an instance type and capacity type, whatever the NodePool.
  struct Market {
    std::optional<Shortages> shortages;  // of spot
    SimTime unavailable_until = SimTime::min();
  };

  // ---- karpenter_run.cpp
  void schedule(SimTime at, Kind kind, std::size_t entity = 0, std::size_t stamp = 0);
  void handle(const Event& event);
  bool goes_on() const;
  void submit(std::size_t job);
  void end(std::size_t job);
  void bind_pods();
  std::size_t node_for(const NodeRoom& asks) const;
  void bind(std::size_t pod, std::size_t node);
  void unbind(std::size_t pod);
  void stop(std::size_t job);
  void give_up(std::size_t job);
  int priority_of(std::size_t pod) const { return jobs_[pods_[pod].job].owner.priority; }

  // ---- karpenter_scaling.cpp
  void watch_pending();
  void provision();
  /// nullopt: none of its offerings has capacity.
  std::optional<std::size_t> launch(const NodeClaim& claim);
  std::size_t start_node(std::size_t offering);
  void come_up(std::size_t node);
  void remove(std::size_t node);  // with its pods evicted
  void expire(std::size_t node);
  void plan_reclaim(std::size_t node);
  void hear_of_reclaim(std::size_t node);
  void reclaim(std::size_t node);
  void evict(std::size_t pod);
  void drain(std::size_t node);  // of the pods that may be evicted
  std::vector<PackedPod> pending_pods() const;
  /// Nodes that take pods; `coming`: those that are not ready too.
  std::vector<RoomOfNode> rooms() const;
  std::vector<LimitsLeft> limits_left() const;
  const LaunchOffering& offering_of(const Node& node) const {
    return market_.offerings[node.offering];
  }
  const NodePoolSpec& node_pool_of(const Node& node) const {
    return market_.spec.node_pools[offering_of(node).node_pool];
  }

  // ---- karpenter_disruption.cpp
  void plan_poll();
  void poll();
  void validate();
  void execute();
  void finish_command();
  void give_up_command();
  std::optional<Command> find_command();
  bool has_drifted(const Node& node) const;
  std::optional<Command> find_drifted(const ConsolidationView& seen) const;
  void drift();
  std::vector<std::size_t> empty_nodes() const;
  bool may_go(const Node& node, bool empty) const;
  int allowed(std::size_t node_pool, DisruptionReason reason) const;
  std::vector<Candidate> candidates() const;
  Candidate candidate(std::size_t node) const;
  std::vector<Candidate> within_budgets(std::vector<Candidate> all) const;
  ConsolidationView view(const std::vector<RoomOfNode>& rooms,
                         const std::vector<PackedPod>& pending) const;

  // ---- capacity.cpp
  void make_markets();
  bool has_capacity(std::size_t offering);  // Karpenter learns it by asking
  std::vector<bool> unavailable() const;    // by offering; empty: none is
  /// When the next of those that are unavailable at the time, or later, may be asked for again;
  /// SimTime::max(): none is.
  SimTime available_after(SimTime time) const;

  /// karpenter.sh/do-not-disrupt of a pod, and of any pod of a node.
  bool stays(std::size_t pod) const { return keeps_its_nodes(jobs_[pods_[pod].job], market_); }
  bool is_protected(const Node& node) const {
    return std::ranges::any_of(node.pods, [&](std::size_t p) { return stays(p); });
  }

  std::span<const JobRequest> jobs_;
  const KarpenterMarket& market_;
  const KubernetesSpec& kubernetes_;
  const RunOptions& options_;
  KarpenterRun& out_;
  std::vector<DelayLaw> delays_;  // by offering
  ReclaimLaw reclaims_;
  std::vector<Market> markets_;
  std::vector<std::size_t> market_of_;  // by offering

  SimTime now_{};
  std::size_t events_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<JobState> states_;
  std::size_t unfinished_ = 0, hopeless_ = 0;  // hopeless_: of the unfinished
  std::size_t running_ = 0, to_come_ = 0, coming_ = 0;
  std::vector<Pod> pods_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> alive_;                  // nodes that are not gone, the oldest first
  std::set<std::tuple<int, std::size_t>> pending_;  // pods: -priority, number in order of submit
  // The batch of pods that no node takes.
  std::optional<SimTime> window_;
  SimTime last_pod_{}, batch_at_ = SimTime::max();
  std::size_t fresh_ = 0;  // pods that came to wait since it was looked at
  bool starved_ = false;   // limits kept a pod from a node
  // Disruption.
  bool changed_ = false;  // since the last look that found nothing
  bool budget_bound_ = false;
  SimTime looked_ = SimTime::min(), poll_at_ = SimTime::max();
  std::optional<Command> found_, executing_;
};

}  // namespace reckon::karpenter
