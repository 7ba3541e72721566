#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "cli/background_job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/records/measurement_log.h"
#include "sim/base/random.h"
#include "support/small_job.h"
#include "support/trained_weights.h"

// `reckon run` with real processes that are killed, stopped and hung. What a job ends with must be,
// bit for bit, what it ends with when nobody disturbs it.
using namespace reckon;
using namespace reckon::test;

namespace {

namespace fs = std::filesystem;
constexpr Purpose kMoment{"test_kill_moment"};

std::string run_job_text(int steps) {
  return small_job("survivor", "{kind: multi_worker_mirrored, workers: 2}", steps) + small_pool(2);
}

/// The job of job.yaml, which begins again as often and as soon as it must.
struct Job : BackgroundJob {
  Job(const Workspace& w, const std::string& out, const std::string& options)
      : BackgroundJob(w, "job.yaml", out,
                      "--retries 100000 --retry-delay 0s --replications 20 "
                      "--checkpoint-steps 20 " +
                          options) {}
};

std::size_t run_lines_of(const fs::path& file) {
  const std::string text = read_all(file);
  return std::size_t(std::count(text.begin(), text.end(), '\n'));
}
bool has_steps(const Workspace& w, const std::string& out, std::size_t count) {
  return run_lines_of(w.path(out) / "measurements.jsonl") > count;
}

std::string parameters_of(const Workspace& w, const std::string& out) {
  return read_all(w.path(out) / "model.safetensors");
}

/// What the job ends with when nobody disturbs it.
std::string undisturbed(const Workspace& w) {
  Job job(w, "undisturbed", "");
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const std::string parameters = parameters_of(w, "undisturbed");
  REQUIRE(trained_weights(w.path("undisturbed") / "model.safetensors").size() == 5121);
  return parameters;
}

/// Every step is there, those that were done again once for each attempt.
void check_measurements(const Workspace& w, const std::string& out, int steps) {
  const auto read = read_measurement_log(w.path(out) / "measurements.jsonl");
  REQUIRE(read);
  CHECK(read->torn_lines == 0);
  const auto useful = read->useful_steps();
  REQUIRE(useful.size() == std::size_t(steps));
  for (int k = 0; k < steps; ++k) REQUIRE(useful[std::size_t(k)].step == k);
  for (const StepRecord& s : read->steps) {  // every second of a step is in one of its parts
    const Seconds parts = s.compute + s.exposed_communication + s.input + s.update + s.other;
    REQUIRE(parts.count() == Approx(s.seconds.count()).margin(1e-9));
    REQUIRE(s.other > Seconds{0});
  }
  REQUIRE(!read->ends.empty());
  CHECK(read->ends.back().finished);
}

/// Kills random workers at random moments until `wanted` are killed, job after job.
void kill_at_random(int wanted, std::uint32_t stream) {
  const Workspace w;
  constexpr int kSteps = 600;
  w.write("job.yaml", run_job_text(kSteps));
  const auto begin = BackgroundJob::Clock::now();
  const std::string expected = undisturbed(w);
  const Seconds whole = BackgroundJob::Clock::now() - begin;
  RandomStream random(1, stream, kMoment, 0);
  int kills = 0;
  for (int number = 0; kills < wanted; ++number) {
    const std::string out = "killed-" + std::to_string(number);
    Job job(w, out, "");
    while (kills < wanted && job.running()) {
      // From while they start to while they train.
      std::this_thread::sleep_for(0.25 * whole * random.uniform());
      const auto workers = job.workers();
      if (workers.empty()) continue;
      const auto chosen = std::size_t(random.uniform() * double(workers.size()));
      kills += ::kill(workers[chosen], SIGKILL) == 0 ? 1 : 0;
    }
    const int code = job.code();
    INFO(out << " after " << kills << " kills: " << job.errors());
    REQUIRE(code == 0);
    CHECK((parameters_of(w, out) == expected));
    check_measurements(w, out, kSteps);
    fs::remove_all(w.path(out));
  }
}

}  // namespace

TEST_CASE("kill -9 of random workers at 20 random moments changes no bit of what is trained") {
  kill_at_random(20, 0);
}

TEST_CASE("kill -9 of random workers at 200 random moments changes no bit", "[.long]") {
  kill_at_random(200, 1);
}

TEST_CASE("a run that is stopped, killed or hung goes on to the same bits") {
  const Workspace w;
  constexpr int kSteps = 500;
  w.write("job.yaml", run_job_text(kSteps));
  const std::string expected = undisturbed(w);

  SECTION("SIGTERM: a checkpoint, code 75, how to resume; then resumed") {
    {
      Job job(w, "run", "--set 'workload.optimizer={kind: sgd}'");  // as it is anyway
      REQUIRE(job.wait_for([&] { return has_steps(w, "run", 100); }));
      job.signal(SIGTERM);
      CHECK(job.code() == 75);
      CHECK(contains(job.errors(),
                     "go on with: reckon run job.yaml --out run --retries 100000 --retry-delay 0s "
                     "--replications 20 --checkpoint-steps 20 --set 'workload.optimizer={kind: "
                     "sgd}' --resume\n"));
    }
    const auto sets = list_sets(w.path("run") / "checkpoints");
    REQUIRE(!sets.empty());
    CHECK(sets.front().complete);
    Job job(w, "run", "--resume");
    CHECK(job.code() == 0);
  }
  SECTION("Ctrl-C, then a flipped bit in the newest checkpoint: the one before is used, and said") {
    {
      Job job(w, "run", "");
      REQUIRE(job.wait_for([&] {
        const auto sets = list_sets(w.path("run") / "checkpoints");
        return sets.size() >= 2 && sets[1].complete;
      }));
      job.signal(SIGINT);
      CHECK(job.code() == 75);
    }
    const auto sets = list_sets(w.path("run") / "checkpoints");
    REQUIRE(sets.size() >= 2);
    std::fstream file(shard_file(sets.front().directory, 1),
                      std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-1, std::ios::end);
    file.put('\x55');
    file.close();
    Job job(w, "run", "--resume");
    CHECK(job.code() == 0);
    CHECK(contains(job.errors(), "rank-1.safetensors is damaged: the checksum of tensor"));
  }
  SECTION("a worker that hangs is killed and named, and the job goes on") {
    Job job(w, "run", "--hang 4s");  // a busy machine may stop a healthy one for a second
    REQUIRE(job.wait_for([&] { return has_steps(w, "run", 100); }));
    const auto workers = job.workers();
    REQUIRE(workers.size() == 2);
    ::kill(workers[1], SIGSTOP);
    CHECK(job.code() == 0);
    CHECK(contains(job.errors(), "rank 1 hung in step "));
  }
  SECTION("the watcher is killed: its workers end with it, and the run is resumed") {
    std::vector<pid_t> workers;
    {
      Job job(w, "run", "");
      REQUIRE(job.wait_for([&] { return has_steps(w, "run", 100); }));
      workers = job.workers();
      job.signal(SIGKILL);
      CHECK(job.code() == 128 + SIGKILL);
    }
    REQUIRE(workers.size() == 2);
    Job job(w, "run", "--resume");
    const int code = job.code();
    INFO(job.errors());
    CHECK(code == 0);
  }
  CHECK((parameters_of(w, "run") == expected));
  check_measurements(w, "run", kSteps);
}
