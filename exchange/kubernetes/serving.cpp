#include "exchange/kubernetes/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/kubernetes/confines.h"
#include "exchange/kubernetes/pods.h"
#include "exchange/yaml_text.h"
#include "sim/base/check.h"

namespace reckon {
namespace kubernetes {
namespace {

// TensorFlow Serving's own: gRPC and REST.
constexpr int kGrpcPort = 8500, kRestPort = 8501;
constexpr int kStableAutoscaling = 23;  // autoscaling/v2; before it v2beta2
constexpr std::string_view kTensorFlowServing = "tensorflow/serving:2.16.1";
constexpr int kLinger = 10;  // seconds, for whoever balances load to hear that a pod goes
constexpr std::string_view kModels = "/models";

struct Service {
  const ServingPlan* plan = nullptr;
  ServerKind kind = ServerKind::reckon;
  Job job;  // terms, labels and place of the replicas
  PodGroup group;
  std::string name, model;

  bool of_tensorflow() const { return kind == ServerKind::tensorflow_serving; }
  Json labels() const {
    return {{"app.kubernetes.io/name", "reckon-serving"},
            {"app.kubernetes.io/instance", name},
            {"app.kubernetes.io/managed-by", "reckon"}};
  }
  Json selector() const {
    return {{"app.kubernetes.io/name", "reckon-serving"}, {"app.kubernetes.io/instance", name}};
  }
};

Json object(const char* version, const char* kind, const Service& s, const std::string& name) {
  Json metadata = {{"name", name}};
  const std::string_view what = kind;
  if (what != "Namespace" && what != "PriorityClass") metadata["namespace"] = s.job.name_space;
  metadata["labels"] = s.labels();
  return {{"apiVersion", version}, {"kind", kind}, {"metadata", metadata}};
}

std::string claim_of(const Service& s) {
  return s.job.options->claim.empty() ? s.name + "-models" : s.job.options->claim;
}

Json claim(const Service& s) {
  Json c = object("v1", "PersistentVolumeClaim", s, claim_of(s));
  Json spec;
  spec["accessModes"] = Json::array({"ReadWriteMany"});
  if (!s.job.options->storage_class.empty())
    spec["storageClassName"] = s.job.options->storage_class;
  spec["resources"] = {{"requests", {{"storage", "10Gi"}}}};
  c["spec"] = spec;
  return c;
}

Json port(const char* name, int number) { return {{"name", name}, {"containerPort", number}}; }

std::string microseconds(Seconds t) { return std::to_string(std::llround(t.count() * 1e6)); }

/// Batching as it was simulated [TensorFlow Serving, "Batching Configuration"].
Json batching_file(const Service& s) {
  Json map = object("v1", "ConfigMap", s, s.name + "-batching");
  map["data"] = {
      {"batching.txt",
       fmt::format("max_batch_size {{ value: {} }}\nbatch_timeout_micros {{ value: {} }}\n"
                   "max_enqueued_batches {{ value: {} }}\nnum_batch_threads {{ value: 1 }}\n",
                   s.plan->batch_max, microseconds(s.plan->batch_wait),
                   std::max(1, s.plan->queue_limit / s.plan->batch_max))}};
  return map;
}

Json arguments_of(const Service& s) {
  const std::string path = fmt::format("{}/{}", kModels, s.model);
  Json a = Json::array();
  if (!s.of_tensorflow()) {
    for (const std::string& word :
         {std::string("serve"), path, std::string("--name"), s.model, std::string("--listen"),
          fmt::format("0.0.0.0:{}", kRestPort),  // probes and the Service ask the pod's address
          std::string("--batch-max"), std::to_string(s.plan->batch_max),
          std::string("--batch-wait"), microseconds(s.plan->batch_wait) + "us",
          std::string("--queue-limit"), std::to_string(s.plan->queue_limit),
          std::string("--linger"), fmt::format("{}s", kLinger)})
      a.push_back(word);
    return a;
  }
  a.push_back(fmt::format("--port={}", kGrpcPort));
  a.push_back(fmt::format("--rest_api_port={}", kRestPort));
  a.push_back("--model_name=" + s.model);
  a.push_back("--model_base_path=" + path);
  if (s.plan->batch_max > 1) {
    a.push_back("--enable_batching=true");
    a.push_back("--batching_parameters_file=/batching/batching.txt");
  }
  return a;
}

/// Without a version our server is alive and not ready: a claim may be empty until the first
/// training ends.
enum class Probe { alive, ready };

Json probe(const Service& s, Probe what, int period, int failures) {
  const std::string path = s.of_tensorflow()      ? "/v1/models/" + s.model
                           : what == Probe::ready ? "/healthz"
                                                  : "/livez";
  return {{"httpGet", {{"path", path}, {"port", "http"}}},
          {"periodSeconds", period},
          {"timeoutSeconds", 5},
          {"failureThreshold", failures}};
}

Json serving_container(const Service& s, const PodPlace& place) {
  Json c = {{"name", "server"}};
  const bool own_image = s.job.options->image != KubernetesExport{}.image;
  c["image"] = s.of_tensorflow() && !own_image
                   ? fmt::format("{}{}", kTensorFlowServing, s.group.devices > 0 ? "-gpu" : "")
                   : s.job.options->image;
  c["command"] = Json::array({s.of_tensorflow() ? "tensorflow_model_server" : "reckon-worker"});
  c["args"] = arguments_of(s);
  c["env"] = Json::array({{{"name", "MODEL_NAME"}, {"value", s.model}}});
  c["ports"] = Json::array({port("http", kRestPort)});
  if (s.of_tensorflow()) c["ports"].push_back(port("grpc", kGrpcPort));
  c["resources"] = place.resources;
  // A large model takes its time to load: the probe of the start waits ten minutes for it.
  c["startupProbe"] = probe(s, Probe::alive, 5, 120);
  c["readinessProbe"] = probe(s, Probe::ready, 5, 3);
  c["livenessProbe"] = probe(s, Probe::alive, 10, 6);
  // Our own server lingers by itself, and its image has no shell.
  if (s.of_tensorflow())
    c["lifecycle"] = {
        {"preStop", {{"exec", {{"command", Json::array({"sleep", std::to_string(kLinger)})}}}}}};
  c["securityContext"] = container_security();
  c["volumeMounts"] = Json::array({{{"name", "models"}, {"mountPath", kModels}, {"readOnly", true}},
                                   {{"name", "scratch"}, {"mountPath", "/tmp"}}});
  if (s.of_tensorflow() && s.plan->batch_max > 1)
    c["volumeMounts"].push_back({{"name", "batching"}, {"mountPath", "/batching"}});
  return c;
}

Json serving_volumes(const Service& s) {
  Json models = {{"name", "models"}};
  if (s.job.options->bucket.empty())
    models["persistentVolumeClaim"] = {{"claimName", claim_of(s)}, {"readOnly", true}};
  else
    models["csi"] = {{"driver", s.job.cluster->service.bucket_driver},
                     {"readOnly", true},
                     {"volumeAttributes", {{"bucketName", s.job.options->bucket}}}};
  Json volumes = Json::array({models, scratch_volume(false, s.group.per_node)});
  if (s.of_tensorflow() && s.plan->batch_max > 1)
    volumes.push_back({{"name", "batching"}, {"configMap", {{"name", s.name + "-batching"}}}});
  return volumes;
}

/// Seconds for what a pod still has; of a spot node no more than its notice.
int grace_of(const ServingPlan& plan) {
  constexpr int kGrace = 60;
  if (plan.pool().pricing != CapacityType::spot) return kGrace;
  return std::clamp(int(plan.cluster.reclaim.notice.count()), 1, kGrace);
}

Json pod_of(const Service& s, const Json& labels) {
  const PodPlace place = place_of(s.job, s.group);
  Json metadata = {{"labels", labels}};
  if (!s.job.options->bucket.empty())
    metadata["annotations"] = {{s.job.cluster->service.bucket_annotation, "true"}};
  Json spec = {{"serviceAccountName", s.name}, {"automountServiceAccountToken", false}};
  if (!s.job.options->pull_secret.empty())
    spec["imagePullSecrets"] = Json::array({{{"name", s.job.options->pull_secret}}});
  spec["terminationGracePeriodSeconds"] = grace_of(*s.plan);
  if (!place.selector.empty()) spec["nodeSelector"] = place.selector;
  if (!place.tolerations.empty()) spec["tolerations"] = place.tolerations;
  spec["securityContext"] = pod_security();
  spec["containers"] = Json::array({serving_container(s, place)});
  spec["volumes"] = serving_volumes(s);
  return {{"metadata", metadata}, {"spec", spec}};
}

Json deployment(const Service& s) {
  Json d = object("apps/v1", "Deployment", s, s.name);
  const ReplicaRules& rules = s.plan->replicas;
  d["spec"] = Json::object();
  // Where the autoscaler has a say it alone sets the number: applying again must not undo it.
  if (rules.min == rules.max) d["spec"]["replicas"] = rules.min;
  d["spec"]["selector"] = {{"matchLabels", s.selector()}};
  d["spec"]["strategy"] = {{"type", "RollingUpdate"},
                           {"rollingUpdate", {{"maxUnavailable", 0}, {"maxSurge", 1}}}};
  d["spec"]["template"] = pod_of(s, s.labels());
  return d;
}

/// Pods that hold nodes and have the image and the weights; a replica that finds no room takes the
/// place of one at once.
Json standby(const Service& s) {
  Json d = object("apps/v1", "Deployment", s, s.name + "-standby");
  Json labels = s.labels();
  labels["app.kubernetes.io/name"] = "reckon-serving-standby";
  Json selector = s.selector();
  selector["app.kubernetes.io/name"] = "reckon-serving-standby";
  Json pod = pod_of(s, labels);
  pod["spec"]["priorityClassName"] = s.name + "-standby";
  pod["spec"]["terminationGracePeriodSeconds"] = 0;
  pod["spec"]["containers"][0].erase("lifecycle");
  d["spec"] = {{"replicas", s.plan->replicas.standby},
               {"selector", {{"matchLabels", selector}}},
               {"template", pod}};
  return d;
}

Json low_priority(const Service& s) {
  Json p = object("scheduling.k8s.io/v1", "PriorityClass", s, s.name + "-standby");
  p["value"] = -10;
  p["globalDefault"] = false;
  p["description"] = "replicas on standby: they make room for those that answer";
  return p;
}

/// Without clients outside the cluster it has no address there. With some they come with their own
/// addresses [Kubernetes, "Using Source IP"], which the network policy goes by.
Json service_of(const Service& s) {
  Json service = object("v1", "Service", s, s.name);
  Json ports = Json::array();
  const auto add = [&](const char* name, int number) {
    ports.push_back({{"name", name}, {"port", number}, {"targetPort", name}});
  };
  add("http", kRestPort);
  if (s.of_tensorflow()) add("grpc", kGrpcPort);
  Json spec = {{"type", s.plan->clients.empty() ? "ClusterIP" : "LoadBalancer"}};
  if (!s.plan->clients.empty()) {
    spec["loadBalancerSourceRanges"] = s.plan->clients;
    spec["externalTrafficPolicy"] = "Local";
  }
  spec["selector"] = s.selector();
  spec["ports"] = ports;
  service["spec"] = spec;
  return service;
}

Json autoscaler(const Service& s) {
  const bool stable = s.job.options->minor >= kStableAutoscaling;
  Json h = object(stable ? "autoscaling/v2" : "autoscaling/v2beta2", "HorizontalPodAutoscaler", s,
                  s.name);
  const ReplicaRules& rules = s.plan->replicas;
  const auto percent = int(std::lround(100 * rules.target_utilization));
  Json metric;
  if (s.group.devices == 0)
    metric = {{"type", "Resource"},
              {"resource",
               {{"name", "cpu"},
                {"target", {{"type", "Utilization"}, {"averageUtilization", percent}}}}}};
  else
    metric = {
        {"type", "Pods"},
        {"pods",
         {{"metric", {{"name", "DCGM_FI_DEV_GPU_UTIL"}}},
          {"target", {{"type", "AverageValue"}, {"averageValue", std::to_string(percent)}}}}}};
  h["spec"] = {
      {"scaleTargetRef", {{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", s.name}}},
      {"minReplicas", rules.min},
      {"maxReplicas", rules.max},
      {"metrics", Json::array({metric})},
      {"behavior",
       {{"scaleDown",
         {{"stabilizationWindowSeconds",
           std::int64_t(std::llround(rules.downscale_stabilization.count()))}}}}}};
  return h;
}

/// Requests from the cluster's pods and from the scenario's clients; the pods themselves ask for
/// names alone, and for the bucket.
Json network_policy(const Service& s) {
  Json policy = object("networking.k8s.io/v1", "NetworkPolicy", s, s.name);
  Json in = Json::array({port_rule("TCP", kRestPort)});
  if (s.of_tensorflow()) in.push_back(port_rule("TCP", kGrpcPort));
  Json from = Json::array({{{"namespaceSelector", Json::object()}}});
  for (const std::string& network : s.plan->clients)
    from.push_back({{"ipBlock", {{"cidr", network}}}});
  Json egress = Json::array({name_server_egress(s.job.options->minor, s.plan->cluster.service)});
  if (!s.job.options->bucket.empty()) add_bucket_egress(egress);
  policy["spec"] = {{"podSelector", {{"matchLabels", s.selector()}}},
                    {"policyTypes", Json::array({"Ingress", "Egress"})},
                    {"ingress", Json::array({{{"from", from}, {"ports", in}}})},
                    {"egress", egress}};
  return policy;
}

std::vector<Json> service_documents(const Service& s) {
  std::vector<Json> documents;
  const KubernetesExport& options = *s.job.options;
  if (options.make_namespace) {
    documents.push_back(object("v1", "Namespace", s, s.job.name_space));
    documents.back()["metadata"]["labels"].update(admission_labels(options));
  }
  Json account = object("v1", "ServiceAccount", s, s.name);
  account["automountServiceAccountToken"] = false;
  documents.push_back(std::move(account));
  if (options.bucket.empty() && options.claim.empty()) documents.push_back(claim(s));
  if (s.of_tensorflow() && s.plan->batch_max > 1) documents.push_back(batching_file(s));
  documents.push_back(network_policy(s));
  documents.push_back(deployment(s));
  documents.push_back(service_of(s));
  if (s.plan->replicas.max > s.plan->replicas.min) documents.push_back(autoscaler(s));
  if (s.plan->replicas.standby > 0) {
    documents.push_back(low_priority(s));
    documents.push_back(standby(s));
  }
  return documents;
}

}  // namespace
}  // namespace kubernetes

std::optional<std::string> why_not_exported(const ServingPlan& plan, ServerKind kind) {
  if (kind != ServerKind::reckon || !plan.pool().accelerator) return std::nullopt;
  return fmt::format(
      "pool {} has accelerators ({}), which reckon-worker serve would hold without using them: it "
      "computes on CPUs; export --as tensorflow-serving, or plan a pool without accelerators",
      plan.pool().name, plan.pool().accelerator->name);
}

std::string serving_manifests(const ServingPlan& plan, const Catalog& catalog, ServerKind kind,
                              const KubernetesExport& options) {
  using namespace kubernetes;
  RECKON_CHECK(!why_not_exported(plan, kind));
  kubernetes::Service s;
  s.plan = &plan;
  s.kind = kind;
  s.job.cluster = &plan.cluster;
  s.job.names = catalog.cluster_names;
  s.job.owned = catalog.rules_of(plan.cluster.provider).owned;
  s.job.options = &options;
  s.name = kubernetes_name(plan.origin.name);
  s.job.run = s.name;
  s.job.name_space = options.name_space.empty() ? s.name : options.name_space;
  s.model = plan.model.name();
  s.group.pool = &plan.pool();
  s.group.per_node = plan.replicas_per_node();
  if (plan.pool().accelerator) {
    s.group.devices = 1;
    s.group.resource = s.job.term(plan.pool().accelerator->vendor == "AMD" ? "resources.amd_gpu"
                                                                           : "resources.gpu");
  }
  std::string yaml;
  for (const Json& document : service_documents(s)) yaml += "---\n" + yaml_text(document);
  return yaml;
}

}  // namespace reckon
