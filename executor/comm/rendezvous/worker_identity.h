#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/comm/socket.h"
#include "sim/base/diagnostic.h"
#include "sim/scenario/scenario.h"

// Who a process is in its job, from what the user or the cluster's software says: flags, TF_CONFIG
// (TensorFlow, Kubeflow, AI Platform), RANK and its companions (torchrun, PyTorchJob), or
// SLURM_PROCID and its companions (srun). The first of them that is there is taken.
namespace reckon {

struct WorkerIdentity {
  Role role = Role::worker;  // chief: the worker of rank 0 (also where nobody is called chief)
  int index = 0;             // among those of its role
  /// Members of the rendezvous: workers (chief first), then parameter servers. An evaluator is no
  /// member: its rank is -1.
  int rank = 0;
  int workers = 1, servers = 0;  // chief included
  int local_rank = 0;            // among the processes of its machine: chooses the GPU
  HostPort master;               // rank 0's rendezvous; port 0: nobody to meet
  std::string address;           // where the others reach this process, if said
  std::uint16_t port = 0;        // of this process' own listener, if said
  std::string job = "reckon";
  int attempt = 0;
  /// Counted by the agent of this machine alone (torchrun's, which does not count starts for a
  /// change of members): it may differ between ranks of one start.
  bool attempt_is_own = false;
  std::string source;  // "flags", "TF_CONFIG", "RANK", "SLURM_PROCID"; "": a process on its own

  /// What all ranks of one start have the same.
  int common_attempt() const { return attempt_is_own ? 0 : attempt; }
  int members() const { return workers + servers; }
  bool computes() const { return reckon::computes(role); }
};

/// What was said on the command line; each wins over the environment.
struct IdentityFlags {
  std::optional<int> rank, workers, servers, local_rank, attempt;
  std::optional<std::string> role;    // "worker", "chief", "ps", "evaluator"; --rank counts within
  std::optional<std::string> master;  // host:port
  std::optional<std::string> job, address;
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// Of this process.
Environment process_environment();

/// All mistakes at once: which variable, what was read, what to set. Their place's file is the
/// variable ("TF_CONFIG", "RANK", "--rank").
Expected<WorkerIdentity> worker_identity(const IdentityFlags& flags,
                                         const Environment& environment);
/// Variables that say a rank or how many there are, of launchers that are not read (MPI's), as a
/// list; "": none is there.
std::string unread_launcher(const Environment& environment);
Expected<WorkerIdentity> identity_from_tf_config(std::string_view json);

}  // namespace reckon
