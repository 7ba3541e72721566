#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "exchange/kubernetes/confines.h"
#include "exchange/kubernetes/documents.h"
#include "sim/base/text/base64.h"
#include "sim/step/step.h"

// What surrounds a job: its plan, its secret, room for checkpoints, its name, whom it may talk to.
namespace reckon::kubernetes {

Json object(const char* version, const char* kind, const Job& job, const std::string& name) {
  Json metadata = {{"name", name}};
  if (std::string_view(kind) != "Namespace") metadata["namespace"] = job.name_space;
  metadata["labels"] = labels_of(job);
  return {{"apiVersion", version}, {"kind", kind}, {"metadata", metadata}};
}

namespace {

Json own_pods(const Job& job) {
  return {{"matchLabels", {{"app.kubernetes.io/instance", job.run}}}};
}

}  // namespace

Json config_map(const Job& job) {
  Json map = object("v1", "ConfigMap", job, job.name + "-plan");
  map["data"] = {{"plan.yaml", job.artifact->scenario}};
  for (const auto& [name, text] : job.options->files) map["data"][name] = text;
  map["binaryData"] = {{kPlanKey, to_base64(write_artifact(*job.artifact))}};
  return map;
}

Json secret(const Job& job) {
  Json s = object("v1", "Secret", job, kubernetes_secret_name(job.run));
  s["type"] = "Opaque";
  s["stringData"] = {{kKubernetesSecretKey, job.options->job_secret}};
  return s;
}

Json claim(const Job& job) {
  Json c = object("v1", "PersistentVolumeClaim", job, job.claim());
  constexpr double kCopies = 3, kGiB = 1024.0 * 1024 * 1024;
  const double bytes = 2 * kCopies * checkpoint_bytes(job.plan->only_job()).v;
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

Json network_policy(const Job& job) {
  Json policy = object("networking.k8s.io/v1", "NetworkPolicy", job, job.run);
  Json peers = Json::array();
  peers.push_back({{"podSelector", own_pods(job)}});
  Json egress = Json::array();
  egress.push_back({{"to", peers}});
  egress.push_back(name_server_egress(job.options->minor, job.cluster->service));
  if (!job.options->bucket.empty())
    add_bucket_egress(egress);
  else if (job.container != nullptr)
    egress.push_back({{"ports", Json::array({port_rule("TCP", 443)})}});
  if (const DataSpec& data = job.plan->only_job().data; is_store_location(data.path))
    if (Json rule = store_egress(data); std::ranges::count(egress, rule) == 0)
      egress.push_back(std::move(rule));
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

}  // namespace reckon::kubernetes
