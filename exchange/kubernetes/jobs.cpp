#include <fmt/format.h>

#include <utility>

#include "exchange/kubernetes/documents.h"
#include "exchange/literal_word.h"

// The job itself in each JobShape.
namespace reckon::kubernetes {
namespace {

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
  // Who watches standing pods counts what they end with, and ends the job.
  constexpr int kNoLimit = 1'000'000;
  spec["backoffLimit"] = job.options->standing  ? kNoLimit
                         : job.options->watched ? 0
                                                : job.cluster->retry.backoff_limit;
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

}  // namespace

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
  spec["failurePolicy"] = {{"maxRestarts", job.cluster->retry.backoff_limit}};
  Json workers = Json::array();
  workers.push_back("worker");
  // Servers run until the workers are done.
  spec["successPolicy"] = {{"operator", "All"}, {"targetReplicatedJobs", workers}};
  spec["replicatedJobs"] = parts;
  set["spec"] = spec;
  return set;
}

namespace {

Json replicas(const Job& job, const PodGroup& group, int count, const char* restart) {
  Json pod = pod_template(job, group, std::nullopt, false);
  pod["spec"].erase("restartPolicy");  // the operator's is above
  return {{"replicas", count}, {"restartPolicy", restart}, {"template", pod}};
}

}  // namespace

Json pytorch_job(const Job& job) {
  Json made = object("", "PyTorchJob", job, job.name);
  made["apiVersion"] = job.term("api_versions.pytorchjob");
  const PodGroup& group = job.groups.front();
  Json specs;
  specs["Master"] = replicas(job, group, 1, "OnFailure");
  if (group.count > 1) specs["Worker"] = replicas(job, group, group.count - 1, "OnFailure");
  made["spec"] = {
      {"runPolicy",
       {{"backoffLimit", job.cluster->retry.backoff_limit}, {"cleanPodPolicy", "None"}}},
      {"pytorchReplicaSpecs", specs}};
  return made;
}

namespace {

/// What the launcher runs. The variables are those of the pods, which ssh does not pass on.
Json mpi_command(const Job& job, const Json& container) {
  constexpr int kPort = 29500;  // torchrun's own
  const int nodes = job.workers;
  std::string script = fmt::format(
      "read -r MASTER_ADDR _ < /etc/mpi/hostfile; export MASTER_ADDR MASTER_PORT={} WORLD_SIZE={}; "
      // A launcher of several ranks has all cores, not the one that Open MPI binds a process to.
      "exec mpirun -n {} --map-by ppr:1:node --bind-to none -x MASTER_ADDR -x MASTER_PORT -x "
      "WORLD_SIZE",
      kPort, nodes, nodes);
  for (const Json& variable : container.value("env", Json::array()))
    script += " -x " + variable.at("name").get<std::string>();
  script += " bash -c 'export RANK=\"$OMPI_COMM_WORLD_RANK\"; exec \"$@\"' program \"$@\"";
  Json command = Json::array({"bash", "-c", literal_word(script), "program"});
  for (const Json& word : container.value("command", Json::array())) command.push_back(word);
  return command;
}

}  // namespace

Json mpi_job(const Job& job) {
  constexpr int kMpiUser = 1000;
  const PodGroup& group = job.groups.front();
  Json worker = pod_template(job, group, std::nullopt, false);
  worker["spec"].erase("restartPolicy");  // the operator's
  for (const char* id : {"runAsUser", "runAsGroup", "fsGroup"})
    worker["spec"]["securityContext"][id] = kMpiUser;
  Json& of_worker = worker["spec"]["containers"][0];
  of_worker["securityContext"]["readOnlyRootFilesystem"] = false;  // sshd writes beside its keys
  Json launcher = worker;
  Json& of_launcher = launcher["spec"]["containers"][0];
  of_launcher["command"] = mpi_command(job, of_worker);
  of_launcher["resources"] = {{"requests", {{"cpu", "500m"}, {"memory", "512Mi"}}},
                              {"limits", {{"memory", "1Gi"}}}};
  for (const char* place : {"nodeSelector", "affinity", "tolerations"})
    launcher["spec"].erase(place);
  of_worker["command"] = Json::array({"/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"});
  Json made = object("", "MPIJob", job, job.name);
  made["apiVersion"] = job.term("api_versions.mpijob");
  Json specs;
  specs["Launcher"] = {{"replicas", 1}, {"restartPolicy", "OnFailure"}, {"template", launcher}};
  specs["Worker"] = {
      {"replicas", group.count}, {"restartPolicy", "OnFailure"}, {"template", worker}};
  made["spec"] = {
      {"slotsPerWorker", 1},
      {"mpiImplementation", "OpenMPI"},
      {"sshAuthMountPath", "/home/mpiuser/.ssh"},
      {"runPolicy",
       {{"backoffLimit", job.cluster->retry.backoff_limit}, {"cleanPodPolicy", "Running"}}},
      {"mpiReplicaSpecs", specs}};
  return made;
}

Json training_runtime(const Job& job) {
  const PodGroup& group = job.groups.front();
  Json runtime = object("", "TrainingRuntime", job, job.name);
  runtime["apiVersion"] = job.term("api_versions.trainjob");
  Json node = {
      {"name", kTrainerNode},
      {"template",
       {{"metadata", {{"labels", {{"trainer.kubeflow.org/trainjob-ancestor-step", "trainer"}}}}},
        {"spec", job_spec(job, group, std::nullopt)}}}};
  Json jobs;
  jobs["network"] = {{"enableDNSHostnames", true},
                     {"subdomain", job.service()},
                     {"publishNotReadyAddresses", true}};
  jobs["failurePolicy"] = {{"maxRestarts", job.cluster->retry.backoff_limit}};
  jobs["replicatedJobs"] = Json::array({node});
  runtime["spec"] = {{"mlPolicy", {{"numNodes", group.count}}}, {"template", {{"spec", jobs}}}};
  return runtime;
}

Json train_job(const Job& job) {
  Json made = object("", "TrainJob", job, job.name);
  made["apiVersion"] = job.term("api_versions.trainjob");
  made["spec"] = {
      {"runtimeRef",
       {{"apiGroup", "trainer.kubeflow.org"}, {"kind", "TrainingRuntime"}, {"name", job.name}}},
      {"trainer", {{"numNodes", job.groups.front().count}}}};
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
       {{"backoffLimit", job.cluster->retry.backoff_limit}, {"cleanPodPolicy", "Running"}}},
      {"tfReplicaSpecs", specs}};
  return made;
}

}  // namespace reckon::kubernetes
