#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Inside exchange/foreign/snapshot: words of Slurm's tables.
namespace reckon {

struct SlurmGpus {
  int count = 0;
  std::string type;  // "": not said
};
/// "gpu:a100:8(S:0-1)", "gres:gpu:4", "gres/gpu=8,gres/gpu:a100=8": gres(5), of a node or a job.
/// Other resources do not count; nullopt: a count that is none.
std::optional<SlurmGpus> slurm_gpus(std::string_view gres);

/// "gpu[01-03,7]-x,login": the hosts of a hostlist; nullopt: it is none, or of over 100,000 hosts.
std::optional<std::vector<std::string>> slurm_hosts(std::string_view list);

/// "2-00:00:00", "08:00:00", "30:00" or "30" (minutes): slurm.conf(5)'s times, in seconds. nullopt:
/// it is no such time.
std::optional<std::int64_t> slurm_time(std::string_view text);

/// Whether the state ("IDLE+DRAIN", "mixed", "down*") lets jobs start on a node.
bool slurm_node_is_up(std::string_view state);

enum class SlurmJobState { waits, runs, other };
/// "PENDING" or "PD", and "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED" and the like.
SlurmJobState slurm_job_state(std::string_view state);

/// A job that does not start for want of nodes only: held, or waiting for another job or a time.
bool slurm_holds_back(std::string_view reason);

}  // namespace reckon
