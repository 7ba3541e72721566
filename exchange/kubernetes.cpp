#include "exchange/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "exchange/kubernetes_confines.h"
#include "exchange/kubernetes_pods.h"
#include "exchange/yaml_text.h"
#include "sim/base/base64.h"
#include "sim/step/step.h"

namespace reckon {
namespace kubernetes {
namespace {

// Since when Kubernetes has what we would like to use, and does so without a feature gate.
constexpr int kIndexedJob = 22, kPodFailurePolicy = 26, kPodIndexLabel = 28;
constexpr int kTpuNodes = 26;  // of GKE: v4 from 1.26.1 on [GKE, "About TPUs in GKE"]

/// At most 40 characters: room for "-12-worker-4095" in 63.
std::string dns_label(std::string_view text) {
  std::string label;
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (keep)
      label += c;
    else if (!label.empty() && label.back() != '-')
      label += '-';
  }
  constexpr std::size_t kLongest = 40;
  label.resize(std::min(label.size(), kLongest));
  while (!label.empty() && label.back() == '-') label.pop_back();
  if (label.empty() || (label.front() >= '0' && label.front() <= '9')) label.insert(0, "job-");
  return label;
}

// ---- what runs

/// TPU v2 and v3 as resources of pods, in cores of a slice as a whole; "": not of that cluster. GKE
/// has TPUs as nodes from 1.26 on, which are asked for by chips of a host.
std::string tpu_cores(const Job& job, const Accelerator& accelerator) {
  if (job.options->minor >= kTpuNodes) return "";
  if (accelerator.name == "TPU-v2") return job.term("resources.tpu_v2_cores");
  return accelerator.name == "TPU-v3" ? job.term("resources.tpu_v3_cores") : "";
}

void ask_for_devices(PodGroup& group, const Job& job, int per_pod) {
  const PlannedPool& pool = *group.pool;
  if (!pool.accelerator || per_pod == 0) return;
  if (pool.accelerator->kind == AcceleratorKind::gpu) {
    group.devices = per_pod;
    group.resource =
        job.term(pool.accelerator->vendor == "AMD" ? "resources.amd_gpu" : "resources.gpu");
    return;
  }
  const std::string legacy = tpu_cores(job, *pool.accelerator);
  const int chips = pool.slice ? pool.slice->chips : per_pod;
  if (!legacy.empty()) {
    group.resource = legacy;
    group.tpu_by_cores = true;
    group.devices = chips * pool.accelerator->cores_per_device;
    return;
  }
  group.resource = job.term("resources.tpu");
  group.devices = pool.slice ? std::max(1, chips / std::max(1, pool.slice->hosts)) : per_pod;
  if (pool.slice) group.count = pool.slice->hosts;
}

std::vector<PodGroup> groups_of(const Job& job) {
  const Plan& plan = *job.plan;
  const PlannedStrategy& s = plan.jobs.front().strategy;
  const int each = s.accelerators_per_worker;
  std::vector<PodGroup> groups;
  int left = s.workers;
  const auto pools = computing_pools(plan);
  for (std::size_t k = 0; k < pools.size() && left > 0; ++k) {
    const PlannedPool& pool = *pools[k];
    PodGroup group;
    group.role = k + 1 < pools.size() ? Role::chief : Role::worker;
    group.pool = &pool;
    group.per_node = each > 0 ? std::max(1, pool.accelerators_per_node / each) : 1;
    group.count = k + 1 < pools.size() ? std::min(left, pool.nodes_max * group.per_node) : left;
    group.first_rank = s.workers - left;
    left -= group.count;
    ask_for_devices(group, job, each);
    groups.push_back(group);
  }
  if (s.parameter_servers > 0) {
    PodGroup servers;
    servers.role = Role::parameter_server;
    servers.pool = plan.pool_with(Role::parameter_server);
    servers.count = s.parameter_servers;
    if (servers.pool == nullptr) {  // beside the workers, on their nodes
      PodGroup& host = groups.back();
      const int nodes = (host.count + host.per_node - 1) / host.per_node;
      host.per_node += (servers.count + nodes - 1) / nodes;
      servers.pool = host.pool;
      servers.per_node = host.per_node;
    } else {
      const int nodes = std::max(1, servers.pool->nodes_max);
      servers.per_node = (servers.count + nodes - 1) / nodes;
    }
    groups.push_back(servers);
  }
  int rank = 0;
  for (PodGroup& group : groups) {
    group.first_rank = rank;
    rank += group.count;
  }
  return groups;
}

// ---- what surrounds it

Json object(const char* version, const char* kind, const Job& job, const std::string& name) {
  Json metadata = {{"name", name}};
  if (std::string_view(kind) != "Namespace") metadata["namespace"] = job.name_space;
  metadata["labels"] = labels_of(job);
  return {{"apiVersion", version}, {"kind", kind}, {"metadata", metadata}};
}

Json own_pods(const Job& job) {
  return {{"matchLabels", {{"app.kubernetes.io/instance", job.run}}}};
}

Json config_map(const Job& job) {
  Json map = object("v1", "ConfigMap", job, job.name + "-plan");
  map["data"] = {{"plan.yaml", job.artifact->scenario}};
  map["binaryData"] = {{kPlanKey, to_base64(write_artifact(*job.artifact))}};
  return map;
}

Json secret(const Job& job) {
  Json s = object("v1", "Secret", job, kubernetes_secret_name(job.run));
  s["type"] = "Opaque";
  s["stringData"] = {{kKubernetesSecretKey, job.options->job_secret}};
  return s;
}

/// Room for the checkpoints that are kept, the one that is being written, and as much again.
Json claim(const Job& job) {
  Json c = object("v1", "PersistentVolumeClaim", job, job.claim());
  constexpr double kCopies = 3, kGiB = 1024.0 * 1024 * 1024;
  const double bytes = 2 * kCopies * checkpoint_bytes(job.plan->jobs.front()).v;
  Json spec;
  spec["accessModes"] = Json::array({"ReadWriteMany"});
  if (!job.options->storage_class.empty()) spec["storageClassName"] = job.options->storage_class;
  spec["resources"] = {
      {"requests", {{"storage", fmt::format("{}Gi", std::max(1.0, std::ceil(bytes / kGiB)))}}}};
  c["spec"] = spec;
  return c;
}

Json service(const Job& job) {
  Json s = object("v1", "Service", job, job.service());
  Json selector = labels_of(job);
  selector.erase("app.kubernetes.io/managed-by");
  // Ranks look for each other before they are ready.
  s["spec"] = {{"clusterIP", "None"}, {"publishNotReadyAddresses", true}, {"selector", selector}};
  return s;
}

/// The job's pods talk to each other, to the cluster's name servers and, where checkpoints go to a
/// bucket or the program is the user's own, to the outside by HTTPS.
Json network_policy(const Job& job) {
  Json policy = object("networking.k8s.io/v1", "NetworkPolicy", job, job.run);
  Json peers = Json::array();
  peers.push_back({{"podSelector", own_pods(job)}});
  Json egress = Json::array();
  egress.push_back({{"to", peers}});
  egress.push_back(name_server_egress(job.options->minor, job.plan->service));
  if (!job.options->bucket.empty())
    add_bucket_egress(egress);
  else if (job.container != nullptr)
    egress.push_back({{"ports", Json::array({port_rule("TCP", 443)})}});
  Json ingress = Json::array();
  ingress.push_back({{"from", peers}});
  if (const auto page = metrics_page(job))  // read by whoever watches, from outside
    ingress.push_back({{"ports", Json::array({port_rule("TCP", page->port)})}});
  policy["spec"] = {{"podSelector", own_pods(job)},
                    {"policyTypes", Json::array({"Ingress", "Egress"})},
                    {"ingress", ingress},
                    {"egress", egress}};
  return policy;
}

// ---- the job

/// 75: stopped behind a checkpoint, 76: a peer is lost (both go on); 2: the input is wrong.
Json failure_policy(const Json& containers) {
  const std::string name = containers.front().at("name");
  const auto on_codes = [&](const char* action, std::vector<int> codes) {
    return Json{{"action", action},
                {"onExitCodes",
                 {{"containerName", name}, {"operator", "In"}, {"values", std::move(codes)}}}};
  };
  Json rules = Json::array();
  rules.push_back(on_codes("FailJob", {2}));
  Json conditions = Json::array();
  conditions.push_back({{"type", "DisruptionTarget"}, {"status", "True"}});
  rules.push_back({{"action", "Ignore"}, {"onPodConditions", conditions}});
  rules.push_back(on_codes("Ignore", {75, 76}));
  return {{"rules", rules}};
}

Json job_spec(const Job& job, const PodGroup& group, std::optional<int> rank) {
  Json spec;
  const int pods = rank ? 1 : group.count;
  spec["completions"] = pods;
  spec["parallelism"] = pods;
  if (!rank) spec["completionMode"] = "Indexed";
  spec["backoffLimit"] = job.options->watched ? 0 : job.plan->retry.backoff_limit;
  Json pod = pod_template(job, group, rank, true);
  if (job.options->minor >= kPodFailurePolicy && !job.options->watched)
    spec["podFailurePolicy"] = failure_policy(pod.at("spec").at("containers"));
  spec["template"] = std::move(pod);
  return spec;
}

Json stateful_set(const Job& job, const PodGroup& group) {
  Json set = object("apps/v1", "StatefulSet", job, group_name(job, group));
  Json pod = pod_template(job, group, std::nullopt, true);
  Json selector = labels_of(job);
  selector.erase("app.kubernetes.io/managed-by");
  selector["app.kubernetes.io/component"] = "parameter-server";
  set["spec"] = {{"replicas", group.count},
                 {"serviceName", job.service()},
                 {"podManagementPolicy", "Parallel"},
                 {"selector", {{"matchLabels", selector}}},
                 {"template", pod}};
  return set;
}

void add_jobs(std::vector<Json>& documents, const Job& job) {
  for (const PodGroup& group : job.groups) {
    if (!job.rank_by_rank) {
      if (group.role == Role::parameter_server && !job.options->watched) {
        documents.push_back(stateful_set(job, group));
        continue;
      }
      Json made = object("batch/v1", "Job", job, group_name(job, group));
      made["spec"] = job_spec(job, group, std::nullopt);
      documents.push_back(std::move(made));
      continue;
    }
    for (int k = 0; k < group.count; ++k) {
      Json made = object("batch/v1", "Job", job, fmt::format("{}-{}", group_name(job, group), k));
      made["spec"] = job_spec(job, group, group.first_rank + k);
      documents.push_back(std::move(made));
    }
  }
}

Json job_set(const Job& job) {
  Json set = object("", "JobSet", job, job.name);
  set["apiVersion"] = job.term("api_versions.jobset");
  Json parts = Json::array();
  for (const PodGroup& group : job.groups)
    parts.push_back({{"name", group_name(job, group).substr(job.name.size() + 1)},
                     {"replicas", 1},
                     {"template", {{"spec", job_spec(job, group, std::nullopt)}}}});
  Json spec;
  spec["network"] = {{"enableDNSHostnames", true},
                     {"subdomain", job.service()},
                     {"publishNotReadyAddresses", true}};
  spec["failurePolicy"] = {{"maxRestarts", job.plan->retry.backoff_limit}};
  Json workers = Json::array();
  workers.push_back("worker");
  // Servers run until the workers are done.
  spec["successPolicy"] = {{"operator", "All"}, {"targetReplicatedJobs", workers}};
  spec["replicatedJobs"] = parts;
  set["spec"] = spec;
  return set;
}

Json replicas(const Job& job, const PodGroup& group, int count, const char* restart) {
  Json pod = pod_template(job, group, std::nullopt, false);
  pod["spec"].erase("restartPolicy");  // the operator's is above
  return {{"replicas", count}, {"restartPolicy", restart}, {"template", pod}};
}

Json pytorch_job(const Job& job) {
  Json made = object("", "PyTorchJob", job, job.name);
  made["apiVersion"] = job.term("api_versions.pytorchjob");
  const PodGroup& group = job.groups.front();
  Json specs;
  specs["Master"] = replicas(job, group, 1, "OnFailure");
  if (group.count > 1) specs["Worker"] = replicas(job, group, group.count - 1, "OnFailure");
  made["spec"] = {
      {"runPolicy", {{"backoffLimit", job.plan->retry.backoff_limit}, {"cleanPodPolicy", "None"}}},
      {"pytorchReplicaSpecs", specs}};
  return made;
}

Json tf_job(const Job& job) {
  Json made = object("", "TFJob", job, job.name);
  made["apiVersion"] = job.term("api_versions.tfjob");
  Json specs;
  for (const PodGroup& group : job.groups) {
    const char* name = group.role == Role::parameter_server ? "PS"
                       : group.role == Role::chief          ? "Chief"
                                                            : "Worker";
    specs[name] = replicas(job, group, group.count, "OnFailure");
  }
  made["spec"] = {
      {"runPolicy",
       {{"backoffLimit", job.plan->retry.backoff_limit}, {"cleanPodPolicy", "Running"}}},
      {"tfReplicaSpecs", specs}};
  return made;
}

Diagnostics what_cannot_be(const Job& job, const Places& places) {
  Diagnostics problems;
  const auto problem = [&](const char* path, std::string what, std::string hint) {
    problems.push_back({.at = places.find(path), .what = std::move(what), .hint = std::move(hint)});
  };
  const JobShape as = job.options->as;
  if (job.plan->jobs.size() > 1)
    problem("jobs", "a manifest is of one job, and the scenario has several",
            "export each from a scenario of its own");
  if (as == JobShape::pytorchjob && job.servers > 0)
    problem("workload.strategy", "a PyTorchJob has no parameter servers",
            "--as tfjob, jobset or job");
  if (job.plan->jobs.front().strategy.kind == StrategyKind::parameter_server && job.servers == 0 &&
      job.container == nullptr)
    problem(
        "workload.strategy.parameter_servers",
        "without a server the variables are on the chief's host, and pods of reckon-worker have "
        "none there",
        "parameter_servers: 1, and a pool {name: servers, role: parameter_server, ...}");
  if (as == JobShape::pytorchjob && job.groups.size() > 1)
    problem("cluster.pools",
            "a PyTorchJob's workers are all alike, and the chief has a pool of its own",
            "--as tfjob or job");
  const auto is_crowd = [](const PodGroup& g) { return g.role == Role::chief && g.count > 1; };
  if (as == JobShape::tfjob && std::ranges::any_of(job.groups, is_crowd))
    problem("cluster.pools",
            "a TFJob has one chief and one kind of worker, and the workers are in several pools",
            "--as job or jobset");
  if (as == JobShape::jobset && job.options->minor < kIndexedJob)
    problem(
        "",
        fmt::format("JobSet needs indexed jobs, which Kubernetes 1.{} lacks", job.options->minor),
        "--as job, or a newer --kubernetes-version");
  for (const PodGroup& group : job.groups)
    if (group.pool->accelerator && group.pool->accelerator->name == "TPU-v2" && !group.tpu_by_cores)
      problem("cluster.pools",
              fmt::format("from Kubernetes 1.{} on TPUs are nodes of GKE, and there are none with "
                          "TPU-v2",
                          kTpuNodes),
              fmt::format("--kubernetes-version 1.{} for a cluster where pods ask for their cores, "
                          "or a newer TPU",
                          kTpuNodes - 1));
  if (!job.options->bucket.empty() && job.plan->service.bucket_driver.empty())
    problem("cluster.service",
            fmt::format("a bucket cannot be mounted on {}", job.plan->service.called),
            "--claim NAME of a volume for checkpoints");
  return problems;
}

std::vector<Json> documents_of(const Job& job) {
  std::vector<Json> documents;
  if (job.options->make_namespace) {
    documents.push_back(object("v1", "Namespace", job, job.name_space));
    documents.back()["metadata"]["labels"].update(admission_labels(*job.options));
  }
  Json account = object("v1", "ServiceAccount", job, job.run);
  account["automountServiceAccountToken"] = false;
  documents.push_back(std::move(account));
  documents.push_back(config_map(job));
  if (!job.options->job_secret.empty() && needs_kubernetes_secret(*job.artifact))
    documents.push_back(secret(job));
  if (job.options->bucket.empty() && job.options->claim.empty()) documents.push_back(claim(job));
  if (job.options->as == JobShape::job) documents.push_back(service(job));
  documents.push_back(network_policy(job));
  switch (job.options->as) {
    case JobShape::job:
      add_jobs(documents, job);
      break;
    case JobShape::jobset:
      documents.push_back(job_set(job));
      break;
    case JobShape::pytorchjob:
      documents.push_back(pytorch_job(job));
      break;
    case JobShape::tfjob:
      documents.push_back(tf_job(job));
      break;
  }
  return documents;
}

}  // namespace
}  // namespace kubernetes

std::string kubernetes_name(std::string_view plan) { return kubernetes::dns_label(plan); }

std::string kubernetes_secret_name(std::string_view run) { return fmt::format("{}-secret", run); }

bool needs_kubernetes_secret(const RunArtifact& artifact) {
  const PlannedStrategy& s = artifact.plan.jobs.front().strategy;
  return !artifact.container && s.workers + s.parameter_servers > 1;
}

RunArtifact for_cluster(RunArtifact planned, const Catalog& catalog) {
  planned.file = "plan.yaml";  // beside it
  planned.owned = catalog.rules_of(planned.plan.provider).owned;
  for (const std::string_view cluster : {to_text(planned.plan.service.id), kubernetes::kAnyCluster})
    if (const ClusterNames* names = catalog.find_cluster_names(cluster))
      planned.names.push_back(*names);
  return planned;
}

Expected<std::string> kubernetes_manifests(const RunArtifact& artifact,
                                           const KubernetesExport& options, const Places& places) {
  using namespace kubernetes;
  const Plan& plan = artifact.plan;
  Job job{.artifact = &artifact,
          .plan = &plan,
          .names = artifact.names,
          .owned = artifact.owned,
          .options = &options};
  if (artifact.container) job.container = &*artifact.container;
  job.run = dns_label(plan.name);
  job.name_space = options.name_space.empty() ? job.run : options.name_space;
  job.name = fmt::format("{}-{}", job.run, options.attempt);
  job.groups = groups_of(job);
  for (const PodGroup& group : job.groups)
    (group.role == Role::parameter_server ? job.servers : job.workers) += group.count;
  // An indexed job's pods are alike; the chief that TensorFlow's servers want is not.
  const bool chief =
      job.groups.front().role == Role::chief || (job.container != nullptr && job.servers > 0);
  job.rank_by_rank = options.as == JobShape::job &&
                     (chief || options.minor < (job.servers > 0 && !options.watched ? kPodIndexLabel
                                                                                    : kIndexedJob));
  Diagnostics problems = what_cannot_be(job, places);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  std::string yaml;
  for (const Json& document : documents_of(job)) yaml += "---\n" + yaml_text(document);
  return yaml;
}

}  // namespace reckon
