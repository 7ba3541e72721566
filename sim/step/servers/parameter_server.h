#pragma once
#include <span>
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/step/compute.h"
#include "sim/step/network/collectives.h"
#include "sim/step/network/network.h"
#include "sim/step/servers/placement.h"

// Parameter-server training as flows over NICs. W workers pull the variables from P servers, each
// of which holds 1/P of every group of layers, compute, and push gradients while the backward pass
// goes on; servers add up and apply (docs/MODELS.md, "Parameter servers"). Of embedding tables the
// rows of a batch travel alone. Folded graphs use that servers are alike and that workers of a
// class are.
namespace reckon {

/// Workers that are alike: same machine, same distance to the servers.
struct WorkerClass {
  int count = 0;
  int per_node = 1;      // so many share a node's NIC
  BytesPerSecond nic{};  // of the node, each direction; of each worker's bus where `local`
  bool local = false;    // on the servers' own host: their traffic does not enter a NIC
  /// A parameter server runs on each of these nodes too and shares its NIC; what the node's own
  /// workers exchange with it goes over `bus` of each worker.
  bool with_servers = false;
  BytesPerSecond bus{};
};

struct ParameterServerSetup {
  std::vector<WorkerClass> classes;
  int servers = 1;
  BytesPerSecond server_nic{};  // each direction, of one server
  Seconds latency{};            // of a request
  /// Gradient bytes a second that one server takes in and adds up (synchronous) or applies
  /// (asynchronous).
  BytesPerSecond apply_rate{};
  Seconds update{};  // synchronous: applying the sum, all groups together
  std::vector<ServerGroup> groups;

  int workers() const;
  Bytes values() const;  // that a worker pulls in a step
  /// What a worker sends in a step: gradients, and the ids of rows with them and before, with the
  /// request for their values.
  Bytes sent() const;
  /// The same to the server that gets most of it.
  Bytes to_busiest_server() const;
  /// Of it what the server applies that applies most.
  Bytes updated_on_busiest_server() const;
  bool servers_alike() const;  // each has as much of every group
};

/// `live_workers` of the plan's on its nodes; with no server process the variables are on the first
/// worker's host.
ParameterServerSetup server_setup(const Plan& plan, const PlannedWorkload& job,
                                  const ComputeTimes& times, int live_workers, int groups);

/// One synchronous step: pulls in layer order, forward, backward, pushes in reverse order, the
/// update of a group when all its gradients are in. Without overlap (`overlap = false`): all pulls,
/// all compute, all pushes. Communication alone (no compute, no latency, equal NICs B): 2 max(W/P,
/// 1) M / B.
NetworkProblem synchronous_step(const ParameterServerSetup& setup, bool fold = true,
                                bool overlap = true);

/// All groups of all workers to the servers (push) or back (pull), and nothing beside.
enum class OneWay { push, pull };
NetworkProblem one_way(const ParameterServerSetup& setup, OneWay way, bool fold = true);

/// `steps` steps of every worker, each on its own; starts spread over one step. `staleness` > 0: a
/// worker begins its step k when all have finished step k - staleness - 1 [Ho et al. 2013, "More
/// effective distributed ML via a stale synchronous parallel parameter server", NIPS]. `jitter`:
/// standard deviation of a worker's compute time.
struct AsynchronousRun {
  NetworkProblem problem;
  std::vector<std::vector<ActivityId>> step_begin, step_end;  // by worker, by step
};
AsynchronousRun asynchronous_steps(const ParameterServerSetup& setup, int steps, int staleness,
                                   double jitter, bool fold = true);

/// The steady part of such a run: simulated with the same network engine rather than by queueing
/// formulas, because a formula for closed networks (mean value analysis) assumes exponential times
/// and overstates the waiting of nearly deterministic steps.
struct AsynchronousPace {
  double rate = 0;   // worker steps a second of all workers together
  double delay = 0;  // mean number of others' updates between a worker's pull and its own update
};
AsynchronousPace asynchronous_pace(const ParameterServerSetup& setup, int staleness, double jitter,
                                   const NetworkModel& model);

/// Factor on the compute time of the slowest worker that a synchronous step waits for: mean of the
/// (W - b)-th of W normal times, 1 + cv Phi^-1((W - b - 0.375) / (W + 0.25)) [Blom 1958]; at
/// least 1. 1 for one worker.
double straggler_factor(int workers, int backup_workers, double jitter);

}  // namespace reckon
