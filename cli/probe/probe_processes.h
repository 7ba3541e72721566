#pragma once
#include "cli/probe/probe_device.h"
#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/probe/repeat.h"

// Collectives need several processes: `reckon probe --processes N` starts as many of itself, told
// who they are by RANK and its companions, as anything else may that starts processes of a job.
namespace reckon::cli {

/// Who this process is among those that somebody has started for a probe; nullopt: it is alone.
/// Throws UsageError where the variables are wrong.
std::optional<WorkerIdentity> probe_identity();

/// One of them: meets the others, takes part in every collective, and where each has a device of
/// its own also between the devices. All have the same records. Throws CommError,
/// cuda::DeviceError.
std::vector<ProbeRecord> probe_as_member(const WorkerIdentity& me, const RepeatRule& rule,
                                         DeviceWish device);

struct MembersWanted {
  int processes = 2;
  Seconds budget{};  // an item
  DeviceWish device = DeviceWish::automatic;
};
/// Starts as many of this program on this machine and returns what they measured. Throws
/// std::runtime_error where one fails, with what it said.
std::vector<ProbeRecord> probe_between_processes(const MembersWanted& wanted);

}  // namespace reckon::cli
