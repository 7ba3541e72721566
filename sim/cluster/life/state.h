#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/autoscaler.h"
#include "sim/cluster/event_queue.h"
#include "sim/cluster/job.h"
#include "sim/cluster/ledger.h"
#include "sim/cluster/life/life.h"
#include "sim/cluster/node_pool.h"
#include "sim/cluster/recorder.h"

// One replication in progress. Internal to sim/cluster: life.cpp has the main loop and the
// cluster's rules, nodes.cpp a node's lease from its request to its end, disruptions.cpp what takes
// it away, job.cpp what happens to the job, interruptions.cpp how it is interrupted, scaling.cpp
// what its autoscaler does to nodes, reservations.cpp the machines of a reservation.
namespace reckon {

/// Why a job ends that needs a reservation's machines after its end.
std::string reservation_is_over(const Pool& pool);

class Life final : public ScaledCluster {
 public:
  Life(const PlannedCluster& rented, std::span<const JobRequest> requests,
       const LifeOptions& options);

  // ---- the flow (life.cpp) ----
  void begin();
  bool next(Event& event);  // the next event that still counts; false: the life is over
  void place_pods();
  void wake_autoscaler();
  LifeResult end();

  // ---- the cluster (life.cpp) ----
  void on_submit(Job& job);
  void on_scan();
  void on_horizon();

  void on_disrupt();
  void on_expired(Node& node);
  void on_drain_over(Node& node);

  // ---- what its autoscaler sees and asks for (scaling.cpp) ----
  SimTime now() const override { return now_; }
  Cluster& cluster() override { return cluster_; }
  int missing(const Pool& pool) const override;
  int missing_of_whole_jobs(const Pool& pool, int room) const override;
  bool takes_pods(const Pool& pool) const override {
    return !pool.preferred || pool.fallback_in_use;
  }
  Node& request_node(Pool& pool) override;
  void replace_node(Node& old, Pool& pool) override;

  // ---- a node (nodes.cpp, disruptions.cpp, reservations.cpp) ----
  void on_ready(Node& node);
  void on_provision_timeout(Node& node);
  void on_reclaim_notice(Node& node);
  void on_block_ends(Node& node);
  void on_taken(Node& node);
  void on_maintenance_notice(Node& node);
  void on_maintenance_begin(Node& node);
  void on_back(Node& node);  // from maintenance or repair
  void on_failed(Node& node);
  void on_hang_found(Node& node);
  void on_worker_joined(Node& node);
  void on_unneeded(Node& node);

  // ---- a job (job.cpp, interruptions.cpp) ----
  void on_initialized(Job& job);
  void on_emergency_saved(Job& job);
  void on_backoff_over(Job& job);
  void on_finish(Job& job);
  void on_tried_smaller(Job& job);
  void on_grow(Job& job);

  Job& job(const Event& event) { return jobs_[event.entity]; }
  Node& node(const Event& event) { return cluster_.nodes[event.entity]; }

 private:
  // life.cpp
  bool is_stale(const Event& event) const;
  void schedule(SimTime at, EventKind kind, std::uint32_t entity = 0, std::uint32_t stamp = 0);
  void schedule_job(const Job& job, SimTime at, EventKind kind);
  bool all_done() const { return unfinished_ == 0; }
  bool any_wants_nodes() const;
  void place_pods_on(std::uint32_t index, Pool& pool);
  void plan_deletions(Pool& pool);

  // scaling.cpp
  int leaving_pods(std::size_t home) const;
  void drain(Node& node);
  void evict(Node& node, Interruption cause, SimTime deadline);
  void replaced_by(Node& fresh);
  void drop_drained();
  SimTime capacity_at(const Node& node, Pool& pool);
  SimDuration delay_of(Node& node, Pool& pool);
  void withdraw_request(Pool& pool, std::uint32_t request);

  // nodes.cpp
  void set_state(Node& node, NodeState state);
  void record_state(const Node& node) {
    if (recorder_.on()) record_span(node);
  }
  void record_span(const Node& node);
  SimDuration wait(Seconds mean, RandomStream& stream) const;
  /// Of what happens to a node but once in a while: a stream for each `time` of each purpose.
  RandomStream stream_of(const Node& node, Purpose purpose, std::uint32_t time) const;
  SimTime next_maintenance(Node& node, Pool& pool) const;
  void request_node(Pool& pool, std::uint32_t slot, bool by_autoscaler);
  /// What a node that ends at goes_at is lost by.
  static Interruption cause_of_end(const Node& node) {
    return node.goes_at == node.run_ends ? Interruption::maintenance : Interruption::preemption;
  }
  void come_up(Node& node);
  /// When the provider reclaims a node that came now; max: never.
  SimTime reclaim_time(Node& node, const Pool& pool);
  /// When the reservation's machines go whose place the node holds; max: never.
  SimTime block_end(const Node& node, const Pool& pool) const;
  /// The pool has but a reservation's machines, and they are gone.
  bool is_over(const Pool& pool) const;
  void give_up_what_needs(const Pool& pool);
  NanoUsd egress_of(const Job& job, AcceleratorTime work) const;
  bool hangs(const Node& node) const;
  bool ends_process_only(const Node& node) const;
  void schedule_failure(Node& node);
  /// Call it before a free node is held or leaves: up to now it was there for a job that loses one.
  void stop_standing_by(Node& node) {
    if (any_spares_ && node.state == NodeState::ready) bank_standby(node);
  }
  void bank_standby(Node& node);
  void hold(Job& job, Node& node);
  void let_go(Node& node, NodeState next);  // the job leaves the node
  void end_lease(Node& node, bool reclaimed);
  void leave_nodes(const Job& job);
  void leave_fallbacks(const Job& job);
  void delete_nodes();

  // job.cpp
  void bank(Job& job) {  // the time since the last call, in the job's ledger
    if (now_ != job.banked && job.wants_nodes()) bank_elapsed(job);
  }
  void bank_elapsed(Job& job);
  void bank_training(Job& job, SimDuration elapsed);
  void bank_absent_workers(Job& job, SimDuration elapsed);
  void record(const Job& job, const char* name, std::string_view category, SimTime begin,
              SimTime end);
  void record_phase(const Job& job, SimTime from);
  void record_training(const Job& job, SimTime from);
  SimTime restore_begins(const Job& job, SimTime from) const;
  void set_phase(Job& job, JobPhase phase);
  void start(Job& job);
  SimDuration start_up_of(const Job& job) const;
  SimDuration restore_of(const Job& job) const;
  void set_pace(Job& job);  // when the job will finish, from now
  void update_shares(Job& job);
  bool goes_on_without(const Node& node) const;

  // interruptions.cpp
  void lose_node(Node& node, Interruption cause, NodeState next);
  void lose_process(Node& node);
  void take_back(Job& job, Loss loss);                 // the work that no one holds any more
  void interrupt(Job& job, std::optional<Loss> loss);  // nullopt: all work is saved
  void restart_workers(Node& node);
  void regroup(Job& job, Kept kept);  // an elastic job goes on with those that are ready
  bool is_hopeless(const Job& job) const;
  SimDuration time_to_emergency_save(const Job& job, const Node& node, Interruption cause) const;
  void evacuate(Node& node, Interruption cause, SimTime deadline);
  void give_up(Job& job, std::string why);
  void close_job(Job& job);

  const PlannedCluster& rented_;
  const LifeOptions& options_;
  const ReclaimLaw reclaim_;
  const SimDuration reclaim_notice_, maintenance_notice_, maintenance_time_, repair_time_,
      hang_detection_;
  const Seconds maintenance_mean_;
  const SimTime submit_, horizon_;  // the first job's submit
  const bool job_based_;

  SimTime now_{};
  EventQueue queue_;
  Cluster cluster_;
  std::unique_ptr<Autoscaler> autoscaler_;
  std::vector<Job> jobs_;               // in the order of the requests
  std::vector<std::uint32_t> order_;    // indices of jobs, first submitted first
  std::vector<std::uint32_t> wanting_;  // of them, those submitted and not done
  std::size_t unfinished_ = 0;
  bool any_saves_ = false;      // a job makes checkpoints on a notice
  SimDuration longest_save_{};  // of those that do
  SimTime scan_planned_ = SimTime::max();
  SimTime disruption_planned_ = SimTime::max();
  bool any_draining_ = false;
  int open_leases_ = 0;
  bool any_spares_ = false;  // of a job: its nodes stand by
  SimTime all_done_at_ = SimTime::max();
  CostLedger cost_;
  Recorder recorder_;
  LifeResult result_;
};

}  // namespace reckon
