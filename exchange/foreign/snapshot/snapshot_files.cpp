#include "exchange/foreign/snapshot/snapshot_files.h"

#include <fmt/format.h>

#include "exchange/foreign/snapshot/snapshot_parts.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/sacct.h"
#include "sim/queue/snapshot/start_forecast.h"

namespace reckon {
namespace {

constexpr const char* kExports =
    "exports: squeue --all --json and sinfo --json, their tables, scontrol show node, sacct "
    "--parsable2, kubectl get nodes,pods --all-namespaces --output json";

class SnapshotReader {
 public:
  SnapshotReader(std::optional<ClusterSnapshot> scenario, const Catalog& catalog)
      : catalog_(catalog), of_scenario_(scenario.has_value()) {
    if (!scenario) return;
    parts_.snapshot = std::move(*scenario);
    parts_.systems.insert(SnapshotSystem::scenario);
    parts_.nodes = true;
  }

  void read(const SnapshotFile& file) {
    const std::string_view text = file.bytes;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos)
      return parts_.error(file.name, 0, "the file is empty", kExports);
    const std::string_view head = text.substr(0, text.find_first_of("\r\n"));
    if (text[first] == '{') return read_json(file);
    if (text.substr(first).starts_with("NodeName=")) return read_scontrol_nodes(file, parts_);
    if (head.find("AllocTRES") != std::string_view::npos ||
        head.find("ReqTRES") != std::string_view::npos)
      return read_history(file);
    if (head.find("waited_seconds") != std::string_view::npos) {
      parts_.systems.insert(SnapshotSystem::scenario);
      return read_job_table(file, parts_);
    }
    if (head.find('|') != std::string_view::npos && read_slurm_table(file, parts_)) return;
    parts_.error(file.name, 1, "it is no export of a cluster that reckon reads", kExports);
  }

  Expected<ClusterSnapshot> finish(const std::string& file, std::optional<std::int64_t> at) {
    if (parts_.problems.empty()) check(file);
    ClusterSnapshot& snapshot = parts_.snapshot;
    if (parts_.problems.empty() && parts_.systems.contains(SnapshotSystem::kubernetes))
      join_kubernetes(catalog_, parts_);
    else if (parts_.systems.contains(SnapshotSystem::slurm))
      snapshot.system = SnapshotSystem::slurm;
    snapshot.at = at.value_or(of_scenario_ ? snapshot.at : parts_.latest);
    if (of_scenario_)  // times of a table of jobs count from then on
      for (SnapshotJob& job : snapshot.jobs) {
        job.submit += snapshot.at;
        if (job.start) *job.start += snapshot.at;
      }
    if (parts_.problems.empty())
      if (auto why = snapshot_problem(snapshot)) parts_.error(file, 0, *why, kExports);
    if (!parts_.problems.empty()) return tl::unexpected(std::move(parts_.problems));
    tell_left_out();
    return std::move(snapshot);
  }

 private:
  void read_json(const SnapshotFile& file) {
    const auto json = nlohmann::json::parse(file.bytes, nullptr, false);
    if (!json.is_object()) return parts_.error(file.name, 0, "it is no JSON", kExports);
    if (json.contains("items") && json.at("items").is_array()) return read_list(file, json);
    if (json.contains("jobs") || json.contains("nodes")) return read_slurm_json(file, json, parts_);
    parts_.error(file.name, 0, "its JSON has no items, jobs or nodes", kExports);
  }

  /// Finished workloads are a history where a file has workloads only.
  void read_list(const SnapshotFile& file, const nlohmann::json& json) {
    const std::size_t before = parts_.workloads.size();
    read_kubernetes_list(file, json, parts_);
    if (parts_.workloads.size() - before != json.at("items").size()) return;
    if (auto list = read_kueue_workloads(file.name, file.bytes)) parts_.snapshot.history = *list;
  }

  void read_history(const SnapshotFile& file) {
    auto list = read_sacct(file.name, file.bytes);
    if (list)
      parts_.snapshot.history = std::move(*list);
    else
      parts_.problems.insert(parts_.problems.end(), list.error().begin(), list.error().end());
  }

  void check(const std::string& file) {
    if (parts_.systems.size() > 1)
      parts_.error(file, 0, "its files are of several systems: Slurm, Kubernetes and a scenario",
                   "one cluster at a time");
    if (!parts_.nodes)
      parts_.error(file, 0, "no file lists the nodes",
                   "sinfo --json, scontrol show node, kubectl get nodes, or a scenario");
    if (!parts_.jobs && !of_scenario_)
      parts_.error(file, 0, "no file lists the running and waiting jobs",
                   "squeue --all --json, kubectl get pods --all-namespaces, or a table of jobs");
  }

  void tell_left_out() {
    std::vector<std::string>& notes = parts_.snapshot.notes;
    if (parts_.held > 0)
      notes.push_back(fmt::format(
          "left out, as they are held or wait for another job or a time: {} of the jobs",
          parts_.held));
    if (parts_.without_gpus > 0)
      notes.push_back(fmt::format("left out, as they ask for no GPU: {} of the jobs and pods",
                                  parts_.without_gpus));
    int down = 0;
    for (const SnapshotNode& node : parts_.snapshot.nodes) down += node.usable ? 0 : 1;
    if (down > 0)
      notes.push_back(
          fmt::format("{} of {} nodes are down, drained or kept for others, and not used", down,
                      parts_.snapshot.nodes.size()));
  }

  const Catalog& catalog_;
  bool of_scenario_;
  SnapshotParts parts_;
};

}  // namespace

Expected<ClusterSnapshot> read_snapshot(std::span<const SnapshotFile> files,
                                        std::optional<ClusterSnapshot> scenario,
                                        std::optional<std::int64_t> at, const Catalog& catalog) {
  SnapshotReader reader(std::move(scenario), catalog);
  for (const SnapshotFile& file : files) reader.read(file);
  return reader.finish(files.empty() ? "" : files.front().name, at);
}

}  // namespace reckon
