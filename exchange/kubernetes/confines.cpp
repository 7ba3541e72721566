#include "exchange/kubernetes/confines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

constexpr int kNamespaceNames = 21;  // since then namespaces have their names as a label
constexpr const char* kNodeLocalCache = "169.254.20.10/32";

Json pods_of_name_server(int minor, const char* app) {
  Json spaces = Json::object();
  if (minor >= kNamespaceNames)
    spaces["matchLabels"] = {{"kubernetes.io/metadata.name", "kube-system"}};
  return {{"namespaceSelector", spaces}, {"podSelector", {{"matchLabels", {{"k8s-app", app}}}}}};
}

Json address(const char* cidr) { return {{"ipBlock", {{"cidr", cidr}}}}; }

/// Where the sidecar that mounts a bucket gets its token: GKE's metadata server, and the one that
/// stands before it where pods have identities of their own [GKE, "Authenticate to Google Cloud
/// APIs from GKE workloads", network policy].
struct MetadataServer {
  const char* cidr;
  int port;
};
constexpr std::array<MetadataServer, 2> kMetadataServers{
    {{"169.254.169.254/32", 80}, {"169.254.169.252/32", 988}}};

}  // namespace

Json admission_labels(const KubernetesExport& options) {
  const bool own = options.name_space.empty() || options.watched;
  const char* mode = own ? "enforce" : "warn";
  const bool guests = options.as == JobShape::pytorchjob || !options.bucket.empty();
  const char* level = !options.node_directory.empty() ? "privileged"
                      : guests                        ? "baseline"
                                                      : "restricted";
  return {{fmt::format("pod-security.kubernetes.io/{}", mode), level}};
}

Json port_rule(const char* protocol, int number) {
  return {{"protocol", protocol}, {"port", number}};
}

Json name_server_egress(int minor, const ServiceRules& service) {
  Json to = Json::array({pods_of_name_server(minor, "kube-dns"),
                         pods_of_name_server(minor, "node-local-dns"), address(kNodeLocalCache)});
  if (!service.name_server.empty()) to.push_back(address(service.name_server.c_str()));
  return {{"to", to}, {"ports", Json::array({port_rule("UDP", 53), port_rule("TCP", 53)})}};
}

void add_bucket_egress(Json& egress) {
  egress.push_back({{"ports", Json::array({port_rule("TCP", 443)})}});
  for (const MetadataServer& server : kMetadataServers)
    egress.push_back({{"to", Json::array({address(server.cidr)})},
                      {"ports", Json::array({port_rule("TCP", server.port)})}});
}

Json store_egress(const DataSpec& data) {
  constexpr int kHttps = 443, kHttp = 80, kMostPorts = 65535;
  int port = data.endpoint.starts_with("http://") ? kHttp : kHttps;
  // http://HOST:PORT/..., and the address of a host may have colons within brackets.
  const std::string_view url = data.endpoint;
  const auto host = url.find("://") == std::string_view::npos ? 0 : url.find("://") + 3;
  const std::string_view place = url.substr(host, url.find('/', host) - host);
  const auto colon = place.rfind(':');
  if (colon != std::string_view::npos && place.find(']', colon) == std::string_view::npos)
    if (const auto given = parse_integer(place.substr(colon + 1));
        given && *given > 0 && *given <= kMostPorts)
      port = int(*given);
  return {{"ports", Json::array({port_rule("TCP", port)})}};
}

Json scratch_volume(bool own_program, int pods_on_node) {
  // Ours writes next to nothing there. Programs of users have their caches there (HOME): assumed
  // is what a node with a boot disk of 100 GB has left for pods, 47 GB on GKE.
  constexpr int kOurs = 1, kAllOfUsers = 40;
  const int gib = own_program ? std::max(2, kAllOfUsers / std::max(1, pods_on_node)) : kOurs;
  return {{"name", "scratch"}, {"emptyDir", {{"sizeLimit", fmt::format("{}Gi", gib)}}}};
}

}  // namespace reckon::kubernetes
