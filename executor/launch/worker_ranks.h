#pragma once
#include <functional>
#include <string>
#include <vector>

#include "executor/launch/gang.h"

// A worker whose ranks are processes of their own, one a device: in a pod, or started by hand, one
// process is named as the worker. It starts the ranks and watches them.
namespace reckon {

struct WorkerRanks {
  std::vector<std::string> command;  // of each rank; its environment tells which it is
  int ranks = 1, first = 0;          // how many; the first, among all of the job
  /// Nobody but they: they meet at a free port of this machine.
  bool alone = false;
  /// `alone`: somebody has said where the job's secret is. Else they get one of their own.
  bool has_secret = false;
  bool records = false;  // they print measurements as lines, which go on as they are
  Seconds grace{5};      // GangOptions::grace
};

/// Until the last has ended. What a rank prints is printed with its rank, and steps where rank 0 is
/// among them and prints no records. A request to stop goes to all of them, and they take the time
/// that they need: whoever asks kills this process when it lasts too long, and they end with it.
/// Ranks of a pod that takes orders (pod_orders.h) read them themselves; what they say of starts is
/// said once, of the pod: that it waits when all of them do.
/// One that fails ends the others behind the grace. The exit code is that of the first that failed,
/// 128 + its signal where one killed it: what a worker of one process would end with. Throws what a
/// start of a process throws; SocketError, SecretError.
int run_worker_ranks(const WorkerRanks& worker, const std::function<StopRequest()>& stop);

}  // namespace reckon
