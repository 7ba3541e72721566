#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

TEST_CASE("export writes the same manifests each time, to standard output or a file") {
  const Workspace w;
  const std::string plan = RECKON_SOURCE_DIR "/scenarios/gke-p100-autoscaling.yaml";
  const Output printed = w.run("export kubernetes " + plan + " --bucket b");
  CHECK(printed.code == 0);
  CHECK_THAT(printed.out, Contains("kind: Job\n") && Contains("bucketName: b\n"));
  CHECK(w.run("export kubernetes " + plan + " --bucket b --out m.yaml").code == 0);
  CHECK(read_all(w.path("m.yaml")) == printed.out);
}

TEST_CASE("export says what makes the job's secret, and holds one only where it is asked for") {
  const Workspace w;
  const std::string command =
      "export kubernetes " RECKON_SOURCE_DIR "/scenarios/gke-p100-autoscaling.yaml --bucket b ";
  const Output plain = w.run(command);
  CHECK(plain.code == 0);
  CHECK_THAT(plain.out,
             Contains("#   openssl rand -hex 32 | kubectl --namespace gke-p100-autoscaling create "
                      "secret generic gke-p100-autoscaling-secret \\\n"
                      "#     --from-file=job.secret=/dev/stdin\n") &&
                 !Contains("kind: Secret"));
  CHECK_THAT(w.run(command + "--namespace mine").out,
             Contains("--namespace mine create secret generic gke-p100-autoscaling-secret"));
  w.write("m.yaml", "an older file that everybody may read");
  CHECK(w.run(command + "--with-secret --out m.yaml").code == 0);
  const std::string first = read_all(w.path("m.yaml"));
  CHECK_THAT(first, Contains("kind: Secret\n") && !Contains("openssl rand"));
  using std::filesystem::perms;
  CHECK(std::filesystem::status(w.path("m.yaml")).permissions() ==
        (perms::owner_read | perms::owner_write));
  CHECK(w.run(command + "--with-secret").out != first);
}

TEST_CASE("export says what it does not know, and what cannot be written") {
  const Workspace w;
  const std::string plan = RECKON_SOURCE_DIR "/scenarios/aws-p4d-spot.yaml";
  const Output nowhere = w.run("export kubernets " + plan);
  CHECK(nowhere.code == 2);
  CHECK_THAT(nowhere.err, Contains("did you mean 'kubernetes'?"));
  CHECK(w.run("export kubernetes " + plan + " --kubernetes-version 2.1").code == 2);
  CHECK(w.run("export kubernetes " + plan + " --as jobsett").code == 2);
  const Output gcloud = w.run("export gcloud " + plan);
  CHECK(gcloud.code == 2);
  CHECK_THAT(gcloud.err, Contains("aws-p4d-spot.yaml:") && Contains("not of eks"));
  const Output bucket = w.run("export kubernetes " + plan + " --bucket b");
  CHECK(bucket.code == 2);
  CHECK_THAT(bucket.err, Contains("a bucket cannot be mounted on"));
}

TEST_CASE("a network that our server cannot answer with is exported for TensorFlow Serving alone") {
  const Workspace w;
  const auto service = [&](const char* model) {
    return w.write("s.yaml", std::string("name: s\nserving: {model: ") + model +
                                 ", precision: fp32, requests_per_second: 1, replicas: 1}\n"
                                 "cluster:\n  provider: gcp\n  region: us-central1\n  zone: "
                                 "us-central1-a\n  pools: [{name: cpus, role: inference, machine: "
                                 "n1-standard-8, nodes: 1}]\n");
  };
  const Output refused = w.run("export kubernetes " + service("bert_base") + " --as serving");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("--as tensorflow-serving"));
  CHECK(w.run("export kubernetes " + service("resnet50") + " --as serving").code == 0);
}

TEST_CASE("a pod of reckon-worker has all devices of a worker, and starts a rank for each") {
  const Workspace w;
  const std::string plan =
      "export kubernetes " RECKON_SOURCE_DIR "/scenarios/gke-p100-autoscaling.yaml --bucket b ";
  const Output two = w.run(plan);  // 3 workers of 2
  CHECK(two.code == 0);
  CHECK(two.err.empty());
  CHECK_THAT(two.out, Contains("completions: 3\n") && Contains("nvidia.com/gpu: 2\n"));
}

TEST_CASE("pods that go on with those that are left are exported with who watches them") {
  const Workspace w;
  const std::string plan = "export kubernetes '" RECKON_SOURCE_DIR
                           "/scenarios/small-gpt-zero3-cpu.yaml' --image mine:1 "
                           "--set 'workload.restart={kind: in_place}' ";
  const Output watched = w.run(plan);
  CHECK(watched.code == 0);
  CHECK_THAT(watched.err, Contains("a Job in the cluster watches the run") && !Contains("warning"));
  CHECK_THAT(watched.out, Contains("kind: RoleBinding\n") && Contains("--unattended") &&
                              Contains("small-gpt-zero3-cpu-launcher\n"));
  const Output alone = w.run(plan + "--as job");
  CHECK(alone.code == 0);
  CHECK_THAT(alone.err, Contains("warning: pods of reckon-worker do not restart in_place here"));
  CHECK_THAT(alone.out, !Contains("kind: RoleBinding\n"));
}

TEST_CASE("what does not fit is not exported, whatever its expectations ask") {
  const Workspace w;
  const std::string file = "'" RECKON_SOURCE_DIR "/scenarios/does-not-fit.yaml'";
  for (const char* to : {"kubernetes", "deepspeed"}) {
    const Output refused = w.run(std::string("export ") + to + " " + file);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, Contains("needs") && Contains("GiB"));
  }
}

TEST_CASE("each scenario of the repository is exported as planned, without a warning") {
  const Workspace w;
  constexpr const char* kQueue = "only 'reckon simulate' and 'reckon check' answer a ";
  constexpr const char* kSeveral = "a manifest is of one job, and the scenario has several";
  constexpr const char* kTpuV2 = "TPUs are nodes of GKE, and there are none with TPU-v2";
  const std::map<std::string, std::string> refused{
      {"does-not-fit", "needs 108 GiB of memory on each T4"},
      {"gavel-fifo", kQueue},
      {"gavel-max-min-fairness", kQueue},
      {"kueue-topology", kQueue},
      {"openb-fgd", kQueue},
      {"own-a100", kQueue},
      {"own-a100-overflow", kQueue},
      {"plan-fleet", kSeveral},
      {"retrain-nightly", kSeveral},
      {"retrain-nightly-serving", kSeveral},
      {"serving-t4", "the scenario serves and trains nothing"},
      {"shared-karpenter", "the cluster has no pools"},
      {"shared-kubernetes", kQueue},
      {"shared-kueue", kQueue},
      {"shared-notebooks", kQueue},
      {"shared-own-jobs", kQueue},
      {"shared-slurm", kQueue},
      {"tpu-v2-8", kTpuV2},
      {"tpu-v2-half-pod", kTpuV2}};
  for (const auto& file : std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/scenarios")) {
    if (file.path().extension() != ".yaml") continue;
    const std::string name = file.path().stem().string();
    const Output manifests = w.run("export kubernetes '" + file.path().string() + "'");
    INFO(name << "\n" << manifests.err);
    const auto why = refused.find(name);
    CHECK(manifests.code == (why == refused.end() ? 0 : 2));
    if (why != refused.end()) CHECK_THAT(manifests.err, Contains(why->second));
    if (name == "llama3-8b-tpu-v5p")
      CHECK_THAT(manifests.err, Contains("reckon export maxtext starts decoder models"));
    else
      CHECK_THAT(manifests.err, !Contains(": warning: "));
  }
}

TEST_CASE("a plan of TPUs that reckon-worker does not train says what starts it") {
  const Workspace w;
  for (const char* name : {"tpu-v2-8", "tpu-v2-half-pod"}) {
    const Output pods = w.run(std::string("export kubernetes '" RECKON_SOURCE_DIR "/scenarios/") +
                              name + ".yaml' --kubernetes-version 1.25");
    INFO(pods.err);
    CHECK(pods.code == 0);
    CHECK_THAT(pods.err,
               Contains("warning: the worker does not run strategy tpu\n    reckon export "
                        "maxtext starts decoder models; others: a JAX or TensorFlow "
                        "program of yours in workload.container\n"));
  }
}
