#include <catch2/catch.hpp>

#include "cli/run/hand_started.h"
#include "executor/train/checkpoint/tensor_reader.h"

// `reckon-worker` as its users start it: real processes, real files.
using namespace reckon::test;

namespace {

Output worker(const Workspace& w, const std::string& arguments) {
  return w.run_shell(kWorker + arguments);
}

}  // namespace

TEST_CASE("a worker refuses a scenario with several jobs, at its line") {
  const Workspace w;
  const Output out = worker(w, RECKON_SOURCE_DIR "/scenarios/retrain-nightly.yaml --out run");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "a worker's plan is of one job, and the scenario has several"));
}

TEST_CASE("a worker alone trains a plan and leaves its measurements and parameters") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  const Output out = worker(w, "plan.yaml --out run");
  CHECK(out.err == "");
  REQUIRE(out.code == 0);
  CHECK(contains(out.out, "step 7 loss "));
  const std::string log = read_all(w.path("run/measurements.jsonl"));
  CHECK(contains(log, R"("record":"run")"));
  CHECK(contains(log, R"("step":7)"));
  CHECK(contains(log, R"("finished":true)"));
  std::uint64_t weights = 0;
  const reckon::TensorReader trained({w.path("run/model.safetensors")});
  for (const auto& [name, tensor] : trained.tensors()) weights += bytes_of(tensor) / sizeof(float);
  CHECK(weights == 5121);
}

TEST_CASE("a worker that is watched from afar prints its measurements, and keeps checkpoints") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  const Output out = w.run_shell("RECKON_ATTEMPT=2 RECKON_RUN_STARTED=2026-11-22T03:00:00.000Z " +
                                 kWorker + "plan.yaml --out run --log-records");
  REQUIRE(out.code == 0);
  CHECK(contains(out.out, R"({"record":"run","schema_version":3,"scenario":"tiny","attempt":2)"));
  CHECK(contains(out.out, R"("started":"2026-11-22T03:00:00.000Z")"));
  CHECK(contains(out.out, R"({"record":"step","attempt":2,"rank":0,"step":7)"));
  CHECK(contains(out.out, R"("record":"checkpoint")"));
  CHECK_FALSE(contains(out.out, R"("record":"end")"));  // who watches knows
  CHECK_FALSE(std::filesystem::exists(w.path("run/measurements.jsonl")));
  CHECK(std::filesystem::exists(w.path("run/model.safetensors")));
}

TEST_CASE("a device that this worker cannot have is refused with the reason") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
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

TEST_CASE("more steps than the plan has are not done, and that is said") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  const Output more = worker(w, "plan.yaml --steps 1000 --set workload.train.steps=2");
  CHECK(more.code == 0);
  CHECK(contains(more.err,
                 "warning: --steps 1000, but the plan has 2: no more are done (--set "
                 "workload.train.steps=1000)"));
  CHECK(worker(w, "plan.yaml --steps 1").err == "");
}

TEST_CASE("a run that is gone on with ends with the bits of one that was not interrupted") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  REQUIRE(worker(w, "plan.yaml --out whole").code == 0);
  REQUIRE(worker(w, "plan.yaml --out parts --steps 3").code == 0);
  const Output rest = worker(w, "plan.yaml --out parts");
  REQUIRE(rest.code == 0);
  CHECK_FALSE(contains(rest.out, "step 2 "));
  CHECK(contains(rest.out, "step 3 "));
  const std::string whole = read_all(w.path("whole/model.safetensors"));
  CHECK(!whole.empty());
  CHECK(read_all(w.path("parts/model.safetensors")) == whole);
}

TEST_CASE("two workers that meet by RANK train one model") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, "{kind: multi_worker_mirrored, workers: 2}", 2));
  secret_option(w);
  const Output out = w.run_shell(
      "export RECKON_SECRET_FILE=job.secret WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
      std::to_string(meeting_port()) + "; RANK=1 " + kWorker +
      "plan.yaml --out run --threads 1 & RANK=0 " + kWorker +
      "plan.yaml --out run --threads 1; code=$?; wait $! && exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(contains(out.out, "step 7 loss "));
  CHECK(contains(read_all(w.path("run/measurements.jsonl")), R"("rank":1,"step":7)"));
}

TEST_CASE("two tasks of a step of Slurm meet where its variables say, and train one model") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, "{kind: multi_worker_mirrored, workers: 2}", 2));
  secret_option(w);
  // Step 0 of the job with this number meets at port 10000 + number.
  const std::string job = std::to_string(meeting_port() - 10000);
  const std::string task = " " + kWorker + "plan.yaml --out run --threads 1";
  const std::string of_step =
      "export RECKON_SECRET_FILE=job.secret SLURM_JOB_ID=" + job +
      " SLURM_NTASKS=2 SLURM_STEP_NODELIST='127.0.0.[1-2]' SLURM_JOB_NODELIST='127.0.0.[1-2]'; ";
  const Output out = w.run_shell(of_step + "export SLURM_STEP_ID=0; SLURM_PROCID=1" + task +
                                 " & SLURM_PROCID=0" + task + "; code=$?; wait $! && exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
  CHECK(contains(out.out, "step 7 loss "));
  CHECK(contains(read_all(w.path("run/measurements.jsonl")), R"("rank":1,"step":7)"));
  // The batch script itself has the same variables, but for the step's number.
  const Output script =
      w.run_shell(of_step + "SLURM_PROCID=0 " + kWorker + "plan.yaml --out alone");
  CHECK(script.code == 2);
  CHECK(contains(script.err, "the plan has 2 workers, this job 1"));
  // Nor does a launcher whose variables are not read make it one of several.
  const Output by_mpi =
      w.run_shell("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " + kWorker + "plan.yaml");
  CHECK(by_mpi.code == 2);
  CHECK(
      contains(by_mpi.err,
               "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE of this process' launcher is not read"));
  w.write("plan.yaml", small_plan(kRecords));
  CHECK(w.run_shell(of_step + "SLURM_PROCID=0 " + kWorker + "plan.yaml --out one").code == 0);
}

TEST_CASE("starts by hand are counted, on one clock") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
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

TEST_CASE("checkpoints that cannot be used are told apart from those of another job") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  REQUIRE(worker(w, "plan.yaml --out run").code == 0);
  Output out = worker(w, "plan.yaml --out run --set workload.optimizer.kind=adamw");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "adamw"));
  out = worker(w, "plan.yaml --out run --seed 7");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "  seed: recorded "));
  CHECK(contains(out.err, ", now 7\n"));
  // All parts are cut short: whether to train from the beginning is not the supervisor's to decide.
  REQUIRE(w.run_shell("for f in run/checkpoints/*/rank-0.safetensors; do truncate -s -1 $f; done")
              .code == 0);
  out = worker(w, "plan.yaml --out run");
  CHECK(out.code == 1);
  CHECK(contains(out.err, "can be used; start again to train from the beginning"));
}

TEST_CASE("a worker that is asked to stop saves and says so with its exit code") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  const Output out = w.run_shell(kWorker +
                                 "plan.yaml --set workload.train.steps=1000000000 --out run & "
                                 "sleep 1; kill -TERM $!; wait $!");
  CHECK(out.code == 75);
  CHECK(!std::filesystem::is_empty(w.path("run/checkpoints")));
  CHECK(contains(read_all(w.path("run/measurements.jsonl")), "stopped on request"));
}

TEST_CASE("a worker's mistakes say what to do, with the exit codes of every command") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords));
  Output out = worker(w, "plan.yaml --step 3");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "unknown option '--step'; did you mean '--steps'?"));
  out = worker(w, "plan.yaml --set workload.optimizer.learning_rate=1e5 --out nan");
  CHECK(out.code == 1);
  CHECK(contains(out.err, "the loss of step "));
  w.write("cifar.yaml",
          small_plan("  model: resnet18\n  dataset: {samples: 10, bytes_per_sample: 3kB}\n"
                     "  batch_per_accelerator: 1\n"
                     "  data: {format: cifar10, path: nowhere}\n"));
  out = worker(w, "cifar.yaml");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "holds images of (3, 32, 32), the model takes (3, 224, 224)"));
}
