#include "executor/worker/server.h"

#include <optional>
#include <utility>

#include "executor/train/pulled_tables.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainer.h"
#include "executor/worker/meeting.h"

namespace reckon::worker {
namespace {

/// Of a parameter server, as the others are told it: where it was said to be reached, else where it
/// reaches rank 0 from. "": everywhere, where that is not known yet, or is a loopback by which none
/// but this machine's processes come.
std::string listening_address(const WorkerIdentity& me) {
  if (!me.address.empty()) return me.address;
  if (is_loopback(me.master.host)) return me.master.host;
  const std::string own = local_address_towards(me.master);
  return is_loopback(own) ? "" : own;
}

}  // namespace

ServerJob server_job(const JobOptions& options, const PlannedWorkload& job,
                     const WorkerIdentity& me) {
  const ParameterLayout layout = pulls_rows(job)
                                     ? pulled_layout(job.model, share_of(job, 0, me.workers).own)
                                     : parameter_layout(job.model);
  std::vector<ParameterRange> layers;
  std::vector<TableKeys> tables;
  for (const ParameterSlot& slot : layout.slots) {
    layers.push_back({slot.first, slot.count});
    TableKeys& keys = tables.emplace_back();
    if (slot.pulled)
      keys = {.rows = static_cast<std::size_t>(slot.global.front()),
              .width = static_cast<std::size_t>(slot.global.back()),
              .rule = job.strategy.servers->rows};
  }
  return {.keys = server_keys(layers, std::vector<double>(static_cast<std::size_t>(me.servers), 1),
                              tables),
          .workers = me.workers / ranks_of_worker(job.strategy),
          .ranks_of_worker = ranks_of_worker(job.strategy),
          .synchronous = job.strategy.synchronous(),
          .backup_workers = job.strategy.backup_workers(),
          .staleness = job.strategy.servers->staleness,
          .phases_apart = options.phases_apart && job.strategy.synchronous(),
          .optimizer = optimizer_rule(job),
          .trained = trained_ranges(layout)};
}

int serve(const JobOptions& options, const Plan& plan, const WorkerIdentity& me) {
  const JobSecret secret = secret_of(options, me).value();
  Socket listener = listen_on({listening_address(me), me.port});
  std::optional<EndsOnRequest> waiting;
  if (!RunEnvironment::read().supervisor) waiting.emplace();
  const auto membership = join(options, me, plan, secret, listener.local().port, std::nullopt);
  waiting.reset();
  run_parameter_server(*membership, me.job, me.rank - me.workers,
                       server_job(options, plan.only_job(), me), std::move(listener),
                       kServerTimeout);
  return stop_requested() ? kExitStoppedOnRequest : 0;
}

}  // namespace reckon::worker
