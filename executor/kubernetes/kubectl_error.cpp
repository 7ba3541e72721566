#include "executor/kubernetes/kubectl_error.h"

#include <array>

namespace reckon::kubernetes {
namespace {

struct FailureWords {
  std::string_view text;
  KubectlFailure failure;
};

// FailureWords of kubectl 1.20 to 1.34 and of the API server, the more particular ones first.
constexpr std::array<FailureWords, 41> kWords{{
    {"The connection to the server localhost:8080 was refused", KubectlFailure::setup},
    {"error: context ", KubectlFailure::setup},
    {"context was not found for specified context", KubectlFailure::setup},
    {"no configuration has been provided", KubectlFailure::setup},
    {"error loading config file", KubectlFailure::setup},
    {"executable file not found", KubectlFailure::setup},
    {"You must be logged in to the server", KubectlFailure::login},
    {"(Unauthorized)", KubectlFailure::login},
    {"getting credentials", KubectlFailure::login},
    {"Unable to connect to the server: x509", KubectlFailure::setup},
    {"Unable to connect to the server", KubectlFailure::connection},
    {"was refused - did you specify the right host or port", KubectlFailure::connection},
    {"connection refused", KubectlFailure::connection},
    {"connection reset by peer", KubectlFailure::connection},
    {"connect: network is unreachable", KubectlFailure::connection},
    {"no route to host", KubectlFailure::connection},
    {"i/o timeout", KubectlFailure::connection},
    {"TLS handshake timeout", KubectlFailure::connection},
    {"http2: client connection lost", KubectlFailure::connection},
    {"http2: server sent GOAWAY", KubectlFailure::connection},
    {"unexpected EOF", KubectlFailure::connection},
    {": EOF", KubectlFailure::connection},
    {"context deadline exceeded", KubectlFailure::connection},
    {"Client.Timeout exceeded", KubectlFailure::connection},
    {"net/http: request canceled", KubectlFailure::connection},
    {"etcdserver: ", KubectlFailure::connection},
    {"(ServiceUnavailable)", KubectlFailure::connection},
    {"currently unable to handle the request", KubectlFailure::connection},
    {"(Timeout)", KubectlFailure::connection},
    {"(TooManyRequests)", KubectlFailure::connection},
    {"(InternalError)", KubectlFailure::connection},
    {"apiserver is shutting down", KubectlFailure::connection},
    {"the launcher's lease has run out", KubectlFailure::connection},
    {"exceeded quota", KubectlFailure::forbidden},
    {"(Forbidden)", KubectlFailure::forbidden},
    {"is forbidden: ", KubectlFailure::forbidden},
    {"(NotFound)", KubectlFailure::missing},
    {"(Conflict)", KubectlFailure::conflict},
    {"(AlreadyExists)", KubectlFailure::conflict},
    {"(Invalid)", KubectlFailure::invalid},
    {"error validating", KubectlFailure::invalid},
}};

}  // namespace

KubectlFailure failure_of(std::string_view message) {
  for (const FailureWords& words : kWords)
    if (message.find(words.text) != std::string_view::npos) return words.failure;
  return KubectlFailure::other;
}

std::string advice_on(KubectlFailure failure) {
  switch (failure) {
    case KubectlFailure::connection:
      return "is the cluster up, and does `kubectl cluster-info` reach it from here?";
    case KubectlFailure::login:
      return "log in to the cluster again, as your provider says; `kubectl get pods` must work";
    case KubectlFailure::forbidden:
      return "ask whoever runs the cluster, or choose a namespace of yours: --namespace";
    case KubectlFailure::setup:
      return "`kubectl config get-contexts` lists what there is; --context, KUBECONFIG and "
             "RECKON_KUBECTL choose";
    case KubectlFailure::missing:
    case KubectlFailure::conflict:
    case KubectlFailure::invalid:
    case KubectlFailure::other:
      break;
  }
  return "";
}

}  // namespace reckon::kubernetes
