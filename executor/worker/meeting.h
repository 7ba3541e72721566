#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/comm/rendezvous/rendezvous.h"
#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/plan.h"

// How a process of a job meets the others.
namespace reckon::worker {

/// nullopt: this process meets nobody. It may come from a pipe, so it is read once. Throws
/// std::invalid_argument where there is none.
std::optional<JobSecret> secret_of(const JobOptions& options, const WorkerIdentity& me);

/// `listener`: where whoever started this process, or told it to take part, listens for rank 0
/// already. `of_data`: data_in_common(), where this process has any. Throws CommError;
/// SettingsDiffer where it was started otherwise than rank 0.
std::unique_ptr<Membership> join(const JobOptions& options, const WorkerIdentity& me,
                                 const Plan& plan, const JobSecret& secret, std::uint16_t port,
                                 std::optional<Socket> listener,
                                 const std::map<std::string, std::string>& of_data = {});

/// The workers that meet, or this one alone.
struct Peers {
  std::unique_ptr<Membership> membership;
  std::unique_ptr<Communicator> communicator;
};
/// As join().
Peers meet(const JobOptions& options, const Plan& plan, const WorkerIdentity& me,
           const std::optional<JobSecret>& secret, std::optional<Socket> listener,
           const std::map<std::string, std::string>& of_data);

}  // namespace reckon::worker
