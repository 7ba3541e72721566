#include <fmt/format.h>

#include <map>

#include "exchange/foreign/cluster/nodes.h"
#include "exchange/foreign/snapshot/snapshot_parts.h"
#include "sim/base/kubernetes_quantity.h"
#include "sim/queue/lists/timestamp.h"

namespace reckon {
namespace {

using KubeJson = nlohmann::json;

/// GPUs and TPUs of all containers: limits, else requests.
int gpus_of_pod(const KubeJson& pod) {
  double sum = 0;
  const KubeJson::json_pointer containers("/spec/containers");
  if (!pod.contains(containers) || !pod.at(containers).is_array()) return 0;
  for (const KubeJson& c : pod.at(containers))
    for (const char* which : {"/resources/limits", "/resources/requests"}) {
      const KubeJson::json_pointer at(which);
      if (!c.contains(at) || !c.at(at).is_object()) continue;
      double of_container = 0;
      for (const auto& [resource, value] : c.at(at).items())
        if (counts_as_gpu(resource))
          of_container +=
              kubernetes_quantity(value.is_string() ? value.get<std::string>() : value.dump())
                  .value_or(0);
      sum += of_container;
      if (of_container > 0) break;
    }
  return static_cast<int>(std::min(sum, 1e6));
}

/// What its pods are of: a label of the controllers that know jobs, else its first owner, else it.
std::string job_of_pod(const KubeJson& pod) {
  for (const char* label :
       {"/metadata/labels/jobset.sigs.k8s.io~1jobset-name",
        "/metadata/labels/training.kubeflow.org~1job-name",
        "/metadata/labels/leaderworkerset.sigs.k8s.io~1name", "/metadata/labels/ray.io~1cluster",
        "/metadata/labels/batch.kubernetes.io~1job-name", "/metadata/labels/job-name",
        "/metadata/ownerReferences/0/name", "/metadata/name"})
    if (std::string name = text_at(pod, label); !name.empty()) return name;
  return "";
}

bool labels_fit(const KubeJson& node, const KubeJson& selector) {
  const KubeJson::json_pointer labels("/metadata/labels");
  for (const auto& [key, value] : selector.items())
    if (!node.contains(labels) || !node.at(labels).contains(key) ||
        node.at(labels).at(key) != value)
      return false;
  return true;
}

class KubernetesJoin {
 public:
  KubernetesJoin(const Catalog& catalog, SnapshotParts& parts) : catalog_(catalog), parts_(parts) {}

  void read_nodes() {
    for (const KubeJson& item : parts_.kubernetes_nodes) {
      const SeenNode seen = seen_node(item, catalog_);
      SnapshotNode node{.name = seen.name, .gpus = seen.devices};
      node.accelerator = seen.accelerator.empty() ? seen.product : seen.accelerator;
      node.pool = flavor_of(item, seen);
      node.usable = seen.ready && !seen.cordoned && seen.taints.empty();
      parts_.snapshot.nodes.push_back(std::move(node));
      const KubeJson::json_pointer conditions("/status/conditions");
      if (!item.contains(conditions) || !item.at(conditions).is_array()) continue;
      for (const KubeJson& c : item.at(conditions))
        parts_.saw(kubernetes_time(c, "/lastHeartbeatTime"));
    }
  }

  /// Pods of one job that run are a job that runs, those that wait one that waits.
  std::vector<SnapshotJob> jobs_of_pods() {
    std::map<std::pair<std::string, bool>, SnapshotJob> jobs;
    for (const KubeJson& pod : parts_.pods) {
      const std::string phase = text_at(pod, "/status/phase");
      const std::string node = text_at(pod, "/spec/nodeName");
      if (phase == "Succeeded" || phase == "Failed") continue;
      const int gpus = gpus_of_pod(pod);
      if (gpus == 0) {
        ++parts_.without_gpus;
        continue;
      }
      const std::string space = text_at(pod, "/metadata/namespace");
      const std::string id = space + "/" + job_of_pod(pod);
      SnapshotJob& job = jobs[{id, !node.empty()}];
      job.id = id;
      job.team = space;
      job.gpus += gpus;
      const std::int64_t created = kubernetes_time(pod, "/metadata/creationTimestamp");
      if (job.submit == 0 || created < job.submit) job.submit = created;
      parts_.saw(created);
      const KubeJson::json_pointer priority("/spec/priority"),
          deadline("/spec/activeDeadlineSeconds");
      if (pod.contains(priority) && pod.at(priority).is_number())
        job.priority = pod.at(priority).get<double>();
      if (pod.contains(deadline) && pod.at(deadline).is_number())
        job.limit = Seconds{pod.at(deadline).get<double>()};
      if (job.accelerator.empty()) job.accelerator = selected_accelerator(pod);
      if (node.empty()) continue;
      const std::int64_t started = kubernetes_time(pod, "/status/startTime");
      if (!job.start || started > *job.start) job.start = started;  // the last that came
      parts_.saw(started);
      job.on.emplace_back(node, gpus);
    }
    std::vector<SnapshotJob> out;
    for (auto& [key, job] : jobs) out.push_back(std::move(job));
    return out;
  }

 private:
  /// The ResourceFlavor whose nodeLabels the node has; without any the node's pool.
  std::string flavor_of(const KubeJson& node, const SeenNode& seen) const {
    const KubeJson::json_pointer labels("/spec/nodeLabels");
    for (const KubeJson& flavor : parts_.flavors)
      if (!flavor.contains(labels) || labels_fit(node, flavor.at(labels)))
        return text_at(flavor, "/metadata/name");
    return parts_.flavors.empty() ? seen.pool : "";
  }

  /// Where all nodes that its nodeSelector allows have one, that; else "".
  std::string selected_accelerator(const KubeJson& pod) const {
    const KubeJson::json_pointer selector("/spec/nodeSelector");
    if (!pod.contains(selector) || !pod.at(selector).is_object()) return "";
    std::string only;
    for (std::size_t n = 0; n < parts_.kubernetes_nodes.size(); ++n) {
      const SnapshotNode& node = parts_.snapshot.nodes[n];
      if (node.gpus == 0 || !labels_fit(parts_.kubernetes_nodes[n], pod.at(selector))) continue;
      if (!only.empty() && node.accelerator != only) return "";
      only = node.accelerator;
    }
    return only;
  }

  const Catalog& catalog_;
  SnapshotParts& parts_;
};

}  // namespace

std::int64_t kubernetes_time(const nlohmann::json& object, const char* pointer) {
  std::string text = text_at(object, pointer);
  if (!text.ends_with('Z')) return 0;
  text.pop_back();
  return parse_timestamp(text.substr(0, text.find('.')), 'T').value_or(0);
}

void read_kubernetes_list(const SnapshotFile& file, const nlohmann::json& list,
                          SnapshotParts& parts) {
  parts.systems.insert(SnapshotSystem::kubernetes);
  std::vector<nlohmann::json>* of = nullptr;
  const std::map<std::string, std::vector<nlohmann::json>*> kinds{
      {"Node", &parts.kubernetes_nodes},   {"Pod", &parts.pods},
      {"Workload", &parts.workloads},      {"ClusterQueue", &parts.cluster_queues},
      {"LocalQueue", &parts.local_queues}, {"ResourceFlavor", &parts.flavors}};
  int others = 0;
  for (const KubeJson& item : list.at("items")) {
    const auto kind = kinds.find(text_at(item, "/kind"));
    of = kind == kinds.end() ? nullptr : kind->second;
    if (of == nullptr)
      ++others;
    else
      of->push_back(item);
  }
  parts.nodes = parts.nodes || !parts.kubernetes_nodes.empty();
  parts.jobs = parts.jobs || !parts.pods.empty() || !parts.workloads.empty();
  if (others > 0)
    parts.snapshot.notes.push_back(
        fmt::format("{}: {} objects of other kinds are left out", file.name, others));
}

void join_kubernetes(const Catalog& catalog, SnapshotParts& parts) {
  KubernetesJoin join(catalog, parts);
  join.read_nodes();
  std::vector<SnapshotJob> jobs = join.jobs_of_pods();
  if (!parts.workloads.empty()) return join_kueue(std::move(jobs), parts);
  parts.snapshot.system = SnapshotSystem::kubernetes;
  for (SnapshotJob& job : jobs) parts.snapshot.jobs.push_back(std::move(job));
  parts.snapshot.notes.emplace_back(
      "pods of one job start together, by priority and then age; nobody has a reservation, as "
      "kube-scheduler gives none");
}

}  // namespace reckon
