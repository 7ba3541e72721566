#include "exchange/kubernetes/pods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/kubernetes/confines.h"
#include "exchange/literal_word.h"
#include "sim/base/text/printable.h"
#include "sim/scenario/resolve/job_wiring.h"

namespace reckon {

namespace kubernetes {
namespace {

// The port of TensorFlow's examples; ours listens there too.
constexpr int kPort = 2222;
// Of the nobody of distroless images: any number but 0 does.
constexpr int kUser = 65532;

Json field(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}
Json variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

constexpr const char* kSecretDirectory = "/secret";
constexpr const char* kNodeDirectory = "/node";
constexpr const char* kOrdersDirectory = "/orders";  // of kOrdersFile

/// Besides the storage; a program of one's own does what it does.
bool has_node_checkpoints(const Job& job) {
  return job.container == nullptr && job.plan->only_job().checkpoint.local.has_value();
}
bool uses_node_directory(const Job& job) {
  return has_node_checkpoints(job) && !job.options->node_directory.empty();
}

/// The kubelet reads the Secret when it starts the container: the manifests have no value.
void add_store_keys(Json& environment, const Job& job, const PodGroup& group) {
  if (job.options->store_secret.empty() || group.role == Role::parameter_server) return;
  for (const auto& [name, needed] : kStoreVariables) {
    Json key = {{"name", job.options->store_secret}, {"key", name}};
    if (!needed) key["optional"] = true;
    environment.push_back({{"name", name}, {"valueFrom", {{"secretKeyRef", std::move(key)}}}});
  }
}
/// Ranks on one's own meet nobody; a program of one's own does not know the secret.
bool has_secret(const Job& job) {
  return job.container == nullptr && job.workers + job.servers > 1;
}

/// The pod's number in its group: written down, or known to the pod when it starts.
void add_index(Json& environment, const Job& job, const PodGroup& group, std::optional<int> rank) {
  if (rank) {
    environment.push_back(variable("RECKON_INDEX", std::to_string(*rank - group.first_rank)));
    return;
  }
  environment.push_back(field(
      "RECKON_INDEX", group.role == Role::parameter_server && !job.options->watched
                          ? "metadata.labels['apps.kubernetes.io/pod-index']"
                          : "metadata.annotations['batch.kubernetes.io/job-completion-index']"));
}

bool has_chief(const Job& job) { return job.rank_by_rank && job.servers > 0; }

JobWiring wiring_of(const Job& job, const PodGroup& group) {
  JobWiring wiring{.workers = job.workers,
                   .servers = job.servers,
                   .chief = has_chief(job),
                   .devices = group.devices,
                   .addresses = {}};
  for (int rank = 0; rank < job.workers + job.servers; ++rank)
    wiring.addresses.push_back(fmt::format("{}:{}", host_of(job, rank), kPort));
  return wiring;
}

/// The number of the task is left to the pod, where it is not known here.
std::string task_of(const PodGroup& group, std::optional<int> rank, const JobWiring& wiring) {
  const int chiefs = wiring.chief ? 1 : 0;
  std::string type = group.role == Role::parameter_server ? "ps" : "worker";
  std::string index = "$(RECKON_INDEX)";
  if (rank && group.role != Role::parameter_server) {
    if (*rank < chiefs) type = "chief";
    index = std::to_string(*rank < chiefs ? 0 : *rank - chiefs);
  }
  return tf_config(wiring, type, index);
}

void add(Json& environment, const Variables& variables) {
  for (const auto& [name, value] : variables) environment.push_back(variable(name, value));
}

/// What a program that is not ours is told whatever it is, unless the scenario says otherwise: it
/// runs as nobody on a root that it may not write to, and its lines must not wait in a buffer.
void add_surroundings(Json& environment, const Job& job) {
  environment.push_back(variable("RECKON_JOB_DIR", job_directory(job)));
  environment.push_back(variable("HOME", "/tmp"));
  environment.push_back(variable("USER", "reckon"));
  environment.push_back(variable("PYTHONUNBUFFERED", "1"));
}

/// How the pod finds the others.
void add_wiring(Json& environment, const Job& job, const PodGroup& group, std::optional<int> rank) {
  if (job.options->watched) {
    environment.push_back(variable("RECKON_ATTEMPT", std::to_string(job.options->attempt)));
    environment.push_back(variable("RECKON_RUN_STARTED", job.options->run_started));
    if (job.options->standing) environment.push_back(variable("RECKON_ORDERS_FILE", kOrdersFile));
    if (group.stands_by) environment.push_back(variable("RECKON_STANDS_BY", "1"));
  }
  add_index(environment, job, group, rank);
  if (job.workers + job.servers < 2) return;
  const JobWiring wiring = wiring_of(job, group);
  if (job.servers > 0 || job.container != nullptr)
    environment.push_back(variable("TF_CONFIG", task_of(group, rank, wiring)));
  if (job.servers > 0) return;
  const std::string number = group.stands_by ? "0"
                             : rank          ? std::to_string(*rank)
                                             : "$(RECKON_INDEX)";
  add(environment, rank_variables(wiring, number));
  if (job.container != nullptr) add(environment, launcher_variables(wiring, number));
}

/// The user's own come last, and so may refer to all of ours: Kubernetes puts "$(NAME)" in of what
/// stands above it. One that is ours as well is the user's, in our place: what stands below it may
/// refer to it.
Json environment_of(const Job& job, const PodGroup& group, std::optional<int> rank, bool wires) {
  Json environment = Json::array();
  if (job.container != nullptr) add_surroundings(environment, job);
  if (wires) add_wiring(environment, job, group, rank);
  add_store_keys(environment, job, group);
  if (job.container == nullptr) return environment;
  for (const auto& given : job.container->env) {
    const auto same = [&](const Json& ours) { return ours.at("name") == given.first; };
    const auto ours = std::ranges::find_if(environment, same);
    if (ours != environment.end())
      *ours = variable(given.first, given.second);
    else
      environment.push_back(variable(given.first, given.second));
  }
  return environment;
}

Json worker_container(const Job& job, const PodGroup& group, std::optional<int> rank, bool wires) {
  Json c;
  const JobShape as = job.options->as;
  c["name"] = as == JobShape::tfjob        ? "tensorflow"
              : as == JobShape::pytorchjob ? "pytorch"
              : as == JobShape::trainjob   ? kTrainerNode
                                           : "main";
  c["image"] = job.container != nullptr ? job.container->image : job.options->image;
  if (job.container != nullptr) {
    if (!job.container->command.empty()) c["command"] = program_words(*job.container);
  } else {
    c["command"] = Json::array({"reckon-worker"});
    Json arguments = Json::array({kMountedPlan});
    for (const std::string& word : job.options->arguments) arguments.push_back(literal_word(word));
    arguments.push_back("--out");
    arguments.push_back(job_directory(job));
    if (uses_node_directory(job)) {
      arguments.push_back("--node-dir");
      arguments.push_back(fmt::format("{}/{}", kNodeDirectory, job.run));
    } else if (has_node_checkpoints(job)) {
      arguments.push_back("--one-tier");
    }
    arguments.push_back("--attempt");
    arguments.push_back(std::to_string(job.options->attempt));
    if (has_secret(job)) {
      arguments.emplace_back("--secret-file");
      arguments.push_back(fmt::format("{}/{}", kSecretDirectory, kKubernetesSecretKey));
    }
    if (job.options->watched) arguments.emplace_back("--log-records");
    c["args"] = arguments;
  }
  if (Json environment = environment_of(job, group, rank, wires); !environment.empty())
    c["env"] = std::move(environment);
  const char* port = as == JobShape::tfjob        ? "tfjob-port"
                     : as == JobShape::pytorchjob ? "pytorchjob-port"
                                                  : "reckon";
  c["ports"] = Json::array({{{"name", port}, {"containerPort", kPort}}});
  if (const auto page = metrics_page(job); page && page->port != kPort)
    c["ports"].push_back({{"name", "metrics"}, {"containerPort", page->port}});
  c["resources"] = resources_of(group);
  c["securityContext"] = container_security();
  c["volumeMounts"] = Json::array({{{"name", "plan"}, {"mountPath", "/plan"}, {"readOnly", true}},
                                   {{"name", "checkpoints"}, {"mountPath", kCheckpoints}},
                                   {{"name", "scratch"}, {"mountPath", "/tmp"}},
                                   {{"name", "shared-memory"}, {"mountPath", "/dev/shm"}}});
  if (has_secret(job))
    c["volumeMounts"].push_back(
        {{"name", "secret"}, {"mountPath", kSecretDirectory}, {"readOnly", true}});
  if (job.options->standing)
    c["volumeMounts"].push_back(
        {{"name", "orders"}, {"mountPath", kOrdersDirectory}, {"readOnly", true}});
  if (uses_node_directory(job))
    c["volumeMounts"].push_back({{"name", "node"}, {"mountPath", kNodeDirectory}});
  return c;
}

/// Of the pod's memory, as tmpfs takes of a machine's: half. Without a limit of memory (TPUs by
/// their cores) the node's is all there is.
Json shared_memory(const PodGroup& group) {
  const Json limits = resources_of(group).at("limits");
  Json memory = {{"medium", "Memory"}};
  if (const auto limit = limits.find("memory"); limit != limits.end())
    memory["sizeLimit"] = fmt::format("{}Mi", std::stoll(limit->get<std::string>()) / 2);
  return {{"name", "shared-memory"}, {"emptyDir", memory}};
}

Json volumes_of(const Job& job, const PodGroup& group) {
  Json all = Json::array({{{"name", "plan"}, {"configMap", {{"name", job.name + "-plan"}}}},
                          checkpoints_volume(job),
                          scratch_volume(job.container != nullptr, group.per_node),
                          shared_memory(group)});
  constexpr int kOwnerReads = 0400;  // and the pod's fsGroup, which Kubernetes adds
  if (has_secret(job))
    all.push_back(
        {{"name", "secret"},
         {"secret",
          {{"secretName", kubernetes_secret_name(job.run)}, {"defaultMode", kOwnerReads}}}});
  if (job.options->standing) {
    const std::string path = fmt::format("metadata.annotations['{}']", kPodStartAnnotation);
    all.push_back(
        {{"name", "orders"},
         {"downwardAPI",
          {{"items", Json::array({{{"path", "start"}, {"fieldRef", {{"fieldPath", path}}}}})}}}});
  }
  // It outlives the pods: those of the next attempt find on a node what was saved there.
  if (uses_node_directory(job))
    all.push_back({{"name", "node"},
                   {"hostPath", {{"path", job.options->node_directory}, {"type", "Directory"}}}});
  return all;
}

std::string term_of(std::span<const ClusterNames> all, std::string_view cluster,
                    std::string_view key) {
  const auto names = std::ranges::find(all, cluster, &ClusterNames::name);
  const ClusterNames::Name* name = names != all.end() ? names->find(key) : nullptr;
  return name != nullptr ? name->text : "";
}

}  // namespace

std::string Job::own_term(std::string_view key) const {
  return term_of(names, to_text(cluster->service.id), key);
}

std::string Job::term(std::string_view key) const {
  if (std::string own = own_term(key); !own.empty()) return own;
  return term_of(names, kAnyCluster, key);
}

Json checkpoints_volume(const Job& job) {
  Json checkpoints = {{"name", "checkpoints"}};
  if (job.options->bucket.empty()) {
    checkpoints["persistentVolumeClaim"] = {{"claimName", job.claim()}};
  } else {
    checkpoints["csi"] = {{"driver", job.cluster->service.bucket_driver},
                          {"volumeAttributes", {{"bucketName", job.options->bucket}}}};
  }
  return checkpoints;
}

std::string job_directory(const Job& job) {
  return std::string(kCheckpoints) + '/' + literal_word(as_file_name(job.plan->name));
}

std::string Job::claim() const {
  return options->claim.empty() ? run + "-checkpoints" : options->claim;
}

std::optional<PrometheusPage> metrics_page(const Job& job) {
  if (job.container == nullptr) return std::nullopt;
  std::vector<MetricsMistake> mistakes;  // found when the plan was made
  return container_metrics(*job.container, mistakes).prometheus;
}

std::string group_name(const Job& job, const PodGroup& group) {
  return fmt::format("{}-{}", job.name,
                     group.stands_by                        ? "spare"
                     : group.role == Role::parameter_server ? "ps"
                     : group.role == Role::chief            ? "chief"
                                                            : "worker");
}

std::string host_of(const Job& job, int rank) {
  for (const PodGroup& group : job.groups)
    if (rank >= group.first_rank && rank < group.first_rank + group.count)
      return job.options->as == JobShape::trainjob
                 ? fmt::format("{}-{}-0-{}.{}", job.name, kTrainerNode, rank, job.service())
                 : fmt::format("{}-{}{}.{}", group_name(job, group),
                               job.options->as == JobShape::jobset ? "0-" : "",
                               rank - group.first_rank, job.service());
  return "";
}

Json labels_of(const Job& job) {
  return {{"app.kubernetes.io/name", "reckon"},
          {"app.kubernetes.io/instance", job.run},
          {"app.kubernetes.io/managed-by", "reckon"},
          {"reckon/attempt", std::to_string(job.options->attempt)}};
}

Json pod_security() {
  return {{"runAsNonRoot", true},
          {"runAsUser", kUser},
          {"runAsGroup", kUser},
          {"fsGroup", kUser},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

Json container_security() {
  return {{"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}}};
}

Json pod_template(const Job& job, const PodGroup& group, std::optional<int> rank, bool wires) {
  Json metadata;
  metadata["labels"] = labels_of(job);
  metadata["labels"]["app.kubernetes.io/component"] =
      group.role == Role::parameter_server ? "parameter-server" : "worker";
  if (group.stands_by) metadata["labels"]["reckon/stands-by"] = "true";
  Json annotations = Json::object();
  // The autoscaler must not move a training job to empty a node.
  const auto& made = job.cluster->node_auto_provisioning;
  annotations[job.term("annotations.safe_to_evict")] =
      made && made->safe_to_evict ? "true" : "false";
  if (job.cluster->karpenter && job.cluster->karpenter->do_not_disrupt)
    annotations[job.term("annotations.do_not_disrupt")] = "true";
  if (!job.options->bucket.empty()) annotations[job.cluster->service.bucket_annotation] = "true";
  // Of the pods that the group has: a pod's own rank is that behind it by its index.
  if (job.options->watched)
    annotations["reckon/first-rank"] = std::to_string(rank.value_or(group.first_rank));
  metadata["annotations"] = annotations;

  Json spec;
  if (rank)
    spec["hostname"] = fmt::format("{}-{}", group_name(job, group), *rank - group.first_rank);
  if (wires && job.options->as == JobShape::job) spec["subdomain"] = job.service();
  spec["serviceAccountName"] = job.run;
  if (!job.options->pull_secret.empty())
    spec["imagePullSecrets"] = Json::array({{{"name", job.options->pull_secret}}});
  spec["automountServiceAccountToken"] = false;
  spec["restartPolicy"] = group.role == Role::parameter_server && !rank && wires &&
                                  !job.options->watched && job.options->as == JobShape::job
                              ? "Always"
                              : "Never";
  spec["terminationGracePeriodSeconds"] = grace_seconds(job, group);
  PodPlace place = place_of(job, group);
  if (!place.selector.empty()) spec["nodeSelector"] = std::move(place.selector);
  if (!place.affinity.empty()) spec["affinity"] = std::move(place.affinity);
  if (!place.tolerations.empty()) spec["tolerations"] = std::move(place.tolerations);
  spec["securityContext"] = pod_security();
  spec["containers"] = Json::array({worker_container(job, group, rank, wires)});
  spec["volumes"] = volumes_of(job, group);
  return {{"metadata", metadata}, {"spec", spec}};
}

}  // namespace kubernetes
}  // namespace reckon
