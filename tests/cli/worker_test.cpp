#include <catch2/catch.hpp>

#include <unistd.h>

#include "run_reckon.h"

// `reckon-worker` as its users start it: real processes, real files.
using namespace reckon::test;

namespace {

const std::string kWorker = "'" RECKON_BINARY_DIR "/bin/reckon-worker' ";

std::string plan(const std::string& workload, const std::string& strategy = "{kind: single}",
                 int nodes = 1) {
  return "name: tiny\nworkload:\n" + workload + "  train: {steps: 8}\n  strategy: " + strategy +
         "\n  checkpoint: {interval: none}\n"
         "cluster:\n  provider: gcp\n  service: gce\n  region: us-central1\n  zone: us-central1-a\n"
         "  pools: [{name: node, role: worker, machine: n1-standard-8, nodes: " +
         std::to_string(nodes) + "}]\n";
}
const std::string kRecords =
    "  model: mlp_boston_housing\n  dataset: {samples: 404, bytes_per_sample: 112B}\n"
    "  batch_per_accelerator: 16\n";

Output worker(const Workspace& w, const std::string& arguments) {
  return w.run_shell(kWorker + arguments);
}

}  // namespace

TEST_CASE("a worker alone trains a plan and leaves its measurements and parameters") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  const Output out = worker(w, "plan.yaml --out run");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  CHECK(contains(out.out, "step 7 loss "));
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("record":"run")"));
  CHECK(contains(log, R"("step":7)"));
  CHECK(contains(log, R"("finished":true)"));
  CHECK(std::filesystem::file_size(w.path("run/parameters.bin")) == 4 * 5121);  // its weights
}

TEST_CASE("a device that this worker cannot have is refused with the reason") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  // No CUDA in this build, no device here, or a network that devices do not train: an environment
  // that fails, or a wrong input.
  const Output out = worker(w, "plan.yaml --device cuda");
  CHECK((out.code == 3 || out.code == 2));
  CHECK(contains(out.err, "--device cuda: "));
  CHECK(worker(w, "plan.yaml --device cpu --steps 1").code == 0);
  const Output typo = worker(w, "plan.yaml --device cud");
  CHECK(typo.code == 2);
  CHECK(contains(typo.err, "did you mean 'cuda'"));
}

TEST_CASE("a run that is gone on with ends with the bits of one that was not interrupted") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  REQUIRE(worker(w, "plan.yaml --out whole").code == 0);
  REQUIRE(worker(w, "plan.yaml --out parts --steps 3").code == 0);
  const Output rest = worker(w, "plan.yaml --out parts");
  REQUIRE(rest.code == 0);
  CHECK_FALSE(contains(rest.out, "step 2 "));
  CHECK(contains(rest.out, "step 3 "));
  const std::string whole = read_all(w.path("whole/parameters.bin"));
  CHECK(!whole.empty());
  CHECK(read_all(w.path("parts/parameters.bin")) == whole);
}

TEST_CASE("two workers that meet by RANK train one model") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords, "{kind: multi_worker_mirrored, workers: 2}", 2));
  const Output out = w.run_shell("export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
                                 std::to_string(20000 + getpid() % 20000) + "; RANK=1 " + kWorker +
                                 "plan.yaml --out run --threads 1 & RANK=0 " + kWorker +
                                 "plan.yaml --out run --threads 1; code=$?; wait $! && exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(contains(out.out, "step 7 loss "));
  CHECK(contains(read_all(w.path("run/measurements.jsonl")), R"("rank":1,"step":7)"));
}

TEST_CASE("two workers with a parameter server end with the bits of two that all-reduce") {
  const Workspace w;
  w.write("mirrored.yaml", plan(kRecords, "{kind: multi_worker_mirrored, workers: 2}", 2));
  const std::string meet = "--workers 2 --threads 1 --master 127.0.0.1:";
  const int port = 20000 + getpid() % 20000;
  REQUIRE(w.run_shell(kWorker + "mirrored.yaml --rank 1 --out mirrored " + meet +
                      std::to_string(port) + " & " + kWorker +
                      "mirrored.yaml --rank 0 --out mirrored " + meet + std::to_string(port) +
                      "; code=$?; wait; exit $code")
              .code == 0);
  const std::string text = plan(
      kRecords, "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: synchronous}", 2);
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const std::string common = kWorker + "plan.yaml --servers 1 " + meet + std::to_string(port + 1);
  const Output out = w.run_shell(common + " --role ps --rank 0 & " + common +
                                 " --role worker --rank 1 --out run & " + common +
                                 " --role worker --rank 0 --out run; code=$?; wait; exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string bits = read_all(w.path("run/parameters.bin"));
  CHECK(!bits.empty());
  CHECK(bits == read_all(w.path("mirrored/parameters.bin")));
}

TEST_CASE("starts by hand are counted, on one clock") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  REQUIRE(worker(w, "plan.yaml --out run --steps 4").code == 0);
  const std::string first = read_all(w.path("run/measurements.jsonl"));
  const std::string key = R"("started":")";
  const std::size_t begin = first.find(key);
  REQUIRE(begin != std::string::npos);
  const std::string started = first.substr(begin, key.size() + 24);  // 2026-12-04T18:00:00.123Z
  REQUIRE(worker(w, "plan.yaml --out run").code == 0);
  const std::string second = read_all(w.path("run/measurements.jsonl")).substr(first.size());
  CHECK(contains(second, started));
  CHECK(contains(second, R"("attempt":1,"rank":0,"step":4,)"));
}

TEST_CASE("parameter servers are told apart in the measurements, and do not clip") {
  const Workspace w;
  const std::string text = plan(
      kRecords, "{kind: parameter_server, workers: 1, parameter_servers: 1, mode: synchronous}");
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const std::string common = kWorker +
                             "plan.yaml --servers 1 --workers 1 --threads 1 --master 127.0.0.1:" +
                             std::to_string(20000 + (getpid() + 4) % 20000);
  Output out = w.run_shell(common + " --role worker --rank 0 --set workload.optimizer.clip_norm=1");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "parameter servers do not clip gradients, and clip_norm is 1"));
  out = w.run_shell(common + " --role ps --rank 0 & " + common +
                    " --role worker --rank 0 --out run; code=$?; wait; exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("strategy":"parameter_server")"));
  CHECK(contains(log, R"("parameter_servers":1)"));
  CHECK(contains(log, R"("apply_seconds":)"));
}

TEST_CASE("asynchronous workers make checkpoints, and go on from them") {
  const Workspace w;
  const std::string text =
      plan(kRecords,
           "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: asynchronous}", 2);
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const auto job = [&](int attempt, const std::string& options) {
    const std::string common =
        kWorker + "plan.yaml --servers 1 --workers 2 --threads 1 --attempt " +
        std::to_string(attempt) +
        " --master 127.0.0.1:" + std::to_string(20000 + (getpid() + 2 + attempt) % 20000) + options;
    return w.run_shell(common + " --role ps --rank 0 & " + common +
                       " --role worker --rank 1 --out run & " + common +
                       " --role worker --rank 0 --out run; code=$?; wait; exit $code");
  };
  Output out = job(0, " --steps 5 --checkpoint-steps 2");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000005/manifest.json")));
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000000004/manifest.json")));
  out = job(1, "");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("action":"restore")"));
  for (const std::string rank : {"0", "1"}) {
    CHECK(contains(log, R"("attempt":1,"rank":)" + rank + R"(,"step":5,)"));
    CHECK(!contains(log, R"("attempt":1,"rank":)" + rank + R"(,"step":4,)"));
  }
}

TEST_CASE("the first of asynchronous workers waits for the last one's part of the result") {
  const Workspace w;
  const std::string text =
      plan(kRecords,
           "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: asynchronous}", 2);
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const std::string common = kWorker + "plan.yaml --servers 1 --workers 2 --threads 1 --out run " +
                             "--set workload.train.steps=300 --master 127.0.0.1:" +
                             std::to_string(20000 + (getpid() + 7) % 20000);
  const Output out = w.run_shell(
      common + " --role ps --rank 0 & " + common + " --role worker --rank 1 & slow=$!; " + common +
      " --role worker --rank 0 & first=$!; until grep -q '\"rank\":1,\"step\":' "
      "run/measurements.jsonl 2>/dev/null || ! kill -0 $first; do sleep 0.01; done; kill -STOP "
      "$slow; for k in $(seq 9000); do grep -q '\"rank\":0,\"step\":299,' run/measurements.jsonl "
      "&& break; sleep 0.01; done; sleep 0.3; kill -0 $first && echo waits; kill -CONT $slow; "
      "wait $first; code=$?; wait; exit $code");
  CHECK(out.err == "");
  CHECK(contains(out.out, "waits"));
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/parameters.bin")));
}

TEST_CASE(
    "asynchronous workers that are stopped while the first waits go on with their own steps") {
  const Workspace w;
  const std::string text =
      plan(kRecords,
           "{kind: parameter_server, workers: 2, parameter_servers: 1, mode: asynchronous}", 2);
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const auto common = [](int attempt) {
    return kWorker + "plan.yaml --servers 1 --workers 2 --threads 1 --out run --attempt " +
           std::to_string(attempt) + " --set workload.train.steps=300" +
           // Small, so that gradients of any age leave the loss finite.
           " --set workload.optimizer.learning_rate=1e-4 --master 127.0.0.1:" +
           std::to_string(20000 + (getpid() + 11 + attempt) % 20000);
  };
  // Rank 1 stands still somewhere before its end until rank 0 waits for it, with a last step saved
  // already (--checkpoint-steps); then both are asked to stop.
  const std::string first = common(0) + " --checkpoint-steps 300";
  const Output stopped = w.run_shell(
      first + " --role ps --rank 0 & server=$!; " + first + " --role worker --rank 1 & slow=$!; " +
      first +
      " --role worker --rank 0 & first=$!; until grep -q '\"rank\":1,\"step\":' "
      "run/measurements.jsonl 2>/dev/null || ! kill -0 $first; do sleep 0.01; done; kill -STOP "
      "$slow; for k in $(seq 9000); do grep -q '\"rank\":0,\"step\":299,' run/measurements.jsonl "
      "&& break; sleep 0.01; done; sleep 0.3; kill -TERM $slow $first; kill -CONT $slow; "
      "wait $first; code=$?; wait $slow; echo first $code, second $?; wait $server");
  CHECK(stopped.err == "");
  CHECK(contains(stopped.out, "first 75, second 75"));
  CHECK(!std::filesystem::exists(w.path("run/parameters.bin")));
  const auto done_by_second = [&](int attempt) {  // its highest step
    const std::string log = read_all(w.path("run/measurements.jsonl"));
    int last = -1;
    for (int step = 0; step < 300; ++step)
      if (contains(log, "\"attempt\":" + std::to_string(attempt) +
                            ",\"rank\":1,\"step\":" + std::to_string(step) + ","))
        last = step;
    return last;
  };
  const int before = done_by_second(0);
  REQUIRE(before >= 0);
  REQUIRE(before < 299);

  const std::string again = common(1);
  const Output resumed =
      w.run_shell(again + " --role ps --rank 0 & " + again + " --role worker --rank 1 & " + again +
                  " --role worker --rank 0; code=$?; wait; exit $code");
  CHECK(resumed.err == "");
  CHECK(resumed.code == 0);
  CHECK(std::filesystem::exists(w.path("run/parameters.bin")));
  CHECK(done_by_second(1) == 299);
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  // None is left out; the one it was in when rank 0 saved may be done again.
  const auto began_with = [&](int step) {
    return contains(log, "\"attempt\":1,\"rank\":1,\"step\":" + std::to_string(step) + ",");
  };
  CHECK(began_with(before + 1));
  CHECK_FALSE(began_with(before - 1));
  // It had none left, or its last where the request came before that was done.
  CHECK_FALSE(contains(log, "\"attempt\":1,\"rank\":0,\"step\":298,"));

  // A checkpoint of the end says so: nobody trains again.
  const std::string third = common(2);
  const Output over =
      w.run_shell(third + " --role ps --rank 0 & " + third + " --role worker --rank 1 & " + third +
                  " --role worker --rank 0; code=$?; wait; exit $code");
  CHECK(over.code == 0);
  CHECK(done_by_second(2) == -1);
}

TEST_CASE("with a backup worker the others do not wait for one that stands still") {
  const Workspace w;
  const std::string text = plan(kRecords,
                                "{kind: parameter_server, workers: 3, parameter_servers: 1, mode: "
                                "synchronous, backup_workers: 1}",
                                3);
  w.write("plan.yaml",
          text.substr(0, text.rfind("}]")) +
              "}, {name: servers, role: parameter_server, machine: n1-standard-8, nodes: 1}]\n");
  const std::string common =
      kWorker + "plan.yaml --servers 1 --workers 3 --threads 1 --out run --checkpoint-steps 500 " +
      "--set workload.train.steps=2000 --master 127.0.0.1:" +
      std::to_string(20000 + (getpid() + 5) % 20000);
  const Output out = w.run_shell(
      common + " --role ps --rank 0 & " + common + " --role worker --rank 1 & " + common +
      " --role worker --rank 2 & slow=$!; " + common +
      " --role worker --rank 0 & first=$!; until grep -q '\"rank\":2,\"step\":' "
      "run/measurements.jsonl 2>/dev/null || ! kill -0 $first; do sleep 0.01; done; kill -STOP "
      "$slow; "
      "for k in $(seq 3000); do kill -0 $first 2>/dev/null || break; sleep 0.01; done; "
      "kill -0 $first 2>/dev/null && echo waited; kill -CONT $slow; wait $first; code=$?; wait; "
      "exit $code");
  CHECK(out.err == "");
  CHECK(!contains(out.out, "waited"));
  CHECK(out.code == 0);
  CHECK(std::filesystem::exists(w.path("run/checkpoints/step-000000002000/manifest.json")));
}

TEST_CASE("checkpoints that cannot be used are told apart from those of another job") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  REQUIRE(worker(w, "plan.yaml --out run").code == 0);
  Output out = worker(w, "plan.yaml --out run --set workload.optimizer.kind=adamw");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "adamw"));
  out = worker(w, "plan.yaml --out run --seed 7");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "seed 7"));
  // All parts are cut short: whether to train from the beginning is not the supervisor's to decide.
  REQUIRE(w.run_shell("for f in run/checkpoints/*/rank-0.ckpt; do truncate -s -1 $f; done").code ==
          0);
  out = worker(w, "plan.yaml --out run");
  CHECK(out.code == 1);
  CHECK(contains(out.err, "can be used; start again to train from the beginning"));
}

TEST_CASE("a worker that is asked to stop saves and says so with its exit code") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  const Output out = w.run_shell(kWorker +
                                 "plan.yaml --set workload.train.steps=1000000000 --out run & "
                                 "sleep 1; kill -TERM $!; wait $!");
  CHECK(out.code == 75);
  CHECK(!std::filesystem::is_empty(w.path("run/checkpoints")));
  CHECK(contains(read_all(w.path("run/measurements.jsonl")), "stopped on request"));
}

TEST_CASE("a worker's mistakes say what to do, with the exit codes of every command") {
  const Workspace w;
  w.write("plan.yaml", plan(kRecords));
  Output out = worker(w, "plan.yaml --step 3");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "unknown option '--step'; did you mean 'steps'?"));
  out = worker(w, "plan.yaml --set workload.optimizer.learning_rate=1e5 --out nan");
  CHECK(out.code == 1);
  CHECK(contains(out.err, "the loss of step "));
  w.write("cifar.yaml", plan("  model: resnet18\n  dataset: {samples: 10, bytes_per_sample: 3kB}\n"
                             "  batch_per_accelerator: 1\n"
                             "  data: {format: cifar10, path: nowhere}\n"));
  out = worker(w, "cifar.yaml");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "holds images of (3, 32, 32), the model takes (3, 224, 224)"));
}
