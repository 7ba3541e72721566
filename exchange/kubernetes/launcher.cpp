#include <fmt/format.h>

#include "exchange/kubernetes/documents.h"
#include "exchange/literal_word.h"
#include "sim/base/text/base64.h"

// `reckon run` as a Job of the cluster: it makes the ranks' pods, and watches them there.
namespace reckon::kubernetes {
namespace {

constexpr const char* kScratch = "/tmp";

Json rule(const char* group, std::vector<std::string> resources, std::vector<std::string> verbs) {
  return {{"apiGroups", Json::array({group})},
          {"resources", std::move(resources)},
          {"verbs", std::move(verbs)}};
}

/// What executor/kubernetes/preflight.cpp asks for, and `kubectl apply` besides.
Json rules() {
  const std::vector<std::string> all{"get", "list", "watch", "create", "update", "patch", "delete"};
  Json rules = Json::array();
  rules.push_back(rule("batch", {"jobs"}, all));
  rules.push_back(rule(
      "", {"configmaps", "services", "serviceaccounts", "secrets", "persistentvolumeclaims"}, all));
  rules.push_back(rule("", {"pods"}, {"get", "list", "watch", "patch", "delete"}));
  rules.push_back(rule("", {"pods/log", "pods/proxy"}, {"get"}));
  rules.push_back(rule("", {"namespaces", "resourcequotas", "events"}, {"get", "list"}));
  rules.push_back(rule("networking.k8s.io", {"networkpolicies"}, all));
  rules.push_back(rule("coordination.k8s.io", {"leases"}, all));
  return rules;
}

/// Beside the job's checkpoints, as they are evidence when its pod is gone. Not in a bucket, where
/// each line that is appended uploads the whole file anew [Cloud Storage FUSE, "Limitations and
/// differences from POSIX file systems"].
bool keeps_records(const Job& job) { return job.options->bucket.empty(); }
std::string records_directory(const Job& job) { return job_directory(job) + "/launcher"; }
constexpr const char* kLauncherId = "LAUNCHER";

/// A directory of each launcher's Job: its next pod goes on in it.
std::string run_directory(const Job& job) {
  return keeps_records(job) ? fmt::format("{}/$({})", records_directory(job), kLauncherId)
                            : std::string(kScratch) + "/run";
}

Json environment(const Job& job) {
  Json all = Json::array({{{"name", "HOME"}, {"value", kScratch}}});
  if (!keeps_records(job)) {
    all.push_back({{"name", "RECKON_HISTORY"}, {"value", "off"}});
    return all;
  }
  all.push_back({{"name", "XDG_DATA_HOME"}, {"value", records_directory(job)}});
  const Json id = {{"fieldPath", "metadata.labels['controller-uid']"}};
  all.push_back({{"name", kLauncherId}, {"valueFrom", {{"fieldRef", id}}}});
  return all;
}

/// The words behind `reckon`.
Json words(const Job& job) {
  const KubernetesExport& o = *job.options;
  Json words = Json::array({"run", kMountedPlan, "--on", "kubernetes", "--unattended",
                            "--namespace", job.name_space, "--out", run_directory(job)});
  const auto add = [&](const char* option, const std::string& value) {
    if (value.empty()) return;
    words.push_back(option);
    words.push_back(literal_word(value));
  };
  if (job.container == nullptr) add("--image", o.image);
  add("--bucket", o.bucket);
  add("--claim", o.claim);
  add("--storage-class", o.storage_class);
  add("--pull-secret", o.pull_secret);
  add("--store-secret", o.store_secret);
  add("--node-dir", o.node_directory);
  return words;
}

/// What it may not mend by itself ends it: the answer is no, the input is wrong, somebody stopped
/// the run, its budget is spent (1, 2, 75 and 4: docs/commands/run.md). What comes with its node
/// does not count.
Json launcher_failures() {
  Json failed = {{"action", "FailJob"},
                 {"onExitCodes",
                  {{"containerName", "launcher"},
                   {"operator", "In"},
                   {"values", std::vector<int>{1, 2, 4, 75}}}}};
  Json conditions = Json::array({{{"type", "DisruptionTarget"}, {"status", "True"}}});
  Json moved = {{"action", "Ignore"}, {"onPodConditions", std::move(conditions)}};
  return {{"rules", Json::array({std::move(failed), std::move(moved)})}};
}

Json launcher_pod(const Job& job, const std::string& name) {
  Json container = {
      {"name", "launcher"},
      {"image", job.options->image},
      {"command", Json::array({"reckon"})},
      {"args", words(job)},
      {"env", environment(job)},
      {"resources",
       {{"requests", {{"cpu", "500m"}, {"memory", "512Mi"}}}, {"limits", {{"memory", "2Gi"}}}}},
      {"securityContext", container_security()}};
  container["volumeMounts"] =
      Json::array({{{"name", "plan"}, {"mountPath", kMountedFiles}, {"readOnly", true}},
                   {{"name", "scratch"}, {"mountPath", kScratch}}});
  if (keeps_records(job))
    container["volumeMounts"].push_back({{"name", "checkpoints"}, {"mountPath", kCheckpoints}});
  Json spec;
  spec["serviceAccountName"] = name;
  if (!job.options->pull_secret.empty())
    spec["imagePullSecrets"] = Json::array({{{"name", job.options->pull_secret}}});
  spec["restartPolicy"] = "Never";
  // It goes at once: the run stays, and the next one takes it up.
  spec["terminationGracePeriodSeconds"] = 1;
  spec["securityContext"] = pod_security();
  spec["containers"] = Json::array({std::move(container)});
  spec["volumes"] = Json::array({{{"name", "plan"}, {"configMap", {{"name", name}}}},
                                 {{"name", "scratch"}, {"emptyDir", {{"sizeLimit", "1Gi"}}}}});
  if (keeps_records(job)) spec["volumes"].push_back(checkpoints_volume(job));
  return spec;
}

}  // namespace

std::vector<Json> launcher_documents(const Job& job) {
  const std::string name = job.run + "-launcher";
  // Not the labels of the run's own objects: those are its ranks', and go with it.
  const Json labels = {{"app.kubernetes.io/name", "reckon-launcher"},
                       {"app.kubernetes.io/instance", name}};
  const auto made = [&](const char* version, const char* kind) {
    return Json{{"apiVersion", version},
                {"kind", kind},
                {"metadata", {{"name", name}, {"namespace", job.name_space}, {"labels", labels}}}};
  };
  std::vector<Json> documents;
  documents.push_back(made("v1", "ServiceAccount"));
  Json role = made("rbac.authorization.k8s.io/v1", "Role");
  role["rules"] = rules();
  documents.push_back(std::move(role));
  Json binding = made("rbac.authorization.k8s.io/v1", "RoleBinding");
  binding["roleRef"] = {
      {"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", name}};
  binding["subjects"] =
      Json::array({{{"kind", "ServiceAccount"}, {"name", name}, {"namespace", job.name_space}}});
  documents.push_back(std::move(binding));
  Json map = made("v1", "ConfigMap");
  map["data"] = {{"plan.yaml", job.artifact->scenario}};
  map["binaryData"] = {{kPlanKey, to_base64(write_artifact(*job.artifact))}};
  documents.push_back(std::move(map));
  Json launcher = made("batch/v1", "Job");
  Json spec = {{"backoffLimit", 6}};
  if (job.options->minor >= kPodFailurePolicy) spec["podFailurePolicy"] = launcher_failures();
  spec["template"] = {{"metadata", {{"labels", labels}}}, {"spec", launcher_pod(job, name)}};
  launcher["spec"] = std::move(spec);
  documents.push_back(std::move(launcher));
  return documents;
}

}  // namespace reckon::kubernetes
