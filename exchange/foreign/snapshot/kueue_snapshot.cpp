#include <fmt/format.h>

#include <map>

#include "exchange/foreign/cluster/nodes.h"
#include "exchange/foreign/snapshot/snapshot_parts.h"
#include "sim/base/kubernetes_quantity.h"
#include "sim/base/words.h"
#include "sim/queue/lists/job_lists.h"

namespace reckon {
namespace {

using KueueJson = nlohmann::json;

constexpr const char* kOutside = "(outside Kueue)";

int device_count(const KueueJson& value) {
  const auto count =
      kubernetes_quantity(value.is_string() ? value.get<std::string>() : value.dump());
  return static_cast<int>(std::clamp(count.value_or(0), 0.0, 1e6));
}

/// When the condition became true; 0: it is not.
std::int64_t condition_time(const KueueJson& item, std::string_view type) {
  const KueueJson::json_pointer conditions("/status/conditions");
  if (!item.contains(conditions) || !item.at(conditions).is_array()) return 0;
  for (const KueueJson& c : item.at(conditions))
    if (text_at(c, "/type") == type && text_at(c, "/status") == "True")
      return std::max<std::int64_t>(1, kubernetes_time(c, "/lastTransitionTime"));
  return 0;
}

/// Of all its pods.
int gpus_of_workload(const KueueJson& item) {
  const KueueJson::json_pointer sets("/spec/podSets"), containers("/template/spec/containers");
  if (!item.contains(sets) || !item.at(sets).is_array()) return 0;
  double gpus = 0;
  for (const KueueJson& set : item.at(sets)) {
    if (!set.contains(containers) || !set.at(containers).is_array()) continue;
    double of_pod = 0;
    for (const KueueJson& c : set.at(containers))
      for (const char* which : {"/resources/requests", "/resources/limits"}) {
        const KueueJson::json_pointer at(which);
        if (!c.contains(at) || !c.at(at).is_object()) continue;
        int of_container = 0;
        for (const auto& [resource, value] : c.at(at).items())
          if (counts_as_gpu(resource)) of_container += device_count(value);
        of_pod += of_container;
        if (of_container > 0) break;
      }
    const auto count = set.find("count");
    gpus += of_pod * (count != set.end() && count->is_number() ? count->get<double>() : 1);
  }
  return static_cast<int>(std::min(gpus, 1e6));
}

template <HasWords Enum>
Enum word_or(const KueueJson& item, const char* pointer, Enum otherwise) {
  return from_text<Enum>(text_at(item, pointer)).value_or(otherwise);
}

class KueueJoin {
 public:
  explicit KueueJoin(SnapshotParts& parts) : parts_(parts) {}

  void join(std::vector<SnapshotJob> of_pods) {
    ClusterSnapshot& snapshot = parts_.snapshot;
    snapshot.system = SnapshotSystem::kueue;
    snapshot.scheduler.policy = SchedulingPolicy::kueue;
    for (const KueueJson& item : parts_.cluster_queues) read_cluster_queue(item);
    for (SnapshotJob& job : of_pods) pods_[job.id].push_back(std::move(job));
    for (const KueueJson& item : parts_.workloads) read_workload(item);
    add_pods_outside();
    add_missing_queues();
    snapshot.scheduler.kueue = std::move(kueue_);
  }

 private:
  void read_cluster_queue(const KueueJson& item) {
    ClusterQueueSpec queue{.name = text_at(item, "/metadata/name"),
                           .cohort = text_at(item, "/spec/cohortName")};
    if (queue.cohort.empty()) queue.cohort = text_at(item, "/spec/cohort");
    queue.strategy = word_or(item, "/spec/queueingStrategy", queue.strategy);
    queue.preemption = {word_or(item, "/spec/preemption/reclaimWithinCohort", ReclaimPolicy::never),
                        word_or(item, "/spec/preemption/withinClusterQueue", WithinPolicy::never)};
    const std::string borrow = text_at(item, "/spec/flavorFungibility/whenCanBorrow"),
                      preempt = text_at(item, "/spec/flavorFungibility/whenCanPreempt");
    if (borrow == "TryNextFlavor") queue.fungibility.when_can_borrow = WhenCan::try_next_flavor;
    // v1beta1 called what stops the search so: Borrow, Preempt.
    if (preempt == "MayStopSearch" || preempt == "Preempt")
      queue.fungibility.when_can_preempt = WhenCan::may_stop_search;
    const KueueJson::json_pointer groups("/spec/resourceGroups");
    if (item.contains(groups) && item.at(groups).is_array())
      for (const KueueJson& group : item.at(groups)) read_flavors(group, queue);
    if (!queue.flavors.empty()) kueue_.cluster_queues.push_back(std::move(queue));
  }

  void read_flavors(const KueueJson& group, ClusterQueueSpec& queue) {
    const auto flavors = group.find("flavors");
    if (flavors == group.end() || !flavors->is_array()) return;
    for (const KueueJson& flavor : *flavors) {
      const auto resources = flavor.find("resources");
      if (resources == flavor.end() || !resources->is_array()) continue;
      for (const KueueJson& resource : *resources) {
        if (!counts_as_gpu(text_at(resource, "/name"))) continue;
        KueueFlavorSpec spec{.name = text_at(flavor, "/name")};
        if (resource.contains("nominalQuota"))
          spec.nominal_quota = device_count(resource.at("nominalQuota"));
        if (resource.contains("borrowingLimit"))
          spec.borrowing_limit = device_count(resource.at("borrowingLimit"));
        if (resource.contains("lendingLimit"))
          spec.lending_limit = device_count(resource.at("lendingLimit"));
        if (has_nodes(spec.name)) queue.flavors.push_back(std::move(spec));
      }
    }
  }

  bool has_nodes(const std::string& flavor) const {
    return std::ranges::any_of(parts_.snapshot.nodes, [&](const SnapshotNode& node) {
      return node.usable && node.gpus > 0 && node.pool == flavor;
    });
  }

  /// A pending one names its LocalQueue only.
  std::string cluster_queue_of(const KueueJson& item) {
    std::string name = text_at(item, "/status/admission/clusterQueue");
    const std::string space = text_at(item, "/metadata/namespace"),
                      local = text_at(item, "/spec/queueName");
    if (!name.empty()) return local_[space + "/" + local] = name;
    for (const KueueJson& queue : parts_.local_queues)
      if (text_at(queue, "/metadata/namespace") == space &&
          text_at(queue, "/metadata/name") == local)
        return text_at(queue, "/spec/clusterQueue");
    if (const auto known = local_.find(space + "/" + local); known != local_.end())
      return known->second;
    return kueue_.cluster_queues.size() == 1 ? kueue_.cluster_queues.front().name : local;
  }

  void read_workload(const KueueJson& item) {
    if (condition_time(item, "Finished") > 0) return;
    SnapshotJob job;
    const std::string space = text_at(item, "/metadata/namespace");
    job.id = space + "/" + text_at(item, "/metadata/name");
    job.team = space;
    job.gpus = gpus_of_workload(item);
    job.queue = cluster_queue_of(item);
    job.submit = kubernetes_time(item, "/metadata/creationTimestamp");
    parts_.saw(job.submit);
    const KueueJson::json_pointer priority("/spec/priority"), active("/spec/active"),
        most("/spec/maximumExecutionTimeSeconds");
    if (item.contains(priority) && item.at(priority).is_number())
      job.priority = item.at(priority).get<double>();
    if (item.contains(most) && item.at(most).is_number())
      job.limit = Seconds{item.at(most).get<double>()};
    if (job.gpus == 0) return void(++parts_.without_gpus);
    const std::int64_t admitted = condition_time(item, "Admitted");
    if (admitted == 0 && item.contains(active) && item.at(active) == false)
      return void(++parts_.held);
    // Pods are of the object that the workload stands for.
    const auto pods = pods_.find(space + "/" + text_at(item, "/metadata/ownerReferences/0/name"));
    if (admitted > 0) {
      job.start = admitted;
      parts_.saw(admitted);
      job.accelerator = flavor_of_admission(item);
      if (pods != pods_.end())
        for (const SnapshotJob& of : pods->second)
          job.on.insert(job.on.end(), of.on.begin(), of.on.end());
    }
    if (pods != pods_.end()) pods_.erase(pods);
    parts_.snapshot.jobs.push_back(std::move(job));
  }

  static std::string flavor_of_admission(const KueueJson& item) {
    const KueueJson::json_pointer sets("/status/admission/podSetAssignments");
    if (!item.contains(sets) || !item.at(sets).is_array()) return "";
    for (const KueueJson& set : item.at(sets)) {
      const auto flavors = set.find("flavors");
      if (flavors == set.end() || !flavors->is_object()) continue;
      for (const auto& [resource, flavor] : flavors->items())
        if (counts_as_gpu(resource) && flavor.is_string()) return flavor.get<std::string>();
    }
    return "";
  }

  /// They hold GPUs that no quota counts.
  void add_pods_outside() {
    bool any = false;
    for (auto& [id, jobs] : pods_)
      for (SnapshotJob& job : jobs) {
        if (!job.start) continue;
        job.queue = kOutside;
        any = true;
        parts_.snapshot.jobs.push_back(std::move(job));
      }
    if (any)
      parts_.snapshot.notes.emplace_back(
          "pods that belong to no workload hold GPUs beside Kueue's quotas");
  }

  /// Without its ClusterQueue a queue may use all GPUs, as one cohort that lends everything.
  void add_missing_queues() {
    std::vector<std::string> missing;
    for (const SnapshotJob& job : parts_.snapshot.jobs) {
      const auto known =
          std::ranges::find(kueue_.cluster_queues, job.queue, &ClusterQueueSpec::name);
      if (known != kueue_.cluster_queues.end()) continue;
      std::map<std::string, int> gpus;
      for (const SnapshotNode& node : parts_.snapshot.nodes)
        if (node.usable && node.gpus > 0) gpus[node.pool] += node.gpus;
      ClusterQueueSpec queue{.name = job.queue, .cohort = ""};
      for (const auto& [pool, count] : gpus) queue.flavors.push_back({pool, count, {}, {}});
      kueue_.cluster_queues.push_back(std::move(queue));
      if (job.queue != kOutside) missing.push_back(job.queue);
    }
    if (!missing.empty())
      parts_.snapshot.notes.push_back(fmt::format(
          "no ClusterQueue says the quotas of {}: it may use all GPUs", fmt::join(missing, ", ")));
  }

  SnapshotParts& parts_;
  KueueSpec kueue_;
  std::map<std::string, std::string> local_;              // namespace/LocalQueue -> ClusterQueue
  std::map<std::string, std::vector<SnapshotJob>> pods_;  // by namespace/job
};

}  // namespace

void join_kueue(std::vector<SnapshotJob> of_pods, SnapshotParts& parts) {
  KueueJoin(parts).join(std::move(of_pods));
}

}  // namespace reckon
