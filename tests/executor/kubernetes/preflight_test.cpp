#include "executor/kubernetes/preflight.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "executor/kubernetes/fake_kubectl.h"
#include "executor/kubernetes/run_state.h"

using namespace reckon;
using namespace reckon::kubernetes;
using Catch::Matchers::Contains;
using reckon::test::FakeKubectl;

namespace {

/// A cluster of one node with two cores. Files change its mind: `may-not` lists verbs that are
/// forbidden, `there` objects that exist, `quota` is the list of quotas, `no-namespace` takes the
/// namespace away.
const char* const kPreflightCluster = R"(
shift 2  # --namespace ns
missing() { echo 'Error from server (NotFound): not found' >&2; exit 1; }
case "$*" in
  "version"*) echo '{"serverVersion": {"major": "1", "minor": "31+"}}' ;;
  "get namespace ns"*) if [ -e no-namespace ]; then missing; fi ;;
  "auth can-i --quiet "*) shift 3; ! grep -qxF "$*" may-not 2>/dev/null ;;
  "get resourcequotas"*) cat quota ;;
  "get storageclasses"*) echo '{"items": [{"metadata": {"name": "slow"}}]}' ;;
  "get configmap "*) grep -q 'get configmaps' may-not 2>/dev/null && {
    echo 'Error from server (Forbidden): no' >&2; exit 1; }
    grep -qxF "$2 $3" there 2>/dev/null || missing; echo '{"metadata": {}}' ;;
  "get nodes"*) if [ -e nodes ]; then cat nodes; exit; fi
    echo '{"items": [{"metadata": {"name": "a"}, "status": {
    "conditions": [{"type": "Ready", "status": "True"}],
    "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110"}}}]}' ;;
  "get "*) grep -qxF "$2 $3" there 2>/dev/null || missing; echo '{"metadata": {}}' ;;
  "apply --filename - --dry-run=server"*)
    if grep -q configmaps may-not 2>/dev/null; then
      echo 'Error from server (Forbidden): configmaps "a-0-plan" is forbidden' >&2; exit 1
    fi
    cat jobs ;;
  "apply --filename - --dry-run=client"* | "create --filename - --dry-run=client"*) cat jobs ;;
  *) echo "what is $*?" >&2; exit 9 ;;
esac
)";

std::string jobs(const std::string& cpu) {
  return R"({"kind": "Job", "metadata": {"name": "a-0-worker"}, "spec": {"parallelism": 3,
    "template": {"spec": {"containers": [{"resources": {"requests": {"cpu": ")" +
         cpu + R"("}}}]}}}})";
}

struct Example {
  Example() : fake(kPreflightCluster) {
    fake.write("jobs", jobs("500m"));
    fake.write("quota", R"({"items": []})");
    fake.write("there", "persistentvolumeclaim disk\n");
  }
  PreflightAnswer ask() const {
    const Kubectl kubectl = fake.kubectl();
    return preflight(kubectl, cluster_facts(kubectl), question);
  }
  FakeKubectl fake;
  PreflightQuestion question{
      .manifests = "x", .run = "a", .claim = "disk", .storage_class = {}, .pull_secret = {}};
};

}  // namespace

TEST_CASE("a cluster that has what a job needs has no problem with it") {
  const Example e;
  CHECK(cluster_facts(e.fake.kubectl()).minor == 31);
  const PreflightAnswer answer = e.ask();
  INFO(format(answer.problems));
  CHECK(answer.problems.empty());
  CHECK(answer.warnings.empty());
}

TEST_CASE("all that keeps a job from running is told at once, with what to do") {
  Example e;
  e.fake.write("may-not", "patch jobs.batch\nget pods --subresource=log\n");
  e.fake.write("there", "configmap a-run\n");
  e.fake.write("jobs", jobs("3"));
  e.fake.write("quota", R"({"items": [{"metadata": {"name": "q"}, "status": {
    "hard": {"requests.cpu": "8", "pods": "10"},
    "used": {"requests.cpu": "500m", "pods": "0"}}}]})");
  e.question.pull_secret = "key";
  const PreflightAnswer answer = e.ask();
  const std::string text = format(answer.problems);
  CHECK(answer.problems.size() == 6);
  CHECK_THAT(text, Contains("you may not, in namespace ns: patch jobs.batch: ends an attempt, get "
                            "pods/log: reads the ranks' progress"));
  CHECK_THAT(text, Contains("a run 'a' is in namespace ns already"));
  CHECK_THAT(text, Contains("there is no volume claim 'disk'"));
  CHECK_THAT(text, Contains("there is no secret 'key'"));
  CHECK_THAT(text, Contains("no node has room for a pod of job a-0-worker (of 1 nodes; 1: 2 cores "
                            "where 3 cores is asked for)"));
  CHECK_THAT(text, Contains("quota q leaves 7.5 of requests.cpu, and the job asks for 9"));
  CHECK(answer.no_room);
}

TEST_CASE("who may not do much is told so once, and still learns what would not fit") {
  Example e;
  e.fake.write("may-not", "create configmaps\nget configmaps\n");
  e.fake.write("jobs", jobs("3"));
  const PreflightAnswer answer = e.ask();
  const std::string text = format(answer.problems);
  INFO(text << format(answer.warnings));
  CHECK(answer.warnings.empty());
  CHECK(answer.problems.size() == 2);
  CHECK_THAT(text, Contains("you may not, in namespace ns: create configmaps: holds the plan, get "
                            "configmaps"));
  CHECK_THAT(text, Contains("no node has room for a pod of job a-0-worker"));
}

TEST_CASE("an image that no node can pull or run is told before anything is applied") {
  Example e;
  const auto with_image = [&](const std::string& image) {
    e.fake.write("jobs", R"({"kind": "Job", "metadata": {"name": "a-0-worker"}, "spec": {
      "parallelism": 1, "template": {"spec": {"containers": [{"image": ")" +
                             image + R"(", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}}})");
    return e.ask();
  };
  const auto node = [](const std::string& name, const std::string& labels) {
    return R"({"metadata": {"name": ")" + name + R"(", "labels": {)" + labels +
           R"(}}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "1"}}})";
  };
  const std::string old = node("old", R"("nvidia.com/cuda.runtime.major": "11")");
  const std::string current = node("new", R"("nvidia.com/cuda.runtime-version.major": "13")");
  e.fake.write("nodes", R"({"items": [)" + old + "]}");
  CHECK(with_image("host/train:cuda11.8").problems.empty());
  CHECK_THAT(
      format(with_image("host/train:cuda12.4").problems),
      Contains("image host/train:cuda12.4 cannot run on 1 of 1 nodes: the driver has CUDA 11 "
               "and the image needs 12"));
  CHECK_THAT(
      format(with_image("host/TRAIN:1").problems),
      Contains("no node can pull the image 'host/TRAIN:1': 'host/TRAIN' has capital letters"));
  // With other nodes that could hold it there is a way.
  e.fake.write("nodes", R"({"items": [)" + old + ", " + current + "]}");
  const PreflightAnswer mixed = with_image("host/train:cuda12.4");
  CHECK(mixed.problems.empty());
  CHECK_THAT(format(mixed.warnings), Contains("cannot run on 1 of 2 nodes"));
}

TEST_CASE("a pool that grows may get the nodes that are not there yet") {
  Example e;
  e.fake.write("jobs", jobs("3"));
  e.question.autoscaling = true;
  const PreflightAnswer answer = e.ask();
  CHECK(answer.problems.empty());
  CHECK(!answer.no_room);
  CHECK(answer.warnings.size() == 1);
}

TEST_CASE("a namespace that is still to be made has neither the claim nor the secret") {
  Example e;
  e.question.pull_secret = "key";
  e.fake.write("there", "persistentvolumeclaim disk\nsecret key\n");
  CHECK(e.ask().problems.empty());
  e.fake.write("no-namespace", "");
  const std::string text = format(e.ask().problems);
  CHECK_THAT(text, Contains("there is no volume claim 'disk' in namespace ns, which does not exist "
                            "yet\n    make both before the run"));
  CHECK_THAT(text, Contains("there is no secret 'key' in namespace ns, which does not exist yet\n"
                            "    kubectl create namespace ns; kubectl create secret"));
  e.question.claim.clear();
  e.question.pull_secret.clear();
  CHECK(e.ask().problems.empty());  // the run makes the namespace, and the claim in it
}

TEST_CASE("a secret with the keys of a store that is not there is told, by its name alone") {
  Example e;
  e.question.store_secret = "photos";
  CHECK_THAT(format(e.ask().problems),
             Contains("there is no secret 'photos' in namespace ns\n    kubectl create secret "
                      "generic photos --namespace ns --from-env-file=FILE, with the lines "
                      "AWS_ACCESS_KEY_ID=... and AWS_SECRET_ACCESS_KEY=..."));
  e.fake.write("there", "persistentvolumeclaim disk\nsecret photos\n");
  CHECK(e.ask().problems.empty());
}

TEST_CASE("a claim that nobody would ever serve is a problem") {
  Example e;
  e.question.claim.clear();
  e.question.makes_claim = true;
  CHECK_THAT(format(e.ask().problems), Contains("no default storage class") && Contains("(slow)"));
  e.question.storage_class = "slow";
  CHECK(e.ask().problems.empty());
  e.question.storage_class = "fast";
  CHECK_THAT(format(e.ask().problems), Contains("there is no storage class 'fast'"));
}

TEST_CASE("who may not make a secret is told so, where the job wants one") {
  Example e;
  e.fake.write("may-not", "create secrets\ndelete secrets\n");
  CHECK(e.ask().problems.empty());
  e.question.makes_secret = true;
  const std::string text = format(e.ask().problems);
  CHECK_THAT(text, Contains("create secrets: the job's processes know each other by it, delete "
                            "secrets"));
}

TEST_CASE("a run's secret is new each time, and on no command line") {
  const FakeKubectl fake(R"(
echo "$*" >> commands
case "$*" in *create*) cat >> made; echo >> made ;; esac
)");
  for (int k = 0; k < 2; ++k)
    renew_secret(fake.kubectl(), "ring", {.object = "ring-secret", .key = "job.secret"});
  const std::string commands = fake.read("commands");
  CHECK_THAT(commands, Contains("delete secret ring-secret --ignore-not-found"));
  std::istringstream made(fake.read("made"));
  std::vector<std::string> secrets;
  for (std::string line; std::getline(made, line);) {
    const Json secret = Json::parse(line);
    CHECK(secret.at("kind") == "Secret");
    CHECK(secret.at("metadata").at("name") == "ring-secret");
    CHECK(secret.at("metadata").at("labels").at("app.kubernetes.io/instance") == "ring");
    secrets.push_back(secret.at("stringData").at("job.secret"));
    CHECK(secrets.back().find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(secrets.back().size() == 64);
    CHECK_THAT(commands, !Contains(secrets.back().substr(0, 8)));
  }
  REQUIRE(secrets.size() == 2);
  CHECK(secrets[0] != secrets[1]);
}

TEST_CASE("deleting a run deletes its secret, where one may") {
  const FakeKubectl fake(R"(
echo "$*" >> commands
case "$*" in
  *"delete secrets"*) [ ! -e no ] || { echo 'Error from server (Forbidden): no' >&2; exit 1; }
    echo 'secret "ring-secret" deleted' ;;
  *) echo 'job.batch "ring-0" deleted' ;;
esac
)");
  CHECK(delete_run(fake.kubectl(), "ring", false) ==
        "job.batch \"ring-0\" deleted\nsecret \"ring-secret\" deleted\n");
  fake.write("no", "");
  CHECK(delete_run(fake.kubectl(), "ring", false) == "job.batch \"ring-0\" deleted\n");
}

TEST_CASE("a cluster that is too old says so") {
  const FakeKubectl fake("echo '{\"serverVersion\": {\"minor\": \"19\"}}'");
  CHECK_THROWS_WITH(cluster_facts(fake.kubectl()), Contains("1.20 and later"));
}

TEST_CASE("the state of a run is read as it was written, and its newest attempt by its Jobs") {
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "create --filename") cat > state ;;
  "get configmap") [ -e state ] && cat state || { echo '(NotFound)' >&2; exit 1; } ;;
  "get jobs") echo '{"items": [
    {"metadata": {"labels": {"reckon/attempt": "9"}}, "spec": {"parallelism": 4}},
    {"metadata": {"labels": {"reckon/attempt": "10"}, "annotations": {"reckon/start": "12"}},
     "spec": {"parallelism": 3}},
    {"metadata": {"labels": {"reckon/attempt": "10"}}, "spec": {"parallelism": 0}}]}' ;;
esac)");
  const Kubectl kubectl = fake.kubectl();
  CHECK(!read_state(kubectl, "a"));
  create_state(kubectl, {.run = "a",
                         .plan = "name: a\n# \"quoted\"\n",
                         .words = {"--set", "x=1, 2"},
                         .started = "2026-11-22T03:00:00.000Z",
                         .phase = RunPhase::stopping,
                         .reason = "why not"});
  const auto state = read_state(kubectl, "a");
  REQUIRE(state);
  CHECK(state->plan == "name: a\n# \"quoted\"\n");
  CHECK(state->words == Words{"--set", "x=1, 2"});
  CHECK(state->started == "2026-11-22T03:00:00.000Z");
  CHECK(state->phase == RunPhase::stopping);
  CHECK(state->reason == "why not");
  const auto newest = newest_attempt(kubectl, "a");
  REQUIRE(newest);
  CHECK(newest->objects == 10);  // not "9", which sorts behind it as text
  CHECK(newest->number == 12);   // pods that stayed were told two starts since
  CHECK(newest->pods_wanted == 3);
}

TEST_CASE("what interrupted a run is read as it was written, open or not") {
  const FakeKubectl fake(R"(
shift 2
case "$1 $2" in
  "patch configmap") printf '%s' "$7" > state ;;
  "get configmap") cat state ;;
esac)");
  const Kubectl kubectl = fake.kubectl();
  InterruptionRecord lost;
  lost.attempt = 2;
  lost.cause = Interruption::preemption;
  lost.rank = 7;
  lost.at = Seconds{12.5};
  lost.lost_steps = 3;
  lost.detail = "rank 7 \"node\" was taken back";
  InterruptionRecord later;
  later.attempt = 3;
  set_interruptions(
      kubectl, "a",
      {{.record = lost, .checkpoint = 120, .futile = true},
       {.record = later, .open = true, .done = 140, .step = Seconds{0.25}, .fruitless = true}});
  const auto state = read_state(kubectl, "a");
  REQUIRE(state);
  REQUIRE(state->interruptions.size() == 2);
  const KeptInterruption& first = state->interruptions[0];
  CHECK(to_line(first.record) == to_line(lost));
  CHECK(!first.open);
  CHECK(first.checkpoint == 120);
  CHECK(first.futile);
  CHECK(!first.fruitless);
  CHECK(!state->interruptions[1].checkpoint);
  CHECK(!state->interruptions[1].futile);
  CHECK(state->interruptions[1].fruitless);
  const KeptInterruption& second = state->interruptions[1];
  CHECK(second.record.attempt == 3);
  CHECK(second.open);
  CHECK(second.done == 140);
  CHECK(second.step == Seconds{0.25});
  fake.write("state", R"({"data": {"interruptions": "[{\"record\": {\"record\": \"new\"}}, 1]"}})");
  CHECK(read_state(kubectl, "a")->interruptions.empty());
}

TEST_CASE("who may not patch nodes is told that no Role of the namespace gives that") {
  Example e;
  e.fake.write("may-not", "patch nodes\n");
  CHECK(e.ask().problems.empty());
  e.question.cordons = true;
  const PreflightAnswer answer = e.ask();
  REQUIRE(answer.problems.size() == 1);
  CHECK(answer.problems[0].what == "you may not patch nodes, as --cordon-slow does");
  CHECK_THAT(answer.problems[0].hint, Contains("ClusterRole"));
}

TEST_CASE("a cluster that forbids Leases is warned of: nothing keeps a second launcher away") {
  Example e;
  e.fake.write("may-not", "create leases.coordination.k8s.io\nupdate leases.coordination.k8s.io\n");
  const PreflightAnswer answer = e.ask();
  CHECK(answer.problems.empty());
  REQUIRE(answer.warnings.size() == 1);
  CHECK_THAT(answer.warnings[0].what,
             Contains("you may not, in namespace ns: create leases, update leases; without"));
}
