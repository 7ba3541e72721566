#include "exchange/kubernetes/kubernetes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "exchange/kubernetes/confines.h"
#include "exchange/kubernetes/documents.h"
#include "exchange/yaml_text.h"
#include "sim/scenario/own_program.h"
#include "sim/scenario/resolve/one_job.h"

namespace reckon {
namespace kubernetes {
namespace {

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

/// A shape whose pods differ by their number alone.
bool has_equal_workers(JobShape as) {
  return as == JobShape::pytorchjob || as == JobShape::mpijob || as == JobShape::trainjob;
}

Diagnostics what_cannot_be(const Job& job, const Places& places) {
  Diagnostics problems;
  const auto problem = [&](const char* path, std::string what, std::string hint) {
    problems.push_back({.at = places.find(path), .what = std::move(what), .hint = std::move(hint)});
  };
  const auto& made = job.cluster->node_auto_provisioning;
  if (made && made->compute_class)
    problem("cluster.node_auto_provisioning.computeClass",
            "manifests with a selector of a ComputeClass are not written yet",
            "autoscaler: cluster_autoscaler");
  const JobShape as = job.options->as;
  if (has_equal_workers(as) && job.servers > 0)
    problem("workload.strategy", fmt::format("{} has no parameter servers", one_of(as)),
            "--as tfjob, jobset or job");
  if (job.plan->only_job().strategy.servers && job.servers == 0 && job.container == nullptr)
    problem(
        "workload.strategy.parameter_servers",
        "without a server the variables are on the chief's host, and pods of reckon-worker have "
        "none there",
        "parameter_servers: 1, and a pool {name: servers, role: parameter_server, ...}");
  if (has_equal_workers(as) && job.servers == 0 && job.groups.size() > 1)
    problem("cluster.pools",
            fmt::format("the workers of {} are all alike, and here they are in several pools",
                        one_of(as)),
            "--as tfjob or job");
  if (as == JobShape::mpijob && job.container == nullptr)
    problem("workload", "mpirun starts programs of yours, and the pods would be reckon-worker's",
            "--as jobset, or workload.container with a program in an image that has Open MPI");
  const auto is_crowd = [](const PodGroup& g) { return g.role == Role::chief && g.count > 1; };
  if (as == JobShape::tfjob && std::ranges::any_of(job.groups, is_crowd))
    problem("cluster.pools",
            "a TFJob has one chief and one kind of worker, and the workers are in several pools",
            "--as job or jobset");
  if ((as == JobShape::jobset || as == JobShape::trainjob) && job.options->minor < kIndexedJob)
    problem("",
            fmt::format("{} needs indexed jobs, which Kubernetes 1.{} lacks",
                        as == JobShape::jobset ? "JobSet" : "TrainJob", job.options->minor),
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
  if (!job.options->node_directory.empty() &&
      (job.container != nullptr || !job.plan->only_job().checkpoint.local))
    problem("workload.checkpoint",
            "--node-dir names a directory of the nodes, and the plan's pods save nothing there",
            "workload.checkpoint.local: {to: local_disk, every: 1min}, or no --node-dir");
  if (!job.options->bucket.empty() && job.cluster->service.bucket_driver.empty())
    problem("cluster.service",
            fmt::format("a bucket cannot be mounted on {}", job.cluster->service.called),
            "--claim NAME of a volume for checkpoints");
  return problems;
}

std::vector<Json> documents_of(const Job& job) {
  std::vector<Json> documents;
  if (job.options->make_namespace) {
    documents.push_back(object("v1", "Namespace", job, job.name_space));
    documents.back()["metadata"]["labels"].update(admission_labels(*job.options));
  }
  const bool makes_claim = job.options->bucket.empty() && job.options->claim.empty();
  if (job.options->as == JobShape::launcher) {
    if (makes_claim) documents.push_back(claim(job));  // its pod has it before it makes others
    std::ranges::move(launcher_documents(job), std::back_inserter(documents));
    return documents;
  }
  Json account = object("v1", "ServiceAccount", job, job.run);
  account["automountServiceAccountToken"] = false;
  documents.push_back(std::move(account));
  documents.push_back(config_map(job));
  if (!job.options->job_secret.empty() && needs_kubernetes_secret(*job.artifact))
    documents.push_back(secret(job));
  if (makes_claim) documents.push_back(claim(job));
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
    case JobShape::mpijob:
      documents.push_back(mpi_job(job));
      break;
    case JobShape::trainjob:
      documents.push_back(training_runtime(job));
      documents.push_back(train_job(job));
      break;
    case JobShape::launcher:
      break;  // before
  }
  return documents;
}

}  // namespace
}  // namespace kubernetes

std::string kubernetes_name(std::string_view plan) { return kubernetes::dns_label(plan); }

std::string kubernetes_secret_name(std::string_view run) { return fmt::format("{}-secret", run); }

bool needs_kubernetes_secret(const RunArtifact& artifact) {
  const auto has_several_processes = [](const PlannedWorkload& job) {
    return job.strategy.workers + job.strategy.server_count() > 1;
  };
  return !artifact.container && std::ranges::any_of(artifact.plan.jobs, has_several_processes);
}

RunArtifact for_cluster(RunArtifact planned, const Catalog& catalog) {
  planned.file = "plan.yaml";  // beside it
  planned.owned = catalog.rules_of(planned.plan.provider).owned;
  if (!planned.container) run_by_own_program(planned.plan);
  for (const std::string_view cluster : {to_text(planned.plan.service.id), kubernetes::kAnyCluster})
    if (const ClusterNames* names = catalog.find_cluster_names(cluster))
      planned.names.push_back(*names);
  return planned;
}

Expected<std::string> kubernetes_manifests(const RunArtifact& artifact,
                                           const KubernetesExport& options, const Places& places) {
  using namespace kubernetes;
  const Plan& plan = artifact.plan;
  if (auto several = why_not_one_job(plan, places, "a manifest"))
    return tl::unexpected(Diagnostics{std::move(*several)});
  Job job{.artifact = &artifact,
          .plan = &plan,
          .cluster = &plan,
          .names = artifact.names,
          .owned = artifact.owned,
          .options = &options};
  if (artifact.container) job.container = &*artifact.container;
  job.run = dns_label(plan.name);
  job.name_space = options.name_space.empty() ? job.run : options.name_space;
  job.name = fmt::format("{}-{}", job.run, options.attempt);
  job.groups = groups_of(job);
  for (const PodGroup& group : job.groups)
    if (!group.stands_by)
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
