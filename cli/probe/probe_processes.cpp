#include "cli/probe/probe_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "cli/options/usage_error.h"
#include "executor/comm/gloo/gloo_communicator.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/launch/gang.h"
#include "executor/launch/local/job.h"
#include "executor/probe/probe.h"
#include "executor/train/stop_signal.h"
#include "sim/measurement/measurements.h"

namespace reckon::cli {
namespace {

constexpr Seconds kRendezvous{60}, kSilence{120};
constexpr Bytes kLargestMessage{67108864};  // 64 MiB, as nccl-tests' usual sweeps reach at least
constexpr Bytes kLargestBetweenDevices{268435456};

ProcessSpec member(int rank, const MembersWanted& wanted, const Socket& rendezvous,
                   const JobSecret& secret) {
  ProcessSpec p;
  p.name = fmt::format("process {} of the probe", rank);
  p.command = {std::filesystem::read_symlink("/proc/self/exe").string(),
               "probe",
               "--format",
               "json",
               "--device",
               wanted.device == DeviceWish::cpu ? "cpu" : "auto",
               "--item-time",
               fmt::format("{}us", std::ceil(1e6 * wanted.budget.count()))};
  const std::string index = std::to_string(rank), all = std::to_string(wanted.processes);
  p.environment = {{"RANK", index},
                   {"WORLD_SIZE", all},
                   {"LOCAL_RANK", index},
                   {"LOCAL_WORLD_SIZE", all},
                   {"MASTER_ADDR", "127.0.0.1"},
                   {"MASTER_PORT", std::to_string(rendezvous.local().port)},
                   {JobSecret::kVariable, "/dev/stdin"}};
  p.input = secret.text();
  if (rank == 0) p.inherited = {{RunEnvironment::kRendezvousVariable, rendezvous.fd()}};
  return p;
}

JobSecret secret_of_members() {
  try {
    return JobSecret::of_process({});
  } catch (const SecretError& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

std::optional<WorkerIdentity> probe_identity() {
  auto me = worker_identity({}, process_environment());
  if (!me) throw UsageError(format(me.error()));
  if (me->members() == 1) return std::nullopt;
  return *me;
}

std::vector<ProbeRecord> probe_as_member(const WorkerIdentity& me, const RepeatRule& rule,
                                         DeviceWish device) {
  std::optional<Socket> listener;  // of whoever started this process
  if (const auto descriptor = RunEnvironment::read().rendezvous; descriptor && me.rank == 0)
    listener.emplace(*descriptor);
  const auto membership = Membership::join({.secret = secret_of_members(),
                                            .job = "probe",
                                            .rank = me.rank,
                                            .size = me.members(),
                                            .master = me.master,
                                            .address = me.address,
                                            .deadline = kRendezvous},
                                           std::move(listener));
  const auto communicator = make_gloo_communicator(*membership, {.timeout = kSilence});
  std::vector<ProbeRecord> all =
      probe_collectives({*communicator, *communicator, rule, ""}, kLargestMessage);
  if (device == DeviceWish::cpu) return all;
  std::ranges::move(
      probe_between_devices(*communicator, me.local_rank, rule, kLargestBetweenDevices),
      std::back_inserter(all));
  return all;
}

std::vector<ProbeRecord> probe_between_processes(const MembersWanted& wanted) {
  watch_stop_signals();
  GangOptions gang;
  gang.rendezvous = local_rendezvous();
  const JobSecret secret = JobSecret::random();
  for (int rank = 0; rank < wanted.processes; ++rank)
    gang.members.push_back(member(rank, wanted, gang.rendezvous, secret));
  std::string records, said;
  GangEvents events;
  events.output = [&](int, std::string_view line) {
    (line.starts_with('{') ? records : said) += std::string(line) + '\n';
  };
  const GangEnd end = run_gang(std::move(gang), events, [] {
    return stop_requests() > 0 ? StopRequest::at_once : StopRequest::none;
  });
  if (end.code != 0) throw std::runtime_error(fmt::format("{}\n{}", end.reason, said));
  const auto measured = parse_measurements("collectives", records);
  if (!measured) throw std::runtime_error(format(measured.error()));
  return measured->probes;
}

}  // namespace reckon::cli
