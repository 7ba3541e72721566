#include <fmt/format.h>

#include <array>
#include <map>

#include "exchange/foreign/snapshot/slurm/words.h"
#include "exchange/foreign/snapshot/snapshot_parts.h"
#include "sim/base/text/printable.h"
#include "sim/queue/lists/timestamp.h"
#include "sim/queue/lists/trace_csv.h"

namespace reckon {
namespace {

bool says_nothing(std::string_view text) {
  return text.empty() || text == "N/A" || text == "(null)" || text == "Unknown" || text == "None";
}

class SqueueTable {
 public:
  SqueueTable(const SnapshotFile& file, SnapshotParts& parts)
      : parts_(parts), rows_(file.name, file.bytes, kColumns, kOptional, parts.problems, '|') {}

  void read() {
    while (rows_.next()) row();
  }

 private:
  enum {
    id,
    state,
    submit,
    start,
    limit,
    nodes,
    used,
    partition,
    user,
    account,
    qos,
    priority,
    hosts,
    reason,
    per_node,
    per_job,
    tres
  };
  static constexpr std::array<std::string_view, 6> kColumns{
      "JOBID", "STATE", "SUBMIT_TIME", "START_TIME", "TIME_LIMIT", "NODES"};
  static constexpr std::array<std::string_view, 11> kOptional{
      "TIME",     "PARTITION", "USER",          "ACCOUNT",      "QOS",       "PRIORITY",
      "NODELIST", "REASON",    "TRES_PER_NODE", "TRES_PER_JOB", "TRES_ALLOC"};

  void row() {
    const SlurmJobState is = slurm_job_state(rows_.text(state));
    if (is == SlurmJobState::other) return;
    if (is == SlurmJobState::waits && slurm_holds_back(rows_.text(reason)))
      return void(++parts_.held);
    SnapshotJob job;
    job.id = rows_.text(id);
    const auto text = [&](std::size_t column) {
      return says_nothing(rows_.text(column)) ? std::string() : std::string(rows_.text(column));
    };
    job.user = text(user);
    job.team = text(account);
    job.queue = text(partition);
    if (!read_gpus(job)) return;
    if (job.gpus == 0) return void(++parts_.without_gpus);
    if (!text(priority).empty()) job.priority = rows_.number(priority, -1e300, 1e300).value_or(0);
    const auto submitted = time(submit);
    if (!submitted) return;
    job.submit = *submitted;
    parts_.saw(job.submit);
    if (!read_limit(job) || (is == SlurmJobState::runs && !read_run(job))) return;
    parts_.snapshot.jobs.push_back(std::move(job));
  }

  /// Of the first column that says them: over all nodes, of a job, or of each node.
  bool read_gpus(SnapshotJob& job) {
    const auto count = rows_.whole(nodes, 0, 1'000'000);
    if (!count) return false;
    for (const std::size_t column :
         {std::size_t{tres}, std::size_t{per_job}, std::size_t{per_node}}) {
      if (says_nothing(rows_.text(column))) continue;
      const auto gpus = slurm_gpus(rows_.text(column));
      if (!gpus) {
        rows_.error(column, fmt::format("'{}' has no count of GPUs", printable(rows_.text(column))),
                    "example: gres:gpu:a100:8");
        return false;
      }
      if (gpus->count == 0) continue;
      const std::int64_t all = std::int64_t{gpus->count} * (column == per_node ? *count : 1);
      job.gpus = static_cast<int>(std::min<std::int64_t>(all, 1'000'000));
      job.accelerator = gpus->type;
      return true;
    }
    return true;
  }

  bool read_limit(SnapshotJob& job) {
    const std::string_view text = rows_.text(limit);
    if (says_nothing(text) || text == "UNLIMITED" || text == "NOT_SET") return true;
    const auto seconds = slurm_time(text);
    if (!seconds) {
      rows_.error(limit, fmt::format("'{}' is no time limit", printable(text)),
                  "example: 2-00:00:00");
      return false;
    }
    job.limit = Seconds{double(*seconds)};
    return true;
  }

  bool read_run(SnapshotJob& job) {
    const auto started = time(start);
    if (!started) return false;
    job.start = *started;
    parts_.saw(*started);
    if (const auto elapsed = slurm_time(rows_.text(used))) parts_.saw(*started + *elapsed);
    if (says_nothing(rows_.text(hosts))) return true;
    const auto names = slurm_hosts(rows_.text(hosts));
    if (!names) {
      rows_.error(hosts, fmt::format("'{}' is no list of hosts", printable(rows_.text(hosts))),
                  "example: gpu[01-04,7]");
      return false;
    }
    // Nobody says how many of each: as evenly as it goes.
    for (std::size_t k = 0; k < names->size(); ++k)
      job.on.emplace_back((*names)[k], job.gpus / int(names->size()) +
                                           (int(k) < job.gpus % int(names->size()) ? 1 : 0));
    return true;
  }

  std::optional<std::int64_t> time(std::size_t column) {
    const auto value = parse_timestamp(rows_.text(column), 'T');
    if (!value)
      rows_.error(column,
                  fmt::format("'{}' is no date with its time", printable(rows_.text(column))),
                  "example: 2024-05-01T07:01:55, as without SLURM_TIME_FORMAT");
    return value;
  }

  SnapshotParts& parts_;
  TraceCsv rows_;
};

/// Node by node, once for each of its partitions.
void read_sinfo(const SnapshotFile& file, SnapshotParts& parts) {
  static constexpr std::array<std::string_view, 3> kColumns{"NODELIST", "GRES", "STATE"};
  static constexpr std::array<std::string_view, 1> kOptional{"PARTITION"};
  TraceCsv rows(file.name, file.bytes, kColumns, kOptional, parts.problems, '|');
  std::map<std::string, std::size_t> known;
  while (rows.next()) {
    const auto hosts = slurm_hosts(rows.text(0));
    const auto gpus = slurm_gpus(rows.text(1));
    if (!hosts || !gpus) {
      rows.error(hosts ? 1 : 0,
                 fmt::format("'{}' is no {}", printable(rows.text(hosts ? 1 : 0)),
                             hosts ? "list of GRES" : "list of hosts"),
                 "sinfo --Node --format='%N|%G|%T|%P'");
      continue;
    }
    std::string partition(rows.text(3));
    if (partition.ends_with('*')) partition.pop_back();  // the default
    for (const std::string& host : *hosts) {
      const auto [at, added] = known.try_emplace(host, parts.snapshot.nodes.size());
      if (added)
        parts.snapshot.nodes.push_back(
            {host, gpus->count, gpus->type, {}, "", slurm_node_is_up(rows.text(2))});
      if (!partition.empty()) parts.snapshot.nodes[at->second].queues.push_back(partition);
    }
  }
}

}  // namespace

bool read_slurm_table(const SnapshotFile& file, SnapshotParts& parts) {
  const std::string_view head =
      std::string_view(file.bytes).substr(0, file.bytes.find_first_of("\r\n"));
  parts.systems.insert(SnapshotSystem::slurm);
  if (head.find("JOBID") != std::string_view::npos) {
    parts.jobs = true;
    SqueueTable(file, parts).read();
    return true;
  }
  if (head.find("GRES") == std::string_view::npos) return false;
  parts.nodes = true;
  read_sinfo(file, parts);
  return true;
}

void read_scontrol_nodes(const SnapshotFile& file, SnapshotParts& parts) {
  parts.systems.insert(SnapshotSystem::slurm);
  parts.nodes = true;
  int line = 1;
  const std::string_view text = file.bytes;
  SnapshotNode* node = nullptr;
  std::size_t from = 0;
  while (from < text.size()) {
    const auto end = std::min(text.find_first_of(" \t\r\n", from), text.size());
    const std::string_view word = text.substr(from, end - from);
    const auto value = [&](std::string_view key) -> std::optional<std::string_view> {
      return word.starts_with(key) ? std::optional(word.substr(key.size())) : std::nullopt;
    };
    if (const auto name = value("NodeName=")) {
      parts.snapshot.nodes.push_back({.name = std::string(*name)});
      node = &parts.snapshot.nodes.back();
    } else if (node != nullptr) {
      if (const auto gres = value("Gres=")) {
        const auto gpus = slurm_gpus(*gres);
        if (!gpus)
          parts.error(file.name, line, fmt::format("'{}' has no count of GPUs", printable(*gres)),
                      "example: Gres=gpu:a100:8");
        else
          node->gpus = gpus->count, node->accelerator = gpus->type;
      } else if (const auto state = value("State=")) {
        node->usable = slurm_node_is_up(*state);
      } else if (const auto partitions = value("Partitions=")) {
        for (std::string_view left = *partitions; !left.empty();) {
          const auto comma = std::min(left.find(','), left.size());
          node->queues.emplace_back(left.substr(0, comma));
          left.remove_prefix(std::min(comma + 1, left.size()));
        }
      }
    }
    if (end < text.size() && text[end] == '\n') ++line;
    from = end + 1;
  }
}

void read_job_table(const SnapshotFile& file, SnapshotParts& parts) {
  static constexpr std::array<std::string_view, 4> kColumns{"job_id", "gpus", "waited_seconds",
                                                            "elapsed_seconds"};
  static constexpr std::array<std::string_view, 6> kOptional{"limit_seconds", "nodes", "user",
                                                             "team",          "queue", "priority"};
  constexpr double kLongest = 1e10;
  parts.jobs = true;
  TraceCsv rows(file.name, file.bytes, kColumns, kOptional, parts.problems);
  while (rows.next()) {
    SnapshotJob job;
    job.id = rows.text(0);
    const auto gpus = rows.whole(1, 1, 1'000'000);
    const auto waited = rows.number(2, 0, kLongest);
    std::optional<double> elapsed;
    if (!rows.text(3).empty() && !(elapsed = rows.number(3, 0, kLongest))) continue;
    if (!rows.text(4).empty()) {
      const auto limit = rows.number(4, 0, kLongest);
      if (!limit) continue;
      job.limit = Seconds{*limit};
    }
    if (!rows.text(9).empty()) {
      const auto priority = rows.number(9, -2e9, 2e9);
      if (!priority) continue;
      job.priority = *priority;
    }
    if (!gpus || !waited) continue;
    job.gpus = static_cast<int>(*gpus);
    job.user = rows.text(6);
    job.team = rows.text(7);
    job.queue = rows.text(8);
    // The table has no calendar: its own time 0 is when it was made.
    job.submit = -static_cast<std::int64_t>(*waited + elapsed.value_or(0));
    if (elapsed) job.start = -static_cast<std::int64_t>(*elapsed);
    std::vector<std::string> on;
    for (std::string_view left = rows.text(5); !left.empty();) {
      const auto blank = std::min(left.find(' '), left.size());
      if (blank > 0) on.emplace_back(left.substr(0, blank));
      left.remove_prefix(std::min(blank + 1, left.size()));
    }
    for (std::size_t k = 0; elapsed && k < on.size(); ++k)
      job.on.emplace_back(on[k],
                          job.gpus / int(on.size()) + (int(k) < job.gpus % int(on.size()) ? 1 : 0));
    parts.snapshot.jobs.push_back(std::move(job));
  }
}

}  // namespace reckon
