#include "executor/kubernetes/preflight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "executor/kubernetes/pods/image_fit.h"
#include "executor/kubernetes/pods/node_fit.h"
#include "executor/kubernetes/run_state.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

constexpr int kOldest = 20;

/// One document after the other, or a List of them.
std::vector<Json> documents_of(const std::string& text) {
  std::vector<Json> documents;
  std::istringstream in(text);
  while (in >> std::ws && in.peek() != std::istringstream::traits_type::eof()) {
    Json document;
    try {
      in >> document;
    } catch (const Json::parse_error&) {
      break;
    }
    if (document.value("kind", "") == "List")
      for (Json& item : document["items"]) documents.push_back(std::move(item));
    else
      documents.push_back(std::move(document));
  }
  return documents;
}

class Preflight {
 public:
  Preflight(const Kubectl& kubectl, const ClusterFacts& facts, const PreflightQuestion& question)
      : kubectl_(kubectl), facts_(facts), question_(question) {}

  PreflightAnswer answer() {
    look_at_namespace();
    look_at_permissions();
    look_at_run();
    look_at_storage();
    look_at_secret();
    look_at_store_secret();
    if (const auto manifests = accepted()) {
      look_at_images(*manifests);
      const auto demands = demands_of(*manifests);
      look_at_nodes(demands, images_of(*manifests));
      look_at_quotas(demands);
    }
    return std::move(answer_);
  }

 private:
  void problem(std::string what, std::string hint) {
    answer_.problems.push_back(
        {.at = {.file = "cluster"}, .what = std::move(what), .hint = std::move(hint)});
  }
  void warn(std::string what, std::string hint = "") {
    answer_.warnings.push_back({.severity = Severity::warning,
                                .at = {.file = "cluster"},
                                .what = std::move(what),
                                .hint = std::move(hint)});
  }

  /// nullopt: it is not there, or may not be looked at, which is said; once, where it is among the
  /// permissions that are missing.
  std::optional<Json> look(const Words& words, const char* what) {
    try {
      return kubectl_.json(words);
    } catch (const KubectlError& error) {
      if (error.failure() == KubectlFailure::missing) return std::nullopt;
      if (error.failure() != KubectlFailure::forbidden) throw;
      if (!may_not_.contains(words[0] + ' ' + words[1] + 's'))
        warn(fmt::format("could not find out {}: {}", what, error.what()));
      return std::nullopt;
    }
  }
  /// In a namespace that is still to be made there is nothing yet.
  bool in_namespace(const char* kind, const std::string& name) const {
    return facts_.namespace_exists && there({"get", kind, name});
  }
  const char* not_yet() const {
    return facts_.namespace_exists ? "" : ", which does not exist yet";
  }
  bool there(const Words& words) const {
    const KubectlResult r = kubectl_.attempt(words);
    return r.good() || failure_of(r.err) != KubectlFailure::missing;
  }

  /// RFC 1123, as Kubernetes takes it: "object names and IDs", DNS labels.
  void look_at_namespace() {
    constexpr std::size_t kLongest = 63;
    const std::string& name = kubectl_.name_space();
    const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool good = !name.empty() && name.size() <= kLongest && plain(name.front()) &&
                      plain(name.back()) &&
                      std::ranges::all_of(name, [&](char c) { return plain(c) || c == '-'; });
    if (!good)
      problem(fmt::format("'{}' is no name of a namespace", name),
              "--namespace NAME of lower-case letters, digits and hyphens, 63 at most");
  }

  void look_at_permissions() {
    std::string missing;
    struct Need {
      const char *verb, *resource, *what_for;
    };
    constexpr std::array<Need, 17> kNeeds{{{"create", "jobs.batch", "makes the pods"},
                                           {"get", "jobs.batch", ""},
                                           {"list", "jobs.batch", ""},
                                           {"patch", "jobs.batch", "ends an attempt"},
                                           {"create", "configmaps", "holds the plan"},
                                           {"get", "configmaps", ""},
                                           {"patch", "configmaps", ""},
                                           {"create", "services", "names for the ranks"},
                                           {"get", "services", ""},
                                           {"create", "serviceaccounts", ""},
                                           {"get", "serviceaccounts", ""},
                                           {"create", "networkpolicies.networking.k8s.io", ""},
                                           {"get", "networkpolicies.networking.k8s.io", ""},
                                           {"list", "pods", "watches the ranks"},
                                           {"watch", "pods", ""},
                                           {"delete", "pods", "ends pods of lost nodes"},
                                           {"get", "pods/log", "reads the ranks' progress"}}};
    const auto need = [&](const Words& words, const std::string& text) {
      Words all{"auth", "can-i", "--quiet"};
      all.insert(all.end(), words.begin(), words.end());
      const KubectlResult r = kubectl_.attempt(all);
      if (r.good()) return;
      if (passes(failure_of(r.err)))
        throw KubectlError(failure_of(r.err), "kubectl auth can-i: " + r.err);
      may_not_.insert(text.substr(0, text.find(':')));
      missing += (missing.empty() ? "" : ", ") + text;
    };
    for (const Need& n : kNeeds) {
      const bool log = std::string_view(n.resource) == "pods/log";
      const Words words =
          log ? Words{n.verb, "pods", "--subresource=log"} : Words{n.verb, n.resource};
      need(words, fmt::format("{} {}{}{}", n.verb, n.resource, *n.what_for != '\0' ? ": " : "",
                              n.what_for));
    }
    if (question_.makes_claim)
      need({"create", "persistentvolumeclaims"}, "create persistentvolumeclaims: checkpoints");
    if (question_.makes_secret) {
      need({"create", "secrets"}, "create secrets: the job's processes know each other by it");
      need({"delete", "secrets"}, "delete secrets");
    }
    if (question_.stays) need({"patch", "pods"}, "patch pods: tells them to go on");
    if (question_.reads_metrics)
      need({"get", "pods", "--subresource=proxy"}, "get pods/proxy: reads the program's metrics");
    if (!facts_.namespace_exists) need({"create", "namespaces"}, "create namespaces");
    const std::string but_for_lease = std::exchange(missing, "");
    for (const char* verb : {"create", "get", "update"})
      need({verb, "leases.coordination.k8s.io"}, fmt::format("{} leases", verb));
    if (!missing.empty())
      warn(fmt::format("you may not, in namespace {}: {}; without the launcher's lease nothing "
                       "keeps a second launcher of the run from acting beside the first",
                       kubectl_.name_space(), missing),
           "ask for these on leases.coordination.k8s.io, or start one launcher at a time");
    missing.clear();
    if (question_.cordons) need({"patch", "nodes"}, "patch nodes");
    if (!missing.empty())
      problem("you may not patch nodes, as --cordon-slow does",
              "ask for a ClusterRole that may get, list and patch nodes, or leave it out");
    missing = but_for_lease;
    if (!missing.empty())
      problem(fmt::format("you may not, in namespace {}: {}", kubectl_.name_space(), missing),
              "ask for the Role 'edit' there, or choose a namespace of yours: --namespace");
  }

  void look_at_run() {
    if (!question_.makes_run || !facts_.namespace_exists) return;
    if (!look({"get", "configmap", state_object_of(question_.run)},
              "whether there is an earlier run"))
      return;
    problem(
        fmt::format("a run '{}' is in namespace {} already", question_.run, kubectl_.name_space()),
        fmt::format("--attach {0} watches it, --resume goes on with it, `reckon delete {0} --on "
                    "kubernetes` removes it",
                    question_.run));
  }

  void look_at_storage() {
    if (!question_.claim.empty() && !in_namespace("persistentvolumeclaim", question_.claim))
      problem(fmt::format("there is no volume claim '{}' in namespace {}{}", question_.claim,
                          kubectl_.name_space(), not_yet()),
              facts_.namespace_exists
                  ? "`kubectl get pvc` lists those that are; without --claim one is made"
                  : "make both before the run, or leave --claim out: one is made with the "
                    "namespace");
    if (!question_.makes_claim) return;
    const auto classes = look({"get", "storageclasses"}, "which storage classes there are");
    if (!classes) return;
    bool found = false;
    std::string names;
    for (const Json& item : classes->at("items")) {
      const std::string name = item.at("metadata").at("name");
      names += (names.empty() ? "" : ", ") + name;
      const Json notes = item.value(Json::json_pointer("/metadata/annotations"), Json::object());
      const bool standard =
          notes.value("storageclass.kubernetes.io/is-default-class", "") == "true";
      found =
          found || (question_.storage_class.empty() ? standard : name == question_.storage_class);
    }
    if (found) return;
    problem(question_.storage_class.empty()
                ? "the cluster has no default storage class: the checkpoints' claim would wait for "
                  "ever"
                : fmt::format("there is no storage class '{}'", question_.storage_class),
            fmt::format("--storage-class NAME ({}), or --claim NAME of a claim that many nodes may "
                        "write to",
                        names.empty() ? "there is none" : names));
  }

  void look_at_secret() {
    if (question_.pull_secret.empty() || in_namespace("secret", question_.pull_secret)) return;
    problem(fmt::format("there is no secret '{}' in namespace {}{}", question_.pull_secret,
                        kubectl_.name_space(), not_yet()),
            fmt::format("{}kubectl create secret docker-registry {} --namespace {} "
                        "--docker-server=... --docker-username=... --docker-password=...",
                        facts_.namespace_exists
                            ? ""
                            : fmt::format("kubectl create namespace {}; ", kubectl_.name_space()),
                        question_.pull_secret, kubectl_.name_space()));
  }

  /// Its values are nobody's business here: whether it has the keys the kubelet finds out.
  void look_at_store_secret() {
    const std::string& name = question_.store_secret;
    if (name.empty() || in_namespace("secret", name)) return;
    problem(fmt::format("there is no secret '{}' in namespace {}{}", name, kubectl_.name_space(),
                        not_yet()),
            fmt::format("{}kubectl create secret generic {} --namespace {} "
                        "--from-env-file=FILE, with the lines AWS_ACCESS_KEY_ID=... and "
                        "AWS_SECRET_ACCESS_KEY=...",
                        facts_.namespace_exists
                            ? ""
                            : fmt::format("kubectl create namespace {}; ", kubectl_.name_space()),
                        name, kubectl_.name_space()));
  }

  /// The manifests as the server would take them; nullopt: it does not.
  std::optional<std::vector<Json>> accepted() {
    const auto dry = [&](const char* where) {
      return kubectl_.attempt(
          {"apply", "--filename", "-", fmt::format("--dry-run={}", where), "--output=json"},
          question_.manifests, kManyObjects);
    };
    // A namespace that is not there yet cannot be asked about what is to be in it.
    KubectlResult result = dry(facts_.namespace_exists ? "server" : "client");
    if (!result.good() && failure_of(result.err) == KubectlFailure::forbidden) {
      // A missing permission is told already, and apply asks the server even for a dry run of its
      // own; to create needs none.
      if (may_not_.empty()) warn("the manifests were not tried on the server: " + result.err);
      result = kubectl_.attempt(
          {"create", "--filename", "-", "--dry-run=client", "--validate=false", "--output=json"},
          question_.manifests, kManyObjects);
    }
    if (result.good()) return documents_of(result.out);
    if (passes(failure_of(result.err)))
      throw KubectlError(failure_of(result.err), "kubectl apply --dry-run: " + result.err);
    problem("the cluster does not take the manifests", result.err);
    return std::nullopt;
  }

  void look_at_images(const std::vector<Json>& manifests) {
    for (const std::string& image : images_of(manifests))
      if (const std::string mistake = image_name_mistake(image); !mistake.empty())
        problem(fmt::format("no node can pull the image '{}': {}", image, mistake),
                "[HOST[:PORT]/]PATH[:TAG][@DIGEST], the path in lower-case letters");
  }

  /// Of nodes with room for a pod that wants a GPU.
  void look_at_drivers(const std::vector<PodDemand>& demands, const std::set<std::string>& images,
                       const Json& nodes) {
    std::set<std::string> names;
    for (const PodDemand& demand : demands) {
      if (!demand.requests.contains("nvidia.com/gpu")) continue;
      for (const std::string& name : nodes_for(demand, nodes)) names.insert(name);
    }
    const std::vector<std::string> all(names.begin(), names.end());
    for (const std::string& image : images) {
      const DriverMisfits misfits = driver_misfits(image, all, nodes);
      for (const std::string& what : misfits.problems) {
        const std::string hint =
            "a newer driver on the nodes, or an image that is built with an older CUDA";
        if (misfits.nodes == int(all.size()))
          problem(what, hint);
        else
          warn(what, hint);
      }
    }
  }

  void look_at_nodes(const std::vector<PodDemand>& demands, const std::set<std::string>& images) {
    const auto nodes = look({"get", "nodes"}, "which nodes there are");
    if (!nodes) return;
    look_at_drivers(demands, images, *nodes);
    const Room room = room_for(demands, *nodes);
    if (room.placed == room.pods) return;
    const std::string hint =
        "`kubectl describe nodes` lists what they have; a smaller machine in "
        "the scenario's pool asks for less";
    const auto say = [&](const std::string& what) {
      if (question_.autoscaling) return warn(what, "the pool's autoscaler must add nodes for it");
      answer_.no_room = true;
      problem(what, hint);
    };
    for (const std::string& misfit : room.misfits) say(misfit);
    if (!room.misfits.empty()) return;
    const std::string out_of_use =
        room.not_ready == 0
            ? ""
            : fmt::format("; {} of {} nodes are not ready or cordoned", room.not_ready, room.nodes);
    say(fmt::format("the nodes have room for {} of {} pods, were they empty{}", room.placed,
                    room.pods, out_of_use));
  }

  void look_at_quotas(const std::vector<PodDemand>& demands) {
    if (!facts_.namespace_exists) return;
    const auto quotas = look({"get", "resourcequotas"}, "which quotas there are");
    if (!quotas) return;
    Resources wanted;
    for (const PodDemand& demand : demands) {
      wanted["count/jobs.batch"] += 1;
      for (const auto& [resource, amount] : demand.requests) {
        const double all = amount * demand.count;
        wanted[resource] += all;
        if (resource != "pods") wanted["requests." + resource] += all;
      }
    }
    for (const Json& quota : quotas->at("items")) look_at_quota(quota, wanted);
  }

  void look_at_quota(const Json& quota, const Resources& wanted) {
    const auto amount = [&](const char* part, const std::string& resource) {
      const Json all = quota.value("status", Json::object()).value(part, Json::object());
      return quantity_of(all.value(resource, "0")).value_or(0);
    };
    const Json hard = quota.value("status", Json::object()).value("hard", Json::object());
    for (const auto& [resource, limit] : hard.items()) {
      const auto at = wanted.find(resource);
      if (at == wanted.end()) continue;
      const double left = amount("hard", resource) - amount("used", resource);
      if (at->second <= left * (1 + 1e-9)) continue;
      problem(fmt::format("quota {} leaves {:g} of {}, and the job asks for {:g}",
                          quota.at("metadata").at("name").get<std::string>(), left, resource,
                          at->second),
              "ask for more, wait until other jobs end, or choose another namespace: --namespace");
    }
  }

  const Kubectl& kubectl_;
  const ClusterFacts& facts_;
  const PreflightQuestion& question_;
  PreflightAnswer answer_;
  std::set<std::string> may_not_;  // "get configmaps"
};

}  // namespace

ClusterFacts cluster_facts(const Kubectl& kubectl) {
  const Json version = kubectl.json({"version"}, Seconds{20});
  const std::string minor =
      version.value(Json::json_pointer("/serverVersion/minor"), std::string());  // "20", "31+"
  const auto number = parse_integer(minor.substr(0, minor.find_first_not_of("0123456789")));
  if (!number || *number < kOldest)
    throw KubectlError(KubectlFailure::setup,
                       fmt::format("the cluster's version is 1.{}; reckon runs on Kubernetes 1.{} "
                                   "and later",
                                   minor, kOldest));
  ClusterFacts facts{.minor = int(*number), .namespace_exists = true};
  const KubectlResult space = kubectl.attempt({"get", "namespace", kubectl.name_space()});
  if (!space.good()) facts.namespace_exists = failure_of(space.err) != KubectlFailure::missing;
  return facts;
}

PreflightAnswer preflight(const Kubectl& kubectl, const ClusterFacts& facts,
                          const PreflightQuestion& question) {
  return Preflight(kubectl, facts, question).answer();
}

}  // namespace reckon::kubernetes
