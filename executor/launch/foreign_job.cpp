#include "executor/launch/foreign_job.h"

#include <fmt/format.h>

#include "executor/comm/socket.h"
#include "executor/train/checkpoint/durable_file.h"
#include "sim/scenario/resolve/job_wiring.h"

namespace reckon {
namespace {

JobWiring wiring_of(const PlannedStrategy& strategy) {
  JobWiring wiring{.workers = strategy.workers,
                   .servers = strategy.server_count(),
                   .chief = strategy.server_count() > 0,
                   .devices = strategy.accelerators_per_worker,
                   .addresses = {}};
  std::vector<Socket> taken;  // all at once, so that no two are the same
  for (int k = 0; k < wiring.workers + wiring.servers; ++k) {
    taken.push_back(listen_on({"127.0.0.1", 0}));
    wiring.addresses.push_back(text(taken.back().local()));
  }
  return wiring;
}

Variables variables_of(const JobWiring& wiring, int rank) {
  const bool server = rank >= wiring.workers;
  const bool chief = wiring.chief && rank == 0;
  const int index = server ? rank - wiring.workers : rank;
  Variables variables{{"RECKON_INDEX", std::to_string(index)}};
  if (wiring.workers + wiring.servers < 2) return variables;
  const int task = server || chief || !wiring.chief ? index : rank - 1;
  variables.emplace_back("TF_CONFIG", tf_config(wiring,
                                                server  ? "ps"
                                                : chief ? "chief"
                                                        : "worker",
                                                std::to_string(task)));
  if (wiring.servers > 0) return variables;
  const auto add = [&](const Variables& more) {
    variables.insert(variables.end(), more.begin(), more.end());
  };
  add(rank_variables(wiring, std::to_string(rank)));
  add(launcher_variables(wiring, std::to_string(rank)));
  return variables;
}

}  // namespace

std::vector<ProcessSpec> processes_of(const PlannedWorkload& job, const ContainerSpec& container,
                                      const ForeignStart& start) {
  create_directories_durably(start.directory);
  const JobWiring wiring = wiring_of(job.strategy);
  const int all = wiring.workers + wiring.servers;
  std::vector<ProcessSpec> processes;
  for (int rank = 0; rank < all; ++rank) {
    ProcessSpec p;
    p.name = rank < wiring.workers
                 ? fmt::format("rank {}", rank)
                 : fmt::format("rank {} (server {})", rank, rank - wiring.workers);
    Variables variables{{"RECKON_JOB_DIR", start.directory.string()},
                        {"PYTHONUNBUFFERED", "1"},
                        {"LOCAL_RANK", std::to_string(rank)},
                        {"LOCAL_WORLD_SIZE", std::to_string(all)},
                        {"RECKON_ATTEMPT", std::to_string(start.attempt)},
                        {"RECKON_RUN_STARTED", start.clock.text()}};
    const Variables own = variables_of(wiring, rank);
    variables.insert(variables.end(), own.begin(), own.end());
    for (const auto& given : container.env) {
      std::erase_if(variables, [&](const auto& v) { return v.first == given.first; });
      variables.emplace_back(given.first, with_variables(given.second, variables));
    }
    for (const std::string& word : program_words(container))
      p.command.push_back(with_variables(word, variables));
    p.environment = std::move(variables);
    p.reports = false;
    p.outlives_us = true;
    // Not the variable of our own workers: the program may start one in a directory of its own.
    if (start.lock >= 0) p.inherited.emplace_back("RECKON_RUN_LOCK_FD", start.lock);
    processes.push_back(std::move(p));
  }
  return processes;
}

}  // namespace reckon
