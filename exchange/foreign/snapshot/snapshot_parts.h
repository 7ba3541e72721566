#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "exchange/foreign/snapshot/snapshot_files.h"

// Inside exchange/foreign/snapshot: what is collected from file to file.
namespace reckon {

struct SnapshotParts {
  ClusterSnapshot snapshot;
  std::set<SnapshotSystem> systems;
  bool nodes = false, jobs = false;  // some file tells them
  std::int64_t latest = 0;           // time that a file tells; 0: none
  int held = 0, without_gpus = 0;    // jobs that are left out
  Diagnostics problems;
  // Of Kubernetes, resolved when all files are read:
  std::vector<nlohmann::json> kubernetes_nodes, pods, workloads, cluster_queues, local_queues,
      flavors;

  void error(const std::string& file, int line, std::string what, std::string hint = "") {
    problems.push_back({Severity::error, {file, line, 0}, std::move(what), std::move(hint)});
  }
  void saw(std::int64_t time) { latest = std::max(latest, time); }
};

/// A table with bars: squeue or sinfo. False: it is neither.
bool read_slurm_table(const SnapshotFile& file, SnapshotParts& parts);
/// `scontrol show node`.
void read_scontrol_nodes(const SnapshotFile& file, SnapshotParts& parts);
/// {"jobs": [...]} and {"nodes": [...]}.
void read_slurm_json(const SnapshotFile& file, const nlohmann::json& json, SnapshotParts& parts);
void read_job_table(const SnapshotFile& file, SnapshotParts& parts);
/// Sorts the objects of a List; join_kubernetes() makes nodes and jobs of them.
void read_kubernetes_list(const SnapshotFile& file, const nlohmann::json& list,
                          SnapshotParts& parts);
void join_kubernetes(const Catalog& catalog, SnapshotParts& parts);
/// Of join_kubernetes: workloads as jobs, which take the nodes of their pods from `of_pods`, and
/// the quotas of their queues.
void join_kueue(std::vector<SnapshotJob> of_pods, SnapshotParts& parts);

/// "2024-05-01T07:01:55Z" in s since 1970; 0: it is none.
std::int64_t kubernetes_time(const nlohmann::json& object, const char* pointer);

}  // namespace reckon
