#include <fmt/format.h>

#include "sim/base/kubernetes_quantity.h"
#include "sim/base/text/printable.h"
#include "sim/base/unit_text.h"
#include "sim/queue/lists/job_lists.h"
#include "sim/queue/lists/json_items.h"
#include "sim/queue/lists/timestamp.h"

namespace reckon {
namespace {

using WorkloadJson = nlohmann::json;
constexpr std::size_t kMostWorkloadMistakes = 20;
constexpr std::int64_t kMostGpusOfWorkload = 1'000'000;

/// The value at a path of keys; null where one is missing.
const WorkloadJson& at_path(const WorkloadJson& from, std::initializer_list<const char*> keys) {
  static const WorkloadJson kNothing;
  const WorkloadJson* at = &from;
  for (const char* key : keys) {
    if (!at->is_object()) return kNothing;
    const auto found = at->find(key);
    if (found == at->end()) return kNothing;
    at = &*found;
  }
  return *at;
}

std::string text_at(const WorkloadJson& from, std::initializer_list<const char*> keys) {
  const WorkloadJson& value = at_path(from, keys);
  return value.is_string() ? value.get<std::string>() : "";
}

class WorkloadList {
 public:
  explicit WorkloadList(const std::string& file) : file_(file) {}

  Expected<JobList> read(std::string_view bytes) {
    each_json_item(file_, bytes, "items", problems_,
                   [&](const WorkloadJson& item, int line) { read_workload(item, line); });
    const auto left_out = [&](int rows, const char* what) {
      if (rows > 0) list_.left_out.emplace_back(rows, what);
    };
    left_out(without_gpu_, "without a GPU");
    left_out(not_admitted_, "that were not admitted");
    left_out(running_, "that still run");
    return finished_list(std::move(problems_), file_, std::move(list_), submits_);
  }

 private:
  void mistake(int line, const std::string& name, const std::string& what) {
    if (problems_.size() < kMostWorkloadMistakes)
      problems_.push_back({Severity::error,
                           {file_, line, 0},
                           fmt::format("workload '{}': {}", printable(name), what),
                           "kubectl get workloads --all-namespaces --output json"});
  }

  /// "2024-05-01T07:01:55Z".
  static std::optional<std::int64_t> time_of(std::string text) {
    if (!text.ends_with('Z')) return std::nullopt;
    text.pop_back();
    return parse_timestamp(text, 'T');
  }

  /// When the condition became true; nullopt: it is not. A Finished workload keeps Admitted.
  static std::optional<std::string> became(const WorkloadJson& item, std::string_view type) {
    const WorkloadJson& conditions = at_path(item, {"status", "conditions"});
    if (!conditions.is_array()) return std::nullopt;
    for (const auto& condition : conditions)
      if (text_at(condition, {"type"}) == type && text_at(condition, {"status"}) == "True")
        return text_at(condition, {"lastTransitionTime"});
    return std::nullopt;
  }

  static std::optional<std::int64_t> quantity(const WorkloadJson& value) {
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (!value.is_string()) return std::nullopt;
    const auto count = parse_integer(value.get<std::string>());
    return count ? std::optional(*count) : std::nullopt;
  }

  /// Over all pods; nullopt: a quantity is none.
  static std::optional<std::int64_t> gpus_of(const WorkloadJson& item) {
    std::int64_t gpus = 0;
    const WorkloadJson& sets = at_path(item, {"spec", "podSets"});
    if (!sets.is_array()) return std::nullopt;
    for (const auto& set : sets) {
      std::int64_t of_pod = 0;
      const WorkloadJson& containers = at_path(set, {"template", "spec", "containers"});
      if (!containers.is_array()) return std::nullopt;
      for (const auto& container : containers) {
        const WorkloadJson& resources = at_path(container, {"resources"});
        const WorkloadJson& requests = at_path(resources, {"requests"});
        const WorkloadJson& asked =
            requests.is_object() ? requests : at_path(resources, {"limits"});
        if (!asked.is_object()) continue;
        for (const auto& [resource, value] : asked.items()) {
          if (!counts_as_gpu(resource)) continue;
          const auto count = quantity(value);
          if (!count || *count < 0 || *count > kMostGpusOfWorkload) return std::nullopt;
          of_pod += *count;
        }
      }
      const WorkloadJson& count = at_path(set, {"count"});
      const std::int64_t pods = count.is_number_integer() ? count.get<std::int64_t>() : 1;
      if (pods < 0 || pods > kMostGpusOfWorkload) return std::nullopt;
      gpus += pods * of_pod;
    }
    return gpus <= kMostGpusOfWorkload ? std::optional(gpus) : std::nullopt;
  }

  /// The first pod set's: spec.podSets[].topologyRequest.
  void set_topology(const WorkloadJson& item, JobOwner& owner) {
    const WorkloadJson& sets = at_path(item, {"spec", "podSets"});
    if (!sets.is_array() || sets.empty()) return;
    for (const char* how : {"required", "preferred"}) {
      const std::string level = text_at(sets.front(), {"topologyRequest", how});
      if (level.empty()) continue;
      owner.topology = list_.names.topologies.number(level);
      owner.topology_required = std::string_view(how) == "required";
      return;
    }
  }

  void read_workload(const WorkloadJson& item, int line) {
    const std::string name = text_at(item, {"metadata", "name"});
    const auto gpus = gpus_of(item);
    if (!gpus) return mistake(line, name, "spec.podSets has no pods with counts of GPUs");
    if (*gpus == 0) return void(++without_gpu_);
    const auto admitted = became(item, "Admitted"), finished = became(item, "Finished");
    if (!admitted) return void(++not_admitted_);
    if (!finished) return void(++running_);
    const auto submit = time_of(text_at(item, {"metadata", "creationTimestamp"}));
    const auto start = time_of(*admitted), end = time_of(*finished);
    if (!submit || !start || !end)
      return mistake(line, name,
                     "a time is none (creationTimestamp, or lastTransitionTime of Admitted or "
                     "Finished)");
    if (*end < *start) return mistake(line, name, "it finished before it was admitted");
    list_.jobs.push_back(
        recorded_job({}, std::chrono::seconds(*end - *start), static_cast<int>(*gpus), {}, line));
    JobOwner& owner = list_.jobs.back().owner;
    owner.team = list_.names.teams.number(text_at(item, {"metadata", "namespace"}));
    owner.queue = list_.names.queues.number(text_at(item, {"status", "admission", "clusterQueue"}));
    set_topology(item, owner);
    const WorkloadJson& priority = at_path(item, {"spec", "priority"});
    if (priority.is_number_integer()) owner.priority = priority.get<std::int32_t>();
    submits_.push_back(*submit);
  }

  std::string file_;
  Diagnostics problems_;
  JobList list_;
  std::vector<std::int64_t> submits_;
  int without_gpu_ = 0, not_admitted_ = 0, running_ = 0;
};

}  // namespace

Expected<JobList> read_kueue_workloads(const std::string& file, std::string_view bytes) {
  return WorkloadList(file).read(bytes);
}

}  // namespace reckon
