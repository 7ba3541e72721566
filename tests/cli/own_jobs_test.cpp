#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

// Trainings of one's own in a queue: the step model says how long they take on each pool.
using namespace reckon::test;
using nlohmann::json;

namespace {

const std::string kOwnJob = RECKON_SOURCE_DIR "/scenarios/own-a100-job.yaml";

json own_answer(const Workspace& w, const std::string& words) {
  const Output r = w.run("simulate " + words + " --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  return json::parse(r.out);
}

/// One job of 16 GPUs, on nodes with eight each; `pool` says what they are.
void write_queue(const Workspace& w, const std::string& pool, const std::string& fabric = "") {
  w.write("jobs.csv", "submit_seconds,duration_seconds,gpus,job\n0,,16," + kOwnJob + "\n");
  w.write("q.yaml",
          "name: q\ntrace: {file: jobs.csv, format: csv}\ncluster:\n"
          "  provider: on_premises\n  scheduler: {policy: fifo}\n" +
              fabric + "  pools:\n    - " + pool + "\n");
}

const std::string kOwnA100 =
    "{name: a100, nodes: 8, accelerator: {type: A100-SXM4-80, count: 8}, machine: {vcpu: 128, "
    "memory: 1TiB, network: 800Gbps}}";

}  // namespace

TEST_CASE("a training in a queue takes as long as simulate says that it takes") {
  const Workspace w;
  write_queue(w, kOwnA100);
  const json alone = own_answer(w, "'" + kOwnJob +
                                       "' --set disruptions.failures=none --set "
                                       "disruptions.maintenance=none --replications 400");
  const json queued = own_answer(w, "q.yaml");
  CHECK(queued["jct_seconds"]["mean"].get<double>() ==
        Approx(alone["time_seconds"]["p50"].get<double>()).epsilon(0.05));
}

TEST_CASE("a training is faster on faster nodes, and on those it does not run it is never put") {
  const Workspace w;
  write_queue(w, kOwnA100);
  const double a100 = own_answer(w, "q.yaml")["jct_seconds"]["mean"];
  write_queue(w,
              "{name: h100, nodes: 8, accelerator: {type: H100-SXM5-80, count: 8}, machine: {vcpu: "
              "128, memory: 1TiB, network: 800Gbps}}");
  CHECK(own_answer(w, "q.yaml")["jct_seconds"]["mean"].get<double>() < a100);
  // A K80 has no fp16, which the training asks for.
  write_queue(w,
              "{name: k80, nodes: 8, accelerator: {type: K80, count: 8}, machine: {vcpu: 128, "
              "memory: 1TiB, network: 800Gbps}}\n    - " +
                  kOwnA100);
  const json mixed = own_answer(w, "q.yaml");
  CHECK(mixed["jct_seconds"]["mean"].get<double>() == Approx(a100));
  // With the place in the file that asks for it.
  CHECK(contains(mixed["warnings"].dump(), "are kept off pool k80: " + kOwnJob));
  CHECK(contains(mixed["warnings"].dump(), "K80 has no fp16"));
}

TEST_CASE("a gang that is spread over leaves of a narrow network trains more slowly") {
  const Workspace w;
  const std::string slow =
      "{name: a100, nodes: 8, accelerator: {type: A100-SXM4-80, count: 8}, machine: {vcpu: 128, "
      "memory: 1TiB, network: 25Gbps}}";
  write_queue(w, slow, "  fabric: {nodes_per_leaf: 2, oversubscription: 8}\n");
  const double together = own_answer(w, "q.yaml")["jct_seconds"]["mean"];
  write_queue(w, slow, "  fabric: {nodes_per_leaf: 1, oversubscription: 8}\n");
  CHECK(own_answer(w, "q.yaml")["jct_seconds"]["mean"].get<double>() > together * 1.01);
}

TEST_CASE("a file that is no training, or is not there, is told where the list is named") {
  const Workspace w;
  write_queue(w, kOwnA100);
  w.write("jobs.csv", "submit_seconds,duration_seconds,gpus,job\n0,,16,nowhere.yaml\n");
  const Output r = w.run("simulate q.yaml");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "'nowhere.yaml' runs on no pool on 16 GPUs"));
  CHECK(contains(r.err, "is not found"));
  w.write("jobs.csv", "submit_seconds,duration_seconds,gpus,job\n0,,16,q.yaml\n");
  CHECK(contains(w.run("simulate q.yaml").err, "is not a scenario with one training job"));
}

TEST_CASE("the shipped scenarios with trainings and shared GPUs are answered") {
  const Workspace w;
  const std::string folder = RECKON_SOURCE_DIR "/scenarios/";
  const json own = own_answer(w, "'" + folder + "shared-own-jobs.yaml'");
  CHECK(own["jobs"]["never"] == 0);
  CHECK(own["goodput"].get<double>() < 1);  // some train on the slower nodes
  const json shared = own_answer(w, "'" + folder + "shared-notebooks.yaml'");
  CHECK(shared["jobs"]["never"] == 0);
  CHECK(shared["gpus"] == 56);
  const json whole = own_answer(w, "'" + folder +
                                       "shared-notebooks.yaml' --set "
                                       "cluster.pools.mig.accelerator.shared.devices=1");
  CHECK(whole["waiting_seconds"]["p95"] > shared["waiting_seconds"]["p95"]);
}
