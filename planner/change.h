#pragma once
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/scenario/scenario.h"

// A typed change of a scenario: what a candidate of the search is. Changes are applied to a
// Scenario value, which make_plan resolves; as text they are `--set` options, for people and files.
namespace reckon::planner {

struct SetCluster {
  ClusterSpec cluster;
};
struct SetRegion {
  std::string region;
};
struct SetZone {
  std::string zone;  // "": any
};
struct SetPools {
  std::vector<PoolSpec> pools;
};
/// The pool of that name, as a whole.
struct SetPool {
  PoolSpec pool;
};
struct SetNodes {
  std::string pool;
  NodesSpec nodes;
};
struct SetAutoscaling {
  std::string pool;
  bool on = false;
};
struct SetCapacityType {
  std::string pool;
  CapacityType type = CapacityType::on_demand;
};
struct SetMachine {
  std::string pool, machine;
};
struct SetPrecision {
  Precision precision = Precision::fp32;
};
struct SetCheckpointInterval {
  CheckpointSpec::Mode mode = CheckpointSpec::Mode::optimal;
  Seconds interval{};  // mode interval
};
struct SetCheckpointStorage {
  std::string storage;
};
struct SetRestart {
  RestartSpec restart;
};
struct SetStrategy {
  StrategySpec strategy;
};
struct SetWorkers {
  int workers = 1;
};
struct SetParameterServers {
  int servers = 0;
};
struct SetZeroStage {
  int stage = 0;
};
struct SetMicroBatch {
  int samples = 1;
};
struct SetRecompute {
  Recompute mode = Recompute::none;
};
struct SetBatchPerAccelerator {
  int samples = 1;
};
struct RemoveReservations {};

using Change = std::variant<SetCluster, SetRegion, SetZone, SetPools, SetPool, SetNodes,
                            SetAutoscaling, SetCapacityType, SetMachine, SetPrecision,
                            SetCheckpointInterval, SetCheckpointStorage, SetRestart, SetStrategy,
                            SetWorkers, SetParameterServers, SetZeroStage, SetMicroBatch,
                            SetRecompute, SetBatchPerAccelerator, RemoveReservations>;

/// The scenario with the changes, in their order. It has a workload and every pool that they name:
/// all else is a mistake of the program.
void apply_changes(std::span<const Change> changes, Scenario& scenario);

/// "cluster.pools.workers.nodes=8": the `--set` that changes a scenario's text in the same way.
std::string to_text(const Change& change);
std::vector<std::string> texts(std::span<const Change> changes);

/// Do they change a scenario in the same way?
bool same_changes(std::span<const Change> a, std::span<const Change> b);

}  // namespace reckon::planner
