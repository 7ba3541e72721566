#pragma once
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/comm/job.h"
#include "executor/comm/linear_model.h"
#include "executor/comm/parameter_server/parameter_server.h"
#include "executor/comm/parameter_server/ps_exchange.h"

// Jobs of workers and parameter servers, each a process, on a small linear model.
namespace reckon {

inline const std::vector<std::size_t> kLayers{3, 1, 40, 17, 64};

inline ServerJob job_for(int workers, int servers, OptimizerRule rule) {
  std::vector<ParameterRange> layers;
  std::size_t count = 0;
  for (const std::size_t n : kLayers) {
    layers.push_back({count, n});
    count += n;
  }
  return {.keys = server_keys(layers, std::vector<double>(std::size_t(servers), 1)),
          .workers = workers,
          .optimizer = rule,
          .trained = {{0, count, true}}};
}

using WorkerBody = std::function<std::string(int rank, Membership&, const ServerJob&)>;

/// Workers run `body`, servers serve; a server returns "updates dropped lead".
inline std::vector<ProcessOutcome> run_ps_job(const ServerJob& job, const WorkerBody& body,
                                              Seconds timeout = Seconds{20}) {
  const int servers = job.keys.servers();
  LocalJob local(job.workers + servers);
  return run_processes(
      job.workers + servers,
      [&](int rank) -> std::string {
        if (rank < job.workers) return body(rank, *local.join(rank), job);
        Socket listener = listen_on({"127.0.0.1", 0});
        local.options.port = listener.local().port;
        local.options.role = Role::parameter_server;
        const auto membership = local.join(rank);
        const ServerReport report = run_parameter_server(*membership, "reckon", rank - job.workers,
                                                         job, std::move(listener), timeout);
        return fmt::format("{} {} {}", report.updates, report.dropped, report.lead_max);
      },
      Seconds{60}, [&](const std::vector<pid_t>&) { local.listener.close(); });
}

inline std::string train_worker(int rank, Membership& membership, const ServerJob& job, int steps) {
  LinearModel model(kLayers);
  if (rank != 0) model.values.assign(model.count, 77);  // start() replaces them
  const auto exchange = make_ps_exchange(membership, "reckon", job, Seconds{20});
  train(model, *exchange, rank, job.workers, 2, steps, 0.01);
  return model.digest();
}

}  // namespace reckon
