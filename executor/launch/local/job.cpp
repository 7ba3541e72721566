#include "executor/launch/local/job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "executor/train/recipe/recipe.h"

namespace reckon {

namespace {
constexpr const char* kNcclInterface = "NCCL_SOCKET_IFNAME";
}

int server_processes(const PlannedStrategy& strategy) {
  return strategy.servers ? std::max(1, strategy.servers->count) : 0;
}

std::string name_of_rank(const PlannedStrategy& strategy, int rank) {
  const int each = ranks_of_worker(strategy);
  return each == 1 ? fmt::format("rank {}", rank)
                   : fmt::format("rank {} (worker {})", rank, rank / each);
}

void keep_nccl_on_this_machine(ProcessSpec& process) {
  if (std::getenv(kNcclInterface) == nullptr)
    process.environment.emplace_back(kNcclInterface, "lo");
}

ProcessSpec process_of(const PlannedStrategy& strategy, const LocalJob& job, const RankOfJob& own,
                       std::int64_t attempt, const Socket& rendezvous) {
  const int workers = own.workers, servers = server_processes(strategy);
  const int all = workers + servers, rank = own.rank;
  const bool server = rank >= workers;
  RunEnvironment told;
  told.attempt = attempt;
  told.clock = job.clock;
  told.supervisor = ::getpid();
  told.stands_by = own.stands_by;
  ProcessSpec p;
  p.name = server          ? fmt::format("rank {} (server {})", rank, rank - workers)
           : own.stands_by ? "a process that stands by"
                           : name_of_rank(strategy, rank);
  p.command = {job.worker.string()};
  p.command.insert(p.command.end(), job.arguments.begin(), job.arguments.end());
  const auto flag = [&](const char* name, std::string value) {
    p.command.emplace_back(name);
    p.command.push_back(std::move(value));
  };
  flag("--role", server ? "ps" : "worker");
  flag("--rank", std::to_string(server ? rank - workers : rank));
  flag("--workers", std::to_string(workers));
  flag("--servers", std::to_string(servers));
  flag("--attempt", std::to_string(attempt));
  flag("--master", text(rendezvous.local()));
  if (!job.secret.empty()) flag("--secret-file", job.secret.string());
  p.environment = told.variables();
  p.environment.emplace_back("LOCAL_RANK", std::to_string(rank));
  p.environment.emplace_back("LOCAL_WORLD_SIZE", std::to_string(all));
  if (all > 1) keep_nccl_on_this_machine(p);
  p.reports = !server;  // it serves as long as its workers live, at their pace
  if (rank == 0 && !own.stands_by)
    p.inherited.emplace_back(RunEnvironment::kRendezvousVariable, rendezvous.fd());
  if (job.lock >= 0) p.inherited.emplace_back(RunEnvironment::kLockVariable, job.lock);
  return p;
}

std::vector<ProcessSpec> processes_of(const PlannedStrategy& strategy, const LocalJob& job,
                                      std::int64_t attempt, const Socket& rendezvous) {
  const int ranks = computing_ranks(strategy), all = ranks + server_processes(strategy);
  std::vector<ProcessSpec> processes;
  for (int rank = 0; rank < all; ++rank)
    processes.push_back(
        process_of(strategy, job, {.rank = rank, .workers = ranks}, attempt, rendezvous));
  return processes;
}

Socket local_rendezvous() { return listen_on({"127.0.0.1", 0}); }

std::filesystem::path find_worker() {
  if (const char* named = std::getenv("RECKON_WORKER"); named != nullptr && *named != '\0')
    return named;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = self.parent_path() / "reckon-worker";
  if (!error && ::access(beside.c_str(), X_OK) == 0) return beside;
  throw std::runtime_error(fmt::format("no '{}': build it, or name it in RECKON_WORKER",
                                       error ? "reckon-worker" : beside.string()));
}

}  // namespace reckon
