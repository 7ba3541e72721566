#include "executor/launch/local_job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace reckon {

std::vector<ProcessSpec> processes_of(const PlannedStrategy& strategy, const LocalJob& job,
                                      std::int64_t attempt, std::uint16_t master_port) {
  const int workers = strategy.workers, all = workers + strategy.parameter_servers;
  RunEnvironment told;
  told.attempt = attempt;
  told.clock = job.clock;
  told.supervisor = ::getpid();
  std::vector<ProcessSpec> processes;
  for (int rank = 0; rank < all; ++rank) {
    ProcessSpec p;
    p.name = rank < workers ? fmt::format("rank {}", rank)
                            : fmt::format("rank {} (server {})", rank, rank - workers);
    p.command = {job.worker.string()};
    p.command.insert(p.command.end(), job.arguments.begin(), job.arguments.end());
    p.environment = told.variables();
    for (const auto& [name, value] : {std::pair{"RANK", rank},
                                      {"WORLD_SIZE", all},
                                      {"LOCAL_RANK", rank},
                                      {"LOCAL_WORLD_SIZE", all},
                                      {"MASTER_PORT", int(master_port)}})
      p.environment.emplace_back(name, std::to_string(value));
    p.environment.emplace_back("MASTER_ADDR", "127.0.0.1");
    if (job.lock >= 0) p.inherited.emplace_back(RunEnvironment::kLockVariable, job.lock);
    processes.push_back(std::move(p));
  }
  return processes;
}

std::uint16_t free_port() {
  const FileHandle socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (!socket.open() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error(fmt::format("cannot find a free port: {}", std::strerror(errno)));
  return ntohs(address.sin_port);
}

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
