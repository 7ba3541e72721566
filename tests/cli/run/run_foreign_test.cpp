#include <catch2/catch.hpp>

#include <csignal>

#include "cli/background_job.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_lock.h"

// `reckon run` with a program that is not ours: a script of the shell, which tells of its steps and
// keeps a file of its own.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

/// `command` and `metrics`: of the container.
std::string run_foreign_scenario(const std::string& command, const std::string& metrics,
                                 int workers) {
  return "name: mine\n"
         "workload:\n"
         "  container:\n"
         "    image: none\n"
         "    command: " +
         command +
         "\n"
         "    profile: mlp_boston_housing\n" +
         (metrics.empty() ? "" : "    metrics: " + metrics + "\n") +
         "  dataset: {samples: 4040, bytes_per_sample: 112B}\n"
         "  train: {steps: 100}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 8\n"
         "  strategy: {kind: multi_worker_mirrored, workers: " +
         std::to_string(workers) +
         "}\n"
         "  checkpoint: {interval: none}\n"
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n"
         "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, "
         "nodes: " +
         std::to_string(workers) + "}\n";
}

/// Saves every 25 steps. At its first start rank 0 waits behind step 60 for rank 1, as a collective
/// would, and rank 1 is killed.
const char* const kTrain = R"sh(dir=$2
step=0; [ -e $dir/state ] && read step < $dir/state
echo "rank $RANK of $WORLD_SIZE goes on at $step"
if [ $RANK = 1 ]; then
  if [ $RECKON_ATTEMPT = 0 ]; then
    while [ ! -e $dir/waiting ]; do sleep 0.01; done
    kill -9 $$
  fi
  exit 0
fi
while [ $step -lt 100 ]; do
  sleep 0.005
  step=$((step + 1))
  echo "done $step, loss 0.$((1000 - step))"
  if [ $((step % 25)) = 0 ]; then echo $step > $dir/new; mv $dir/new $dir/state; fi
  if [ $step = 60 ] && [ $RECKON_ATTEMPT = 0 ]; then : > $dir/waiting; exec sleep 60; fi
done
)sh";

void write_own_program(const Workspace& w, int workers) {
  w.write("train.sh", kTrain);
  w.write("mine.yaml",
          run_foreign_scenario("[sh, train.sh, --job-dir]",
                               "{log: 'done (?<step>[0-9]+), loss (?<loss>[0-9.]+)'}", workers));
}

}  // namespace

TEST_CASE("a program of one's own is run, lost, resumed by its own file, and measured") {
  const Workspace w;
  write_own_program(w, 2);
  // "--job-dir DIR": $1 and $2.
  const Output run = w.run("run mine.yaml --replications 20 --retry-delay 10ms");
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, Contains("[rank 1] rank 1 of 2 goes on at 0"));
  CHECK_THAT(run.err, Contains("it goes on from step 50; 10 steps are done again"));
  const auto m = read_measurement_log(w.path("runs/mine/measurements.jsonl"));
  REQUIRE(m);
  REQUIRE(m->runs.size() == 2);
  CHECK(m->runs[1].first_step == 50);
  REQUIRE(m->interruptions.size() == 1);
  CHECK(m->interruptions[0].rank == 1);
  CHECK(m->interruptions[0].lost_steps == 10);
  CHECK(m->interruptions[0].detail == "rank 1 was killed by signal 9 (Killed)");
  CHECK(m->useful_steps().size() == 100);
  CHECK(m->useful_steps().back().loss == Approx(0.9));
  REQUIRE(m->ends.size() == 1);
  CHECK(m->ends[0].finished);
  // The rest of the tools take it as any other run's.
  const Output diff = w.run("diff runs/mine/forecast.json runs/mine");
  INFO(diff.out << diff.err);
  CHECK(diff.code <= 1);  // the forecast is of no machine like this one
  CHECK_THAT(diff.out, Contains("mine: the run took"));
  const Output calibrate = w.run("calibrate runs/mine --out mine-calibration.yaml");
  INFO(calibrate.out << calibrate.err);
  CHECK(calibrate.code == 0);
}

TEST_CASE("a program of one's own that hangs is ended by --hang, and goes on from its own file") {
  const Workspace w;
  // Alone it waits behind step 60 for nobody, at its first start.
  write_own_program(w, 1);
  const Output run = w.run("run mine.yaml --replications 20 --retry-delay 10ms --hang 2s");
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err,
             Contains("no step was told for 2.00 s behind step 60: restarting in 10.0 ms"));
  CHECK_THAT(run.err, Contains("it goes on from step 50; 10 steps are done again"));
}

TEST_CASE("a program of one's own that fails at once is not started for ever") {
  const Workspace w;
  w.write("mine.yaml", run_foreign_scenario("[sh, -c, 'echo no such data; exit 1']", "", 1));
  const Output run = w.run("run mine.yaml --replications 20 --retry-delay 10ms --retries 50");
  INFO(run.out << run.err);
  CHECK(run.code == 1);
  CHECK_THAT(run.out, Contains("ended with code 1, and reported no step in 3 starts"));
  CHECK_THAT(run.err, Contains("restarting in 10.0 ms"));
  CHECK_THAT(run.err, Contains("restarting in 20.0 ms"));
  // Without a word about it, on premises, where the service would start it again at once.
  const Output waits = w.run("run mine.yaml --replications 20 --out waits");
  INFO(waits.out << waits.err);
  CHECK_THAT(waits.err, Contains("restarting in 1.00 s"));
  CHECK_THAT(waits.err, Contains("restarting in 2.00 s"));
  const Output none = w.run(
      "run mine.yaml --replications 20 --out other --set "
      "'workload.container.command=[]'");
  CHECK(none.code == 2);
  CHECK_THAT(none.err, Contains("workload.container has none"));
  const Output bad = w.run(
      "run mine.yaml --replications 20 --out other --set "
      "'workload.container.metrics={log: \"(?<stp>1)\"}'");
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, Contains("workload.container.metrics.log: no group is named 'stp'"));
}

TEST_CASE("a program of one's own that ends well when it is told to stop is not finished") {
  const Workspace w;
  w.write("mine.yaml", run_foreign_scenario("[sh, stop.sh]", "", 1));
  w.write("stop.sh", R"(trap 'echo saved; exit 0' TERM
echo "step 1"; echo "step 2"; : > started
while :; do sleep 0.02; done
)");
  const Output run = w.run_shell(
      "('" RECKON_BINARY_DIR
      "/bin/reckon' run mine.yaml --replications 20 & echo $! > pid; "
      "while [ ! -e started ]; do sleep 0.02; done; sleep 0.2; kill $(cat pid); wait $(cat pid); "
      "echo code $?)");
  INFO(run.out << run.err);
  CHECK_THAT(run.out, Contains("code 75"));
  CHECK_THAT(run.err, Contains("go on with: reckon run mine.yaml --replications 20 --resume"));
}

TEST_CASE("a program of one's own ends with its launcher, and what escapes keeps the run's lock") {
  const Workspace w;
  // Neither reads nor writes what would tell it that nobody watches.
  w.write("train.sh", R"(exec > log 2>&1
sleep 60 &
echo $! > started.new; mv started.new started
if [ "$ESCAPES" ]; then
  setsid sh -c 'echo $$ > escaped.new; mv escaped.new escaped; exec sleep 60' &
  while [ ! -e escaped ]; do sleep 0.01; done
fi
echo $$ > own.new; mv own.new own
while :; do sleep 0.02; done
)");
  w.write("mine.yaml", run_foreign_scenario("[sh, train.sh]", "", 1));
  const bool escapes = GENERATE(false, true);
  BackgroundJob job(w, "mine.yaml", "run", "--replications 20", escapes ? "env ESCAPES=1" : "");
  REQUIRE(job.wait_for([&] { return std::filesystem::exists(w.path("own")); }));
  const auto lives = [&](const char* file) {
    const char state = state_of_process(std::stoi(read_all(w.path(file))));
    return state != 0 && state != 'Z';
  };
  CHECK(lives("own"));
  job.signal(SIGKILL);
  CHECK(job.code() == 128 + SIGKILL);
  const auto until = BackgroundJob::Clock::now() + std::chrono::seconds(10);
  while ((lives("own") || lives("started")) && BackgroundJob::Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(!lives("own"));
  CHECK(!lives("started"));
  if (!escapes) {
    CHECK(RunLock::if_free(w.path("run")));
    return;
  }
  CHECK(lives("escaped"));
  CHECK(RunLock::look(w.path("run")).held);
  const Output again = w.run("run mine.yaml --out run --resume --replications 20");
  CHECK(again.code == 3);
  CHECK_THAT(again.err, Contains("is in use by what process " + std::to_string(job.id())) &&
                            Contains("has started, which is gone itself"));
  ::kill(std::stoi(read_all(w.path("escaped"))), SIGKILL);
}

TEST_CASE("a page of metrics of a program of this machine is read while it runs") {
  const Workspace w;
  w.write("mine.yaml",
          run_foreign_scenario(
              "[python3, serve.py]",
              "{prometheus: ':$PORT/metrics step=my_steps seconds=my_step_seconds'}", 1));
  // It ends when its last page was read, so nothing here waits for a clock.
  w.write("serve.py", R"(import http.server, sys
pages = [10, 20, 100]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"my_steps %d\nmy_step_seconds 0.25\n" % pages[0])
        pages.pop(0)
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
while pages:
    server.handle_request()
)");
  const Output run = w.run_shell(
      "port=$(python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); "
      "print(s.getsockname()[1])'); "
      "sed -i \"s/\\$PORT/$port/; s/serve.py/serve.py, \\\"$port\\\"/\" mine.yaml; "
      "'" RECKON_BINARY_DIR "/bin/reckon' run mine.yaml --replications 20");
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto m = read_measurement_log(w.path("runs/mine/measurements.jsonl"));
  REQUIRE(m);
  const auto steps = m->useful_steps();
  REQUIRE(steps.size() >= 20);  // the last page may be cut off by the end
  CHECK(steps.back().seconds == Seconds{0.25});
}

TEST_CASE("a program whose lines say nothing of steps ends well, and is said to") {
  const Workspace w;
  w.write("train.sh", "echo step 1 of 1\n");
  w.write("mine.yaml", run_foreign_scenario("[sh, train.sh]", "{log: 'stp (?<step>[0-9]+)'}", 1));
  const Output run = w.run("run mine.yaml --replications 20");
  INFO(run.err);
  CHECK(run.code == 0);
  CHECK_THAT(run.err, Contains("no line of the program matched workload.container.metrics.log, "
                               "'stp (?<step>[0-9]+)'"));
}
