#include <fmt/format.h>

#include "exchange/foreign/cluster/nodes.h"
#include "exchange/foreign/snapshot/slurm/words.h"
#include "exchange/foreign/snapshot/snapshot_parts.h"
#include "sim/base/text/printable.h"

namespace reckon {
namespace {

using SlurmJson = nlohmann::json;

/// 10, or since 23.02 {"set": true, "infinite": false, "number": 10}; nullopt: none, or infinite.
std::optional<double> slurm_number(const SlurmJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number()) return found->get<double>();
  if (!found->is_object() || !found->value("set", false) || found->value("infinite", false))
    return std::nullopt;
  const auto number = found->find("number");
  return number != found->end() && number->is_number() ? std::optional(number->get<double>())
                                                       : std::nullopt;
}

std::int64_t slurm_seconds(const SlurmJson& object, const char* key) {
  constexpr double kYear2200 = 7.3e9;
  const double value = slurm_number(object, key).value_or(0);
  return value >= 0 && value < kYear2200 ? static_cast<std::int64_t>(value) : 0;
}

/// "mixed", or a list of words.
std::string slurm_words_at(const SlurmJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  std::string text;
  if (found->is_array())
    for (const SlurmJson& word : *found)
      if (word.is_string()) text += (text.empty() ? "" : "+") + word.get<std::string>();
  return text;
}

class SlurmJsonReader {
 public:
  SlurmJsonReader(const SnapshotFile& file, SnapshotParts& parts) : file_(file), parts_(parts) {}

  void read_node(const SlurmJson& item) {
    SnapshotNode node{.name = text_at(item, "/name")};
    const auto gpus = slurm_gpus(text_at(item, "/gres"));
    if (!gpus) return mistake("node", node.name, "its gres has no count of GPUs");
    node.gpus = gpus->count;
    node.accelerator = gpus->type;
    node.usable =
        slurm_node_is_up(slurm_words_at(item, "state") + "+" + slurm_words_at(item, "state_flags"));
    if (const auto of = item.find("partitions"); of != item.end() && of->is_array())
      for (const SlurmJson& name : *of)
        if (name.is_string()) node.queues.push_back(name.get<std::string>());
    parts_.snapshot.nodes.push_back(std::move(node));
  }

  void read_job(const SlurmJson& item) {
    const SlurmJobState is = slurm_job_state(slurm_words_at(item, "job_state"));
    if (is == SlurmJobState::other) return;
    if (is == SlurmJobState::waits && slurm_holds_back(text_at(item, "/state_reason")))
      return void(++parts_.held);
    SnapshotJob job;
    job.id = fmt::format("{:.0f}", slurm_number(item, "job_id").value_or(0));
    job.user = text_at(item, "/user_name");
    job.team = text_at(item, "/account");
    job.queue = text_at(item, "/partition");
    job.priority = slurm_number(item, "priority").value_or(0);
    if (!read_asked(item, job)) return mistake("job", job.id, "it has no count of GPUs");
    if (job.gpus == 0) return void(++parts_.without_gpus);
    job.submit = slurm_seconds(item, "submit_time");
    if (job.submit == 0) return mistake("job", job.id, "it has no submit_time");
    parts_.saw(job.submit);
    if (const auto minutes = slurm_number(item, "time_limit"); minutes && *minutes < 5.3e7)
      job.limit = Seconds{*minutes * 60};
    if (is == SlurmJobState::runs) {
      job.start = slurm_seconds(item, "start_time");
      parts_.saw(*job.start);
      read_nodes(item, job);
    }
    parts_.snapshot.jobs.push_back(std::move(job));
  }

 private:
  void mistake(const char* what, const std::string& name, const char* why) {
    parts_.error(file_.name, 0, fmt::format("{} '{}': {}", what, printable(name), why),
                 "squeue --json, sinfo --json");
  }

  bool read_asked(const SlurmJson& item, SnapshotJob& job) {
    const double nodes = std::max(1.0, slurm_number(item, "node_count").value_or(1));
    for (const auto& [key, times] :
         {std::pair{"/tres_alloc_str", 1.0}, std::pair{"/tres_req_str", 1.0},
          std::pair{"/tres_per_job", 1.0}, std::pair{"/tres_per_node", nodes}}) {
      const auto gpus = slurm_gpus(text_at(item, key));
      if (!gpus) return false;
      if (gpus->count == 0) continue;
      job.gpus = static_cast<int>(std::min(1e6, gpus->count * times));
      job.accelerator = gpus->type;
      return true;
    }
    return true;
  }

  /// gres_detail has an entry for each node that it holds.
  void read_nodes(const SlurmJson& item, SnapshotJob& job) {
    std::string list = text_at(item, "/nodes");
    if (list.empty()) list = text_at(item, "/job_resources/nodes");
    const auto hosts = slurm_hosts(list);
    if (!hosts) return mistake("job", job.id, "its nodes are no list of hosts");
    const auto detail = item.find("gres_detail");
    const bool by_node =
        detail != item.end() && detail->is_array() && detail->size() == hosts->size();
    for (std::size_t k = 0; k < hosts->size(); ++k) {
      const int even =
          job.gpus / int(hosts->size()) + (int(k) < job.gpus % int(hosts->size()) ? 1 : 0);
      const SlurmJson none;
      const SlurmJson& of = by_node ? detail->at(k) : none;
      const auto gpus = of.is_string() ? slurm_gpus(of.get<std::string>()) : std::nullopt;
      job.on.emplace_back((*hosts)[k], gpus ? gpus->count : even);
    }
  }

  const SnapshotFile& file_;
  SnapshotParts& parts_;
};

}  // namespace

void read_slurm_json(const SnapshotFile& file, const SlurmJson& json, SnapshotParts& parts) {
  parts.systems.insert(SnapshotSystem::slurm);
  SlurmJsonReader reader(file, parts);
  if (const auto nodes = json.find("nodes"); nodes != json.end() && nodes->is_array()) {
    parts.nodes = true;
    for (const SlurmJson& item : *nodes)
      if (item.is_object()) reader.read_node(item);
  }
  if (const auto jobs = json.find("jobs"); jobs != json.end() && jobs->is_array()) {
    parts.jobs = true;
    for (const SlurmJson& item : *jobs)
      if (item.is_object()) reader.read_job(item);
  }
  if (const auto last = json.find("last_update"); last != json.end())
    parts.saw(slurm_seconds(json, "last_update"));
}

}  // namespace reckon
