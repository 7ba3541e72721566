#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/catalog/catalog.h"
#include "sim/queue/snapshot/snapshot.h"

// A shared cluster as its users can export it.
namespace reckon {

struct SnapshotFile {
  std::string name, bytes;
};

/// One snapshot of several exports, each told apart by what stands in it:
///
/// Slurm: `squeue` as a table with bars between the columns (--format or --Format), or `squeue
/// --json`; nodes of `scontrol show node`, of a table of `sinfo --Node`, or of `sinfo --json`
/// (Slurm 22.05; later `scontrol show nodes --json`); the history of `sacct --parsable2`.
/// Kubernetes: a List of Node and Pod objects (`kubectl get nodes,pods --all-namespaces --output
/// json`), with Kueue those of Workload, ClusterQueue, LocalQueue and ResourceFlavor.
/// Our own table of jobs, job_id,gpus,waited_seconds,elapsed_seconds and optionally limit_seconds,
/// nodes, user, team, queue, priority: elapsed_seconds is blank where the job waits; nodes are
/// separated by blanks.
///
/// `scenario`: the nodes and the scheduler of a scenario, to which a table of jobs belongs. `at`: s
/// since 1970; not given: the latest time that the files tell. Errors, all at once: what is no such
/// file or no such value, with its place; nodes or jobs that are missing.
Expected<ClusterSnapshot> read_snapshot(std::span<const SnapshotFile> files,
                                        std::optional<ClusterSnapshot> scenario,
                                        std::optional<std::int64_t> at, const Catalog& catalog);

}  // namespace reckon
