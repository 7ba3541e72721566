#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/run_reckon.h"
#include "executor/train/records/measurement_log.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/artifact/artifact.h"
#include "support/small_job.h"

// `reckon run` resolves its plan once: what was forecast is what its processes train.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;
constexpr const char* kRun = "run job.yaml --replications 20 --out run";

ReadArtifact artifact_in(const Workspace& w, const std::string& run) {
  auto read = read_artifact(read_all(w.path(run) / "plan.reckon"), run);
  INFO((read ? "" : format(read.error())));
  REQUIRE(read);
  return std::move(*read);
}

Measurements measured_in(const Workspace& w, const std::string& run) {
  auto read = read_measurement_log(w.path(run) / "measurements.jsonl");
  REQUIRE(read);
  return std::move(*read);
}

}  // namespace

TEST_CASE("what a run is of is resolved once: extends, --layer, --set, --catalog, --calibration") {
  const Workspace w;
  w.write("first.yaml", small_job("first", "{kind: single}", 20) + small_pool(1));
  REQUIRE(w.run("run first.yaml --replications 20 --out first").code == 0);
  const Output fit = w.run("calibrate first --out c.yaml --force");
  INFO(fit.err);
  REQUIRE(fit.code == 0);

  w.write("shared/base.yaml",
          small_job("base", "{kind: multi_worker_mirrored, workers: 2}", 10) + small_pool(2));
  w.write("job.yaml", "extends: shared/base.yaml\nname: job\n");
  w.write("layer.yaml", "workload: {optimizer: {kind: sgd, learning_rate: 0.0125}}\n");
  w.write("facts/datasets.yaml",
          "houses:\n  source: general-knowledge\n  unit: record\n"
          "  samples: {value: 404, low: 404, high: 404}\n"
          "  validation_samples: {value: 8, low: 8, high: 8}\n"
          "  bytes_per_sample: {value: 112 B, low: 112 B, high: 112 B}\n"
          "  decode: {value: 0 ms, low: 0 ms, high: 0 ms}\n");
  const Output out = w.run(std::string(kRun) +
                           " --layer layer.yaml --catalog facts --calibration c.yaml"
                           " --set workload.dataset=houses --set workload.train.steps=30");
  INFO(out.err);
  REQUIRE(out.code == 0);
  const ReadArtifact read = artifact_in(w, "run");
  const Plan& plan = read.artifact.plan;
  const PlannedWorkload& job = plan.jobs.front();
  CHECK(plan.name == "job");
  CHECK(job.strategy.workers == 2);
  CHECK(job.optimizer_settings.learning_rate == 0.0125);
  CHECK(job.dataset.name == "houses");
  REQUIRE(plan.calibrations.size() == 1);
  CHECK(contains(plan.calibrations.front(), "c.yaml"));
  const Measurements measured = measured_in(w, "run");
  CHECK(measured.useful_steps().size() == 30);
  CHECK(measured.runs.front().catalog_digest == plan.catalog_digest);

  // Nobody needs what it was made of any more.
  for (const char* gone : {"shared", "layer.yaml", "facts", "job.yaml"})
    fs::remove_all(w.path(gone));
  CHECK(w.run("diff run/forecast.json run").code != 2);
  // OpenCost names no machine: its compute is that of all nodes.
  w.write("cost.csv",
          "Date,Namespace,CPUCost,RAMCost,NetworkCost,TotalCost\n"
          "2026-11-19,job,1.5,0.5,0.25,2.25\n");
  const Output billed = w.run("diff run/forecast.json run --bill cost.csv");
  INFO(billed.err);
  CHECK(billed.code != 2);
  CHECK(contains(billed.out, "job: the bill is 2.25 USD"));
  CHECK(contains(billed.out, "2.00 USD"));  // of compute
  CHECK(contains(billed.out, "The forecast has no line for 0.25 USD"));
  CHECK(contains(w.run("diff run/forecast.json run --bill cost.csv --format json").out,
                 "\"bill_usd\": 2.25"));
  CHECK(contains(w.run("diff run/forecast.json run/measurements.jsonl --bill cost.csv").err,
                 "--bill needs the directory of the run"));
  const Output again =
      w.run_shell("'" RECKON_BINARY_DIR "/bin/reckon-worker' run/plan.reckon --alone --steps 2");
  INFO(again.err);
  CHECK(again.code == 0);
}

TEST_CASE("a plan for another place is another plan here, and the run's records name both") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 20) + small_pool(1));
  REQUIRE(w.run(kRun).code == 0);
  const ReadArtifact read = artifact_in(w, "run");
  REQUIRE(read.artifact.rebound);
  CHECK(read.artifact.rebound->target == "this machine");
  const Measurements measured = measured_in(w, "run");
  REQUIRE(measured.runs.size() == 1);
  CHECK(measured.runs.front().plan_digest == read.digest);
  CHECK(measured.runs.front().planned_digest == read.artifact.rebound->from);
  CHECK(read.digest != read.artifact.rebound->from);
  CHECK(read.artifact.plan.job_start.image_pull.value == Seconds{0});
}

TEST_CASE("a plan's artifact is run as it was planned, whatever the catalog says by then") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 20) + small_pool(1) +
                          "plan: {vary: {nodes: 1}, objective: time}\n");
  w.write("slow/operations.yaml",
          "checkpoint:\n"
          "  worker_save_s: {value: 7s, low: 7s, high: 7s, source: general-knowledge}\n");
  fs::create_directories(w.path("plans"));
  const Output planned = w.run("plan job.yaml --catalog slow --out plans/best.yaml");
  INFO(planned.err);
  REQUIRE(planned.code == 0);
  const auto best = read_artifact(read_all(w.path("plans/best.reckon")), "best.reckon");
  REQUIRE(best);
  CHECK_FALSE(best->artifact.rebound);

  // The pair is moved, and the overlay is not there any more.
  fs::rename(w.path("plans"), w.path("elsewhere"));
  fs::remove_all(w.path("slow"));
  const Output out = w.run("run elsewhere/best.reckon --out run");
  INFO(out.err);
  REQUIRE(out.code == 0);
  CHECK(artifact_in(w, "run").artifact.rebound->from == best->digest);
  const Output again = w.run("run elsewhere/best.reckon --out run --resume");
  INFO(again.err);
  CHECK(again.code == 0);

  SECTION("the scenario beside it is the same plan, where the catalog is the same") {
    // But for the folder, which an artifact that can be moved does not name.
    w.write("slow/operations.yaml",
            "checkpoint:\n"
            "  worker_save_s: {value: 7s, low: 7s, high: 7s, source: general-knowledge}\n");
    REQUIRE(w.run("run elsewhere/best.yaml --catalog slow --out scenario").code == 0);
    RunArtifact planned_there = best->artifact;
    planned_there.file = fs::absolute(w.path("elsewhere/best.yaml")).string();
    CHECK(artifact_in(w, "scenario").artifact.rebound->from == artifact_digest(planned_there));
  }
  SECTION("a change makes another plan") {
    REQUIRE(w.run("run elsewhere/best.reckon --out other --set workload.train.steps=9").code == 0);
    const ReadArtifact other = artifact_in(w, "other");
    CHECK(other.artifact.plan.only_job().steps == 9);
    CHECK(other.artifact.rebound->from != best->digest);
  }
}

TEST_CASE("a run that goes on has the plan and the forecast that it began with") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 20) + small_pool(1));
  REQUIRE(w.run(kRun).code == 0);
  const std::string plan = read_all(w.path("run/plan.reckon"));
  const std::string forecast = read_all(w.path("run/forecast.json"));
  REQUIRE(w.run(std::string(kRun) + " --resume").code == 0);
  CHECK(read_all(w.path("run/plan.reckon")) == plan);
  CHECK(read_all(w.path("run/forecast.json")) == forecast);

  SECTION("what changed beside the training makes another plan, with its forecast") {
    const std::string spot = std::string(kRun) + " --resume --set workload.train.steps=40";
    REQUIRE(w.run(spot).code == 0);
    CHECK(artifact_in(w, "run").artifact.plan.jobs.front().steps == 40);
    CHECK(read_all(w.path("run/forecast.json")) != forecast);
  }
  SECTION("a damaged plan is written again") {
    w.write("run/plan.reckon", plan.substr(0, plan.size() / 2));
    CHECK(w.run("doctor --run run").code != 0);
    REQUIRE(w.run(std::string(kRun) + " --resume").code == 0);
    CHECK(artifact_in(w, "run").artifact.plan.name == "small");
  }
}

TEST_CASE("a worker of a run, and the export of what it trained, read no scenario and no catalog") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 5) + small_pool(1));
  REQUIRE(w.run(kRun).code == 0);
  fs::remove(w.path("job.yaml"));
  const std::string worker = "RECKON_CATALOGS=/nowhere '" RECKON_BINARY_DIR "/bin/reckon-worker' ";
  const Output trained = w.run_shell(worker + "run/plan.reckon --steps 1");
  INFO(trained.err);
  CHECK(trained.code == 0);
  const Output exported = w.run_shell(worker + "export run model");
  INFO(exported.err);
  CHECK(exported.code == 0);
  CHECK(fs::exists(w.path("model/1/plan.yaml")));
  const Output changed = w.run_shell(worker + "export run model --set workload.model=resnet18");
  CHECK(changed.code == 2);
  CHECK(contains(changed.err, "--set, --layer and --catalog go with --plan"));
}

TEST_CASE("a worker takes no changes to the plan of a run, and none of a damaged one") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 5) + small_pool(1));
  REQUIRE(w.run(kRun).code == 0);
  const std::string worker = "'" RECKON_BINARY_DIR "/bin/reckon-worker' run/plan.reckon";
  CHECK(w.run_shell(worker + " --steps 1").code == 0);
  for (const char* change : {" --set workload.train.steps=9", " --seed 3", " --catalog ."}) {
    const Output out = w.run_shell(worker + change);
    CHECK(out.code == 2);
    CHECK(contains(out.err, "the plan of a run is complete"));
  }
  std::string plan = read_all(w.path("run/plan.reckon"));
  plan.back() = char(plan.back() ^ 1);
  w.write("run/plan.reckon", plan);
  const Output out = w.run_shell(worker);
  CHECK(out.code == 2);
  CHECK(contains(out.err, "truncated or changed: its checksum is"));
}

TEST_CASE("other commands take the job from a run, and the facts from the catalog in use") {
  const Workspace w;
  w.write("job.yaml", small_job("small", "{kind: single}", 20) + small_pool(1));
  REQUIRE(w.run(std::string(kRun) + " --set workload.train.steps=25").code == 0);
  fs::remove(w.path("job.yaml"));
  const Output of_run = w.run("simulate run --replications 20 --format json");
  INFO(of_run.err);
  CHECK(of_run.code == 0);
  CHECK(contains(of_run.out, "\"scenario\": \"small\""));
  const Output fit = w.run("calibrate run --out c.yaml --force");
  INFO(fit.err);
  CHECK(fit.code == 0);
}

TEST_CASE(
    "a run begins with the interval that was forecast, and says when a save's cost moves it") {
  const Workspace w;
  std::string job = small_job("spot", "{kind: single}", 100);
  const std::string never = "  checkpoint: {interval: none}\n";
  job.erase(job.find(never), never.size());
  job.replace(job.find("on_premises"), 11, "gcp\n  service: gke\n  region: us-central1");
  job +=
      "    - {name: spot, role: worker, machine: n1-standard-2, nodes: 1, pricing: spot}\n"
      "disruptions: {preemption: !exponential {mean: 60s}}\n";
  w.write("job.yaml", job);
  // Believed to take 100 s; Young's interval is then 53 s, longer than the run.
  w.write("slow/operations.yaml",
          "checkpoint:\n"
          "  worker_save_s: {value: 100s, low: 100s, high: 100s, source: general-knowledge}\n");
  const Output out = w.run(std::string(kRun) + " --catalog slow");
  INFO(out.err);
  REQUIRE(out.code == 0);
  const Seconds planned = artifact_in(w, "run").artifact.plan.jobs.front().checkpoint.interval;
  CHECK(planned.count() > 40);
  const Measurements measured = measured_in(w, "run");
  REQUIRE(measured.changes.size() == 1);  // behind the only save, which took no such time
  CHECK(measured.changes.front().name == "checkpoint_interval");
  CHECK(measured.changes.front().recorded == format_duration(planned));
  CHECK(measured.changes.front().step == 100);
}

TEST_CASE("what is of one job refuses a scenario with several, at its line") {
  const Workspace w;
  w.write("pair.yaml",
          "extends: " + (fs::path(RECKON_SOURCE_DIR) / "scenarios/retrain-nightly.yaml").string() +
              "\n");
  for (const char* command :
       {"run pair.yaml --out run", "trial pair.yaml", "export kubernetes pair.yaml",
        "run pair.yaml --on kubernetes --image reckon:1"}) {
    INFO(command);
    const Output out = w.run(command);
    INFO(out.err);
    CHECK(out.code == 2);
    CHECK(contains(out.err, "is of one job, and the scenario has several"));
  }
  CHECK_FALSE(fs::exists(w.path("run")));
}
