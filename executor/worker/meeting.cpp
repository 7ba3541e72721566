#include "executor/worker/meeting.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "executor/comm/gloo/gloo_communicator.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/records/run_directory.h"
#include "executor/worker/agreement.h"
#include "sim/base/standard_streams.h"

namespace reckon::worker {
namespace {

void warn(const std::string& text) {
  print_error(fmt::format("reckon-worker: warning: {}\n", text));
}

/// What this process waits for; `reckon run` shows itself what those that it starts do.
void say_waiting(const std::string& text) {
  if (!RunEnvironment::read().supervisor) print_error(fmt::format("reckon-worker: {}\n", text));
}

}  // namespace

std::optional<JobSecret> secret_of(const JobOptions& options, const WorkerIdentity& me) {
  if (me.members() == 1) return std::nullopt;
  try {
    return JobSecret::of_process(options.secret_file);
  } catch (const SecretError& error) {
    throw std::invalid_argument(error.what());
  }
}

std::unique_ptr<Membership> join(const JobOptions& options, const WorkerIdentity& me,
                                 const Plan& plan, const JobSecret& secret, std::uint16_t port,
                                 std::optional<Socket> listener,
                                 const std::map<std::string, std::string>& of_data) {
  auto settings = settings_in_common(options, plan, me.computes());
  settings.insert(of_data.begin(), of_data.end());
  return Membership::join({.secret = secret,
                           .job = me.job,
                           .attempt = me.common_attempt(),
                           .restarted = me.attempt > 0,
                           .rank = me.rank,
                           .size = me.members(),
                           .role = me.role,
                           .master = me.master,
                           .address = me.address,
                           .port = port,
                           .deadline = options.rendezvous_deadline,
                           .settings = std::move(settings),
                           .warn = warn,
                           .waiting = say_waiting},
                          std::move(listener));
}

Peers meet(const JobOptions& options, const Plan& plan, const WorkerIdentity& me,
           const std::optional<JobSecret>& secret, std::optional<Socket> listener,
           const std::map<std::string, std::string>& of_data) {
  if (!secret || me.members() == 1) return {nullptr, std::move(make_thread_communicators(1)[0])};
  auto membership = join(options, me, plan, *secret, me.port, std::move(listener), of_data);
  using Kind = GlooOptions::AllReduce;
  const Kind kind = options.sum_directly                                         ? Kind::direct
                    : plan.only_job().strategy.all_reduce == AllReduceKind::ring ? Kind::ring
                                                                                 : Kind::automatic;
  auto communicator =
      make_gloo_communicator(*membership, {.ranks = me.workers, .all_reduce = kind});
  return {std::move(membership), std::move(communicator)};
}

}  // namespace reckon::worker
