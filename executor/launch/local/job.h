#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/comm/socket.h"
#include "executor/launch/process.h"
#include "executor/train/records/run_directory.h"
#include "sim/scenario/plan.h"

// The processes of a plan's job, all on this machine.
namespace reckon {

struct LocalJob {
  std::filesystem::path worker;        // the program
  std::vector<std::string> arguments;  // of every process
  RunClock clock = RunClock::starting_now();
  int lock = -1;                 // descriptor of the run's lock
  std::filesystem::path secret;  // file of the job's secret; empty: none
};

/// Server processes of the job. Where its parameter servers have no nodes of their own
/// (parameter_servers: 0) the variables are on the chief's host, as simulated: one process beside
/// the workers holds them.
int server_processes(const PlannedStrategy& strategy);

/// "rank 3"; where a worker is several: "rank 3 (worker 1)".
std::string name_of_rank(const PlannedStrategy& strategy, int rank);

/// NCCL would choose the interface of the network, and listen there. Whoever chose one is obeyed.
void keep_nccl_on_this_machine(ProcessSpec& process);

/// Which process of the job: by rank, servers behind those that compute. `workers`: ranks that
/// compute in this start, whose number an elastic job changes.
struct RankOfJob {
  int rank = 0, workers = 1;
  bool stands_by = false;  // it has no rank yet, and waits for an order
};
ProcessSpec process_of(const PlannedStrategy& strategy, const LocalJob& job, const RankOfJob& rank,
                       std::int64_t attempt, const Socket& rendezvous);
/// Those of each worker (ranks_of_worker()), then one a parameter server: their ranks, by the
/// variables that PyTorch's launcher sets as well (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR, MASTER_PORT).
std::vector<ProcessSpec> processes_of(const PlannedStrategy& strategy, const LocalJob& job,
                                      std::int64_t attempt, const Socket& rendezvous);
/// They meet at `rendezvous`, which rank 0 inherits: a port that is only named could be taken by
/// another program before rank 0 listens at it. At a free port of this machine. Throws SocketError.
Socket local_rendezvous();

/// `reckon-worker` beside this program, or what RECKON_WORKER names. Throws std::runtime_error.
std::filesystem::path find_worker();

}  // namespace reckon
