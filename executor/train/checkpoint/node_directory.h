#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "executor/train/checkpoint/checkpoint_shard.h"
#include "sim/scenario/plan.h"

// Where the processes of a job keep the checkpoints of workload.checkpoint.local
// (node_checkpoints.h), and which of them share a node.
namespace reckon {

/// Ranks of the job on a node of the plan; neighbours share it.
int ranks_of_node(const Plan& plan);

/// The directory of a node of a run on this machine, which plays all of the plan's nodes: in the
/// directory `out` of the run, or, for memory, in the machine's (/dev/shm), which outlives
/// processes and not the machine.
std::filesystem::path node_directory(const std::filesystem::path& out, LocalTier to, int node);
/// Makes it. In memory that all users share it is this user's alone: throws FileError where
/// somebody else has made it.
void make_node_directory(const std::filesystem::path& directory, LocalTier to);

/// The newest checkpoint of which those directories have a part of each of `ranks` ranks, as far as
/// names say; nullopt: there is none.
std::optional<std::int64_t> newest_on_nodes(const Plan& plan, const std::filesystem::path& out,
                                            int ranks);

/// The newest set in those directories, whoever wrote it: one part's header says of what training.
struct SetOnNodes {
  std::int64_t step = 0;
  CheckpointIdentity identity;
};
std::optional<SetOnNodes> newest_set_on_nodes(const Plan& plan, const std::filesystem::path& out);

}  // namespace reckon
