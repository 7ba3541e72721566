#pragma once
#include <string>

#include "sim/cluster/autoscaler.h"
#include "sim/cluster/event_queue.h"
#include "sim/cluster/job.h"
#include "sim/cluster/ledger.h"
#include "sim/cluster/life.h"
#include "sim/cluster/node_pool.h"
#include "sim/cluster/recorder.h"

// One life in progress. Internal to sim/cluster: life.cpp has the main loop and the cluster's
// rules, life_nodes.cpp what happens to a node, life_job.cpp what happens to the job.
namespace reckon {

class Life {
 public:
  Life(const Plan& plan, const JobPace& pace, const LifeOptions& options);

  // ---- the flow (life.cpp) ----
  void begin();
  bool next(Event& event);  // the next event that still counts; false: the life is over
  void place_pods();
  void wake_autoscaler();
  LifeResult end();

  // ---- the cluster (life.cpp) ----
  void on_submit();
  void on_scan();
  void on_horizon();

  // ---- a node (life_nodes.cpp) ----
  void on_ready(Node& node);
  void on_provision_timeout(Node& node);
  void on_reclaim_notice(Node& node);
  void on_taken(Node& node);
  void on_maintenance_notice(Node& node);
  void on_maintenance_begin(Node& node);
  void on_back(Node& node);  // from maintenance or repair
  void on_failed(Node& node);
  void on_worker_joined(Node& node);
  void on_unneeded(Node& node);

  // ---- the job (life_job.cpp) ----
  void on_initialized();
  void on_emergency_saved();
  void on_backoff_over();
  void on_finish();

  Node& node(const Event& event) { return cluster_.nodes[event.entity]; }

 private:
  // life.cpp
  bool is_stale(const Event& event) const;
  void schedule(SimTime at, EventKind kind, std::uint32_t entity = 0, std::uint32_t stamp = 0);
  void schedule_job(SimTime at, EventKind kind);
  void plan_deletions(Pool& pool);

  // life_nodes.cpp
  void set_state(Node& node, NodeState state);
  void record_state(const Node& node);
  SimDuration wait(SimDuration mean, RandomStream& stream) const;
  void request_node(Pool& pool, std::uint32_t slot, bool by_autoscaler);
  void come_up(Node& node);
  void hold(Node& node);
  void let_go(Node& node, NodeState next);  // the job leaves the node
  void end_lease(Node& node, bool reclaimed);
  void delete_nodes_of_the_job();

  // life_job.cpp
  void bank();  // the time since the last call, in the ledger
  void bank_training(SimTime from, SimDuration elapsed);
  void bank_absent_workers(SimDuration elapsed);
  void record_training(SimTime from);
  void set_phase(JobPhase phase);
  void start();
  void set_pace();  // when the job will finish, from now
  void update_shares();
  bool goes_on_without(const Node& node) const;
  void lose_node(Node& node, Interruption cause, NodeState next);
  void interrupt(bool work_is_safe);
  void evacuate(Node& node, Interruption cause, SimTime deadline);
  void give_up(std::string why);
  void close_job();

  const Plan& plan_;
  const JobPace& pace_;
  const LifeOptions& options_;
  const Placement placement_;
  const AutoscalerTimes autoscaler_;
  const ReclaimLaw reclaim_;
  const SimDuration reclaim_notice_, maintenance_mean_, maintenance_notice_, maintenance_time_,
      repair_time_;
  const SimTime submit_, horizon_;
  const bool job_based_;

  SimTime now_{};
  EventQueue queue_;
  Cluster cluster_;
  Job job_;
  SimTime scan_planned_ = SimTime::max();
  SimTime last_scan_ = SimTime::min(), last_scale_up_ = SimTime::min();
  int open_leases_ = 0;
  TimeLedger time_;
  CostLedger cost_;
  Recorder recorder_;
  LifeResult result_;
};

}  // namespace reckon
