#include <catch2/catch.hpp>

#include "cli/run_reckon.h"

// A provider that no code knows: tests/catalogs/nimbus is all that there is of it.
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kCatalog = " --catalog " RECKON_SOURCE_DIR "/tests/catalogs/nimbus";

std::string training(const std::string& cluster) {
  return "name: on-nimbus\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 1}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: {kind: multi_worker_mirrored, workers: 2}\n"
         "cluster:\n" +
         cluster + "forecast: {replications: 20, seed: 1}\n";
}

const std::string kProviderSpot =
    "  provider: nimbus\n"
    "  region: north-1\n"
    "  zone: north-1-b\n"
    "  pools:\n"
    "    - name: t4\n"
    "      machine: g4-t4\n"
    "      nodes: {initial: 0, min: 0, max: 2}\n"
    "      autoscaling: true\n"
    "      pricing: spot\n";

}  // namespace

TEST_CASE("a provider of a user's catalog is simulated by its rules and prices") {
  const Workspace w;
  const std::string file = w.write("nimbus.yaml", training(kProviderSpot));
  const Output r = w.run("simulate " + file + kCatalog + " --memo memo.md");
  INFO(r.out << r.err);
  REQUIRE(r.code == 0);
  CHECK_THAT(r.out, Contains("prices as of 2026-11-01"));
  // Of the provider's 45 s its service leaves 20 s to pods.
  CHECK_THAT(r.out, Contains("On a reclaim notice (20.0 s)"));
  CHECK_THAT(read_all(w.path("memo.md")), Contains("nimbus nks in north-1"));
}

TEST_CASE("a provider of a user's catalog is planned and compared with others") {
  const Workspace w;
  const std::string file = w.write("nimbus.yaml", training(kProviderSpot));
  const Output plan = w.run("plan " + file + kCatalog +
                            " --provider nimbus,gcp --accelerator T4 --nodes 1..2 --pricing "
                            "on_demand --replications 20");
  INFO(plan.out << plan.err);
  REQUIRE(plan.code == 0);
  CHECK_THAT(plan.out, Contains("nimbus south-1"));  // 0.40 USD/h for one T4: the least

  const std::string other = w.write(
      "gcp.yaml",
      training("  provider: gcp\n  region: us-central1\n  pools:\n    - {name: t4, machine: "
               "n1-standard-16, accelerator: {type: T4, count: 4}, nodes: 2}\n"));
  const Output compared = w.run("compare " + file + " " + other + kCatalog);
  INFO(compared.out << compared.err);
  REQUIRE(compared.code == 0);
  CHECK_THAT(compared.out, Contains("on-nimbus"));
}

TEST_CASE("a plan without a file asks every provider that rents on demand and on spot") {
  const Workspace w;
  const std::string question =
      "plan --model resnet50 --epochs 1 --accelerator T4 --nodes 1 --pricing on_demand "
      "--replications 10 --format json";
  const auto places_of = [&](const std::string& options) {
    const Output plan = w.run(question + options);
    INFO(plan.out << plan.err);
    REQUIRE(plan.code == 0);
    return plan.out;
  };
  CHECK_THAT(places_of(kCatalog), Contains("nimbus"));  // the least for one T4
  CHECK_THAT(places_of(""), !Contains("nimbus"));
}

TEST_CASE("a provider of a user's catalog is exported and imported by its own labels") {
  const Workspace w;
  const std::string file = w.write("nimbus.yaml", training(kProviderSpot));
  const Output pods = w.run("export kubernetes " + file + kCatalog);
  INFO(pods.out << pods.err);
  REQUIRE(pods.code == 0);
  CHECK_THAT(pods.out, Contains("nimbus.example/pool: t4"));
  CHECK_THAT(pods.out, Contains("nimbus.example/gpu: tesla-t4"));
  CHECK_THAT(pods.out, Contains("terminationGracePeriodSeconds: 20"));

  const Output cluster = w.run("export gcloud " + file + kCatalog);
  CHECK(cluster.code == 2);
  CHECK_THAT(cluster.err, Contains("not of nks"));
  const Output bucket = w.run("export kubernetes " + file + kCatalog + " --bucket b");
  CHECK(bucket.code == 2);
  CHECK_THAT(bucket.err, Contains("a bucket cannot be mounted on Nimbus Kubernetes"));

  const std::string job = w.write(
      "job.yaml",
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: t}\nspec:\n  parallelism: 2\n"
      "  completions: 2\n  completionMode: Indexed\n  template:\n    spec:\n"
      "      nodeSelector: {nimbus.example/gpu: tesla-t4}\n"
      "      containers:\n      - {name: c, image: i, resources: {limits: {nvidia.com/gpu: 4}}}\n");
  const Output imported =
      w.run("import kubernetes " + job + " --model resnet50 --region north-1" + kCatalog);
  INFO(imported.out << imported.err);
  REQUIRE(imported.code == 0);
  CHECK_THAT(imported.out, Contains("provider: nimbus") && Contains("machine: g4-t4"));
}

TEST_CASE("tables and mistakes name a provider of a user's catalog") {
  const Workspace w;
  const Output listed = w.run("catalog list providers" + kCatalog);
  REQUIRE(listed.code == 0);
  CHECK_THAT(listed.out, Contains("Nimbus Cloud") && Contains("Google Cloud"));
  const Output services = w.run("catalog list services" + kCatalog);
  REQUIRE(services.code == 0);
  CHECK_THAT(services.out, Contains("Nimbus Kubernetes"));
  const Output shown = w.run("catalog show T4" + kCatalog);
  CHECK_THAT(shown.out, Contains("g4-t4"));

  const std::string file = w.write("nimbus.yaml", training(kProviderSpot));
  const Output unknown = w.run("simulate " + file);
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, Contains("nimbus.yaml:10:13: error: unknown provider 'nimbus'") &&
                              Contains("providers of the catalog: gcp, aws"));
  const auto error_of = [&](const std::string& change) {
    return w.run("simulate " + file + kCatalog + " --set " + change).err;
  };
  CHECK_THAT(error_of("cluster.provider=nimbos"), Contains("did you mean 'nimbus'?"));
  CHECK_THAT(error_of("cluster.region=east-1"), Contains("regions of nimbus in the catalog"));
  CHECK_THAT(error_of("cluster.pools.t4.machine=g8-t4"), Contains("machines of nimbus"));
  CHECK_THAT(error_of("cluster.service=gke"),
             Contains("provider nimbus has no service gke") && Contains("its services: nks, none"));
}

TEST_CASE("what a provider's entry lacks is said, all of it") {
  const Workspace w;
  w.write("c/providers.yaml", "thin:\n  services: [kks]\n  owned: maybe\n  colour: blue\n");
  const Output r = w.run("catalog check " + w.path("c").string());
  CHECK(r.code == 2);
  for (const char* what :
       {"'called' is missing", "unknown service 'kks'", "owned is 'maybe'", "unknown key 'colour'",
        "'provisioning.gpu_s' is missing", "'billing.minimum_s' is missing"}) {
    INFO(what << "\n" << r.out << r.err);
    CHECK_THAT(r.err, Contains(what));
  }
}
