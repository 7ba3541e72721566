#include "exchange/kubernetes/kubernetes.h"

#include <nlohmann/json.hpp>

#include <catch2/catch.hpp>

#include "cluster_artifact.h"
#include "exchange/gcloud.h"
#include "exchange/literal_word.h"
#include "exchange/yaml_text.h"
#include "support/golden.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;
using Json = nlohmann::ordered_json;

namespace {

const std::string kServers = R"(
name: Two Servers
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 32
  strategy: {kind: parameter_server, workers: 3, parameter_servers: 2}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - name: gpus
      machine: n1-standard-8
      accelerator: {type: V100-SXM2-16, count: 1}
      nodes: 3
      pricing: spot
    - {name: servers, role: parameter_server, machine: n1-highmem-8, nodes: 2}
)";

struct Exported {
  std::string yaml, errors;
};

Exported exported_manifest(const std::string& text, const KubernetesExport& how) {
  const Expected<ScenarioFile> file = parse_scenario(text, "s.yaml");
  REQUIRE(file);
  const Expected<Plan> plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  KubernetesExport told = how;
  told.arguments = {"--checkpoint-steps", "20"};
  const auto yaml = kubernetes_manifests(artifact_for_cluster(*file, *plan), told, file->places);
  return yaml ? Exported{without_plan(*yaml), ""} : Exported{"", format(yaml.error())};
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("YAML text quotes what a reader would take for something else") {
  CHECK(yaml_text(Json{{"a", "1"}, {"b", "no"}, {"c", "x y"}, {"d", "plain"}, {"e", 2}}) ==
        "a: \"1\"\nb: \"no\"\nc: \"x y\"\nd: plain\ne: 2\n");
  CHECK(yaml_text(Json{{"quantity", "10m"}, {"empty", ""}, {"none", Json::object()}}) ==
        "quantity: \"10m\"\nempty: \"\"\nnone: {}\n");
}

TEST_CASE("YAML text keeps every character of a text of several lines") {
  CHECK(yaml_text(Json{{"f", "a: 1\n\n  b\n"}}) == "f: |\n  a: 1\n\n    b\n");
  CHECK(yaml_text(Json{{"f", "a\nb"}}) == "f: \"a\\nb\"\n");
  CHECK(yaml_text(Json{{"f", "a\n\n"}}) == "f: \"a\\n\\n\"\n");
  CHECK(yaml_text(Json{{"f", "\ta\nb"}}) == "f: \"\\ta\\nb\"\n");
}

TEST_CASE("lists of maps stand below their key, the first key behind the hyphen") {
  const Json list = Json::array({Json{{"a", 1}, {"b", Json::array({2, 3})}}});
  CHECK(yaml_text(Json{{"l", list}}) == "l:\n  - a: 1\n    b:\n      - 2\n      - 3\n");
}

TEST_CASE("a node leaves for pods what GKE's reservations leave") {
  // 16 vCPUs: 60 + 10 + 10 + 12 * 2.5 = 110 milli. 60 GiB: 1 + 0.8 + 0.8 + 0.06 * 44 = 5.24 GiB,
  // and 100 MiB.
  Machine machine;
  machine.vcpus = 16;
  machine.memory = Fact<Bytes>{60.0_GiB};
  const Allocatable left = allocatable_of(machine);
  CHECK(left.cpu_milli == 15890);
  CHECK(left.memory.v == Approx((60 - 5.24) * 1024 * 1024 * 1024 - 100 * 1024 * 1024));
  machine.memory = Fact<Bytes>{Bytes{512.0 * 1024 * 1024}};
  CHECK(allocatable_of(machine).memory.v == Approx((512.0 - 255 - 100) * 1024 * 1024));
}

TEST_CASE("a plan with parameter servers is an indexed job and a stateful set") {
  const Exported e = exported_manifest(kServers, {});
  CHECK(e.errors.empty());
  check_golden("exchange/golden/servers.yaml", e.yaml);
}

TEST_CASE("where a version has no indexed jobs each rank is a job that knows its number") {
  const Exported e = exported_manifest(kServers, {.minor = 20});
  CHECK(count(e.yaml, "kind: Job") == 5);
  CHECK_THAT(e.yaml, !Contains("completionMode") && !Contains("podFailurePolicy") &&
                         !Contains("StatefulSet"));
  CHECK_THAT(e.yaml, Contains("hostname: two-servers-1-ps-1\n"));
  CHECK_THAT(e.yaml, Contains(R"(\"type\": \"ps\", \"index\": $(RECKON_INDEX)})"));
}

TEST_CASE("an attempt's names are its own, the namespace and the checkpoints are the job's") {
  const Exported first = exported_manifest(kServers, {}),
                 second = exported_manifest(kServers, {.attempt = 2});
  CHECK_THAT(second.yaml, Contains("name: two-servers-2-worker") && !Contains("two-servers-1"));
  CHECK_THAT(first.yaml, Contains("claimName: two-servers-checkpoints"));
  CHECK_THAT(second.yaml, Contains("claimName: two-servers-checkpoints"));
}

TEST_CASE("a job that is watched starts nothing again by itself, and its pods say who they are") {
  const KubernetesExport watched{.minor = 31,
                                 .name_space = "team",
                                 .attempt = 3,
                                 .make_namespace = false,
                                 .pull_secret = "key",
                                 .watched = true,
                                 .run_started = "2026-11-22T03:00:00.000Z"};
  const Exported e = exported_manifest(kServers, watched);
  CHECK_THAT(e.yaml, !Contains("StatefulSet") && !Contains("podFailurePolicy") &&
                         !Contains("restartPolicy: Always") && !Contains("kind: Namespace"));
  CHECK(count(e.yaml, "backoffLimit: 0\n") == 2);
  // The servers' ranks follow the three workers'.
  CHECK_THAT(e.yaml, Contains("reckon/first-rank: \"0\"") && Contains("reckon/first-rank: \"3\""));
  CHECK_THAT(e.yaml, Contains("name: RECKON_ATTEMPT\n              value: \"3\"") &&
                         Contains("- \"--log-records\"\n"));
  CHECK_THAT(e.yaml, Contains("imagePullSecrets:\n        - name: key"));
  // Below 1.22 each rank is a Job of its own.
  KubernetesExport old = watched;
  old.minor = 20;
  CHECK_THAT(exported_manifest(kServers, old).yaml, Contains("reckon/first-rank: \"4\""));
  // In a namespace that others use, names and labels are the run's own.
  CHECK_THAT(e.yaml, Contains("app.kubernetes.io/instance: two-servers\n") &&
                         !Contains("app.kubernetes.io/instance: team"));
}

TEST_CASE("standing pods are made again whatever they end with, and wait for an order") {
  const Exported e = exported_manifest(kServers, {.minor = 31, .watched = true, .standing = true});
  CHECK(count(e.yaml, "backoffLimit: 1000000\n") == 2);
  CHECK_THAT(e.yaml, Contains("name: RECKON_ORDERS_FILE\n              value: /orders/start\n"));
  CHECK_THAT(e.yaml, Contains("fieldPath: \"metadata.annotations['reckon/start']\""));
  CHECK_THAT(e.yaml, !Contains("reckon/start: "));  // a new pod has no order yet
}

TEST_CASE("spare nodes of a warm_spare have pods that stand by, where somebody gives orders") {
  const std::string text = R"(
name: warm
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 32
  strategy: {kind: multi_worker_mirrored, workers: 3}
  restart: {kind: warm_spare, spares: 2}
cluster:
  provider: on_premises
  pools:
    - {name: here, machine: {vcpu: 8, memory: 32GiB, network: 10Gbps}, nodes: 5}
)";
  KubernetesExport how{.minor = 31, .watched = true, .standing = true};
  const Exported e = exported_manifest(text, how);
  CHECK_THAT(e.yaml, Contains("name: warm-1-spare\n") && Contains("completions: 2\n") &&
                         Contains("completions: 3\n"));
  CHECK(count(e.yaml, "name: RECKON_STANDS_BY\n              value: \"1\"") == 1);
  CHECK(count(e.yaml, "reckon/stands-by: \"true\"") == 1);
  CHECK_THAT(e.yaml, Contains("reckon/first-rank: \"3\""));
  // They are of no rank, and the job is no larger for them.
  CHECK(count(e.yaml, "name: WORLD_SIZE\n              value: \"3\"") == 2);
  CHECK(count(e.yaml, "name: RANK\n              value: \"0\"") == 1);
  how.minor = 20;  // a Job a pod
  const Exported old = exported_manifest(text, how);
  CHECK_THAT(old.yaml,
             Contains("hostname: warm-1-spare-1\n") && Contains("reckon/first-rank: \"4\""));
  CHECK(count(old.yaml, "name: RECKON_STANDS_BY\n") == 2);
  CHECK_THAT(exported_manifest(text, {.minor = 31, .watched = true}).yaml,
             !Contains("spare") && !Contains("STANDS_BY"));
}

TEST_CASE("pods of a pool with a fallback may run on both, on its own first") {
  const std::string text = R"(
name: stand-in
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 32
  strategy: {kind: multi_worker_mirrored, workers: 2}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools:
    - {name: spot, machine: n1-standard-8, accelerator: {type: V100-SXM2-16, count: 1},
       nodes: {initial: 0, min: 0, max: 2}, autoscaling: true, pricing: spot}
    - {name: steady, machine: n1-standard-8, accelerator: {type: V100-SXM2-16, count: 1},
       nodes: {initial: 0, min: 0, max: 2}, autoscaling: true, fallback_for: spot, after: 5min}
)";
  const Exported out = exported_manifest(text, {});
  CHECK(out.errors.empty());
  CHECK(out.yaml.find("cloud.google.com/gke-spot: \"true\"") == std::string::npos);
  CHECK(count(out.yaml, "- steady") == 1);  // required: either of them
  CHECK(count(out.yaml, "- spot") == 2);    // and preferred
  CHECK(count(out.yaml, "weight: 100") == 1);
  // Either may be the spot pool: its taint is tolerated, and no more than its notice promised.
  std::string other = text;
  other.replace(other.find(", pricing: spot"), 15, "");
  other.replace(other.find("after: 5min"), 11, "after: 5min, pricing: spot");
  for (const std::string& mix : {text, other}) {
    const std::string yaml = exported_manifest(mix, {}).yaml;
    CHECK_THAT(yaml, Contains("- key: cloud.google.com/gke-spot\n") &&
                         Contains("terminationGracePeriodSeconds: 15\n"));
  }
}

TEST_CASE("pods that meet mount a Secret, which is no part of the manifests unless it is given") {
  const Exported e = exported_manifest(kServers, {});
  CHECK(count(e.yaml, "kind: Secret") == 0);
  CHECK(count(e.yaml, "secretName: two-servers-secret\n") == 2);  // workers and servers
  CHECK(count(e.yaml, "defaultMode: 256\n") == 2);                // 0400
  CHECK(count(e.yaml, "- \"--secret-file\"\n") + count(e.yaml, "- --secret-file\n") == 2);
  CHECK(count(e.yaml, "- /secret/job.secret\n") == 2);
  CHECK(count(e.yaml, "mountPath: /secret\n            readOnly: true\n") +
            count(e.yaml, "mountPath: /secret\n              readOnly: true\n") ==
        2);
  const std::string digits(64, 'a');
  const Exported with = exported_manifest(kServers, {.job_secret = digits});
  CHECK(count(with.yaml, "kind: Secret") == 1);
  CHECK(count(with.yaml, "job.secret: " + digits) == 1);
  CHECK(count(with.yaml, digits) == 1);
}

TEST_CASE("a process by itself and a program of one's own have no secret") {
  const std::string alone = R"(
name: alone
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 32
  strategy: {kind: single}
cluster:
  provider: gcp
  service: gke
  region: us-central1
  zone: us-central1-c
  pools: [{name: cpus, machine: n1-standard-8, nodes: 1}]
)";
  const std::string digits(64, 'a');
  CHECK_THAT(exported_manifest(alone, {.job_secret = digits}).yaml,
             Contains("kind: Job") && !Contains("ecret"));
}

TEST_CASE("an operator's job leaves the wiring to the operator") {
  const Exported e = exported_manifest(kServers, {.as = JobShape::tfjob});
  CHECK_THAT(e.yaml, Contains("kind: TFJob") && Contains("PS:") && Contains("Worker:"));
  CHECK_THAT(e.yaml, !Contains("TF_CONFIG") && !Contains("kind: Service\n"));
}

TEST_CASE("what cannot be written is refused all at once, at its place") {
  const Exported e =
      exported_manifest(kServers, {.minor = 20, .as = JobShape::pytorchjob, .bucket = ""});
  CHECK_THAT(e.errors, Contains("s.yaml:8") && Contains("no parameter servers"));
  std::string none = kServers.substr(0, kServers.find("    - {name: servers"));
  none.erase(none.find(", parameter_servers: 2"), 22);
  CHECK_THAT(exported_manifest(none, {.minor = 20}).errors,
             Contains("s.yaml:8") && Contains("the variables are on the chief's host"));
  CHECK_THAT(exported_manifest(kServers, {.minor = 20, .as = JobShape::jobset}).errors,
             Contains("Kubernetes 1.20 lacks"));
}

TEST_CASE("a program of one's own is told all that TensorFlow, torchrun and JAX read") {
  std::string text = kServers;
  text.replace(text.find("kind: parameter_server, workers: 3, parameter_servers: 2"), 56,
               "kind: multi_worker_mirrored, workers: 3");
  text.replace(
      text.find("  model: resnet50\n"), 18,
      "  container: {image: \"my/image:3\", command: [python, train.py], env: {LR: \"0.1\"}, "
      "profile: resnet50}\n");
  text.erase(text.find("    - {name: servers"));
  const Exported e = exported_manifest(text, {});
  CHECK(e.errors.empty());
  for (const char* name : {"TF_CONFIG", "RANK", "PET_NNODES", "JAX_COORDINATOR_ADDRESS", "LR"})
    CHECK_THAT(e.yaml, Contains("name: " + std::string(name) + "\n"));
  CHECK_THAT(e.yaml, Contains("image: \"my/image:3\"") && !Contains("reckon-worker"));
  CHECK_THAT(e.yaml, !Contains("ecret"));  // it would not know what to do with one
  // What is the user's stands below all that it may refer to.
  CHECK(e.yaml.find("name: LR\n") > e.yaml.find("name: JAX_PROCESS_ID\n"));
  // Nobody, on a root that cannot be written to, whose lines come at once.
  for (const char* name : {"RECKON_JOB_DIR", "HOME", "USER", "PYTHONUNBUFFERED"})
    CHECK_THAT(e.yaml, Contains("name: " + std::string(name) + "\n"));
  // Watched it is the same program; its metrics may be read from outside.
  text.replace(text.find("profile: resnet50}"), 18,
               "profile: resnet50, metrics: {prometheus: \":9100/m\"}}");
  text.replace(text.find("[python, train.py]"), 18, "[python, train.py, --job-dir]");
  const Exported watched = exported_manifest(text, {.minor = 31, .attempt = 0, .watched = true});
  CHECK(watched.errors.empty());
  CHECK_THAT(watched.yaml, Contains("- \"--job-dir\"\n            - \"$(RECKON_JOB_DIR)\"\n"));
  CHECK_THAT(watched.yaml, Contains("containerPort: 9100") && Contains("port: 9100\n"));
  CHECK_THAT(watched.yaml, Contains("backoffLimit: 0") && !Contains("--log-records"));
}

TEST_CASE("the commands for a cluster name each pool with its bounds") {
  const Expected<ScenarioFile> file = parse_scenario(kServers, "s.yaml");
  const Expected<Plan> plan = make_plan(*file, shipped_catalog());
  const auto commands = gcloud_commands(*file, *plan);
  REQUIRE(commands);
  CHECK_THAT(*commands, Contains("gcloud container node-pools create gpus \\\n"));
  CHECK_THAT(*commands, Contains("--accelerator=type=nvidia-tesla-v100,count=1 \\\n"));
  CHECK_THAT(*commands, Contains("--num-nodes=3 \\\n    --spot\n"));
  CHECK_THAT(*commands, Contains("node-pools create servers"));
}

TEST_CASE("a namespace of the job's own lets in pods of the restricted standard alone") {
  const char* const kRestricted = "pod-security.kubernetes.io/enforce: restricted\n";
  CHECK_THAT(exported_manifest(kServers, {}).yaml, Contains(kRestricted));
  CHECK_THAT(exported_manifest(kServers, {.name_space = "team", .watched = true}).yaml,
             Contains(kRestricted));
  // It may be there, with pods of others.
  const std::string named = exported_manifest(kServers, {.name_space = "team"}).yaml;
  CHECK_THAT(named, !Contains("/enforce") && Contains("io/warn: restricted\n"));
  // What others put into the pods does not satisfy it.
  CHECK_THAT(exported_manifest(kServers, {.bucket = "b"}).yaml, Contains("io/enforce: baseline\n"));
}

TEST_CASE("pods satisfy the restricted standard") {  // Kubernetes, "Pod Security Standards"
  const std::string yaml = exported_manifest(kServers, {}).yaml;
  const std::size_t pods = count(yaml, "containers:\n");
  CHECK(pods == 2);
  for (const char* line : {"runAsNonRoot: true\n", "type: RuntimeDefault\n",
                           "allowPrivilegeEscalation: false\n", "- ALL\n"})
    CHECK(count(yaml, line) == pods);
  for (const char* none : {"hostPath", "hostNetwork", "hostPort", "hostPID", "privileged:"})
    CHECK_THAT(yaml, !Contains(none));
}

TEST_CASE("every volume of a node's disk or memory has a limit") {
  const std::string yaml = exported_manifest(kServers, {}).yaml;
  CHECK(count(yaml, "emptyDir:\n") == 4);
  CHECK(count(yaml, "sizeLimit: ") == 4);
  CHECK_THAT(yaml, !Contains("emptyDir: {}"));
  // Half of the pod's memory, as tmpfs takes of a machine's.
  const auto number_behind = [&](const char* key) {
    return std::stoll(yaml.substr(yaml.find(key) + std::string(key).size()));
  };
  CHECK(number_behind("medium: Memory\n            sizeLimit: \"") > 1000);
}

TEST_CASE("names are asked of the cluster's name servers, and of nobody else") {
  const std::string yaml = exported_manifest(kServers, {}).yaml;
  const std::string policy = yaml.substr(yaml.find("kind: NetworkPolicy"));
  const std::string egress = policy.substr(policy.find("  egress:\n"));
  const std::string names = egress.substr(0, egress.find("---"));
  CHECK_THAT(names, Contains("kubernetes.io/metadata.name: kube-system\n") &&
                        Contains("k8s-app: kube-dns\n"));
  CHECK(count(names, "port: 53\n") == 2);
  CHECK(count(names, "- ports:") == 0);                         // each rule says to whom
  CHECK_THAT(names, Contains("cidr: \"169.254.169.254/32\""));  // Cloud DNS of GKE
  // Before 1.21 namespaces have no label with their name.
  CHECK_THAT(exported_manifest(kServers, {.minor = 20}).yaml,
             !Contains("metadata.name: kube-system"));
}

TEST_CASE("what Kubernetes reads in a word is doubled where the word is ours to keep") {
  CHECK(literal_word("r$(HOME)$$x") == "r$$(HOME)$$$$x");
  CHECK(literal_word("plain") == "plain");
}
