#include <map>
#include <memory>
#include <optional>

#include "cli/run/devices_job.h"

// Workers of several ranks that go on with those that are left: as pods that take orders, and on
// devices, whose ranks wait for one another where no process sees it.
using namespace reckon;
using namespace reckon::test;

namespace {

const std::string kTinyGpt =
    "{layers: 1, hidden: 16, heads: 2, vocabulary: 16, sequence_length: 4, positions: 4, "
    "tied_output: true}";

/// One worker as a pod that takes orders.
class OrderedPod {
 public:
  /// `rank`: of its worker; `name`: of its files.
  OrderedPod(const Workspace& w, int rank, const std::string& name, const std::string& secret)
      : w_(w), name_(name) {
    w.write(name + ".order", "");
    process_ = std::make_unique<ChildProcess>(ProcessSpec{
        name,
        {"sh", "-c",
         "cd '" + w.path("").string() + "' && RECKON_ORDERS_FILE='" +
             w.path(name + ".order").string() + "' exec " + kWorker +
             "job.yaml --threads 1 --device cpu --workers 2 --rank " + std::to_string(rank) +
             " --master 127.0.0.1:9 --out run --checkpoint-steps 100" + secret + " > " + name +
             ".txt 2>&1"},
        {},
        {}});
  }
  void order(int start, int rank, int workers, int port) const {
    w_.write(name_ + ".order", std::to_string(start) + ' ' + std::to_string(rank) + ' ' +
                                   std::to_string(workers) + " 127.0.0.1:" + std::to_string(port) +
                                   " end\n");
  }
  bool waits_behind(const std::string& start) const {
    return contains(text(), "reckon-worker: waits for an order; start left: " + start + "\n");
  }
  std::string text() const { return read_all(w_.path(name_ + ".txt")); }
  std::vector<pid_t> ranks() const { return children_of(process_->id()); }
  int code() {
    std::optional<ProcessEnd> end;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!(end = process_->poll_end()) && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return end ? end->code + (end->signal != 0 ? 128 + end->signal : 0) : -1;
  }

 private:
  const Workspace& w_;
  std::string name_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

TEST_CASE("pods of several ranks go on with those that are left, as they are ordered", "[.long]") {
  const Workspace w;
  const std::string kind = GENERATE("in_place", "elastic");
  const bool shrinks = kind == "elastic";
  constexpr int kSteps = 3000;
  w.write("job.yaml", devices_job("{kind: multi_worker_mirrored}", 2, kSteps,
                                  "  restart: {kind: " + kind + "}\n", kTinyGpt));
  BackgroundJob straight(w, "job.yaml", "straight", "--replications 20 --checkpoint-steps 100");
  REQUIRE(straight.code() == 0);
  const auto expected = devices_weights(w, "straight");
  const std::string secret = secret_option(w);
  OrderedPod first(w, 0, "first", secret);
  OrderedPod second(w, 1, "second", secret);
  REQUIRE(wait_for_that([&] { return first.waits_behind("none") && second.waits_behind("none"); }));
  const int port = meeting_port();
  first.order(0, 0, 2, port);
  second.order(0, 1, 2, port);
  REQUIRE(wait_for_that([&] { return saved(w, "run", 100) && second.ranks().size() == 2; }));
  ::kill(second.ranks()[1], SIGKILL);
  CHECK(second.code() == 128 + SIGKILL);
  INFO(first.text());
  REQUIRE(wait_for_that([&] { return first.waits_behind("0"); }));
  const int again = meeting_port();
  if (shrinks) {
    first.order(1, 0, 1, again);
    REQUIRE(wait_for_that([&] { return devices_records(w, "run").runs.size() == 2; }));
  }
  OrderedPod third(w, 1, "third", secret);
  REQUIRE(wait_for_that([&] { return third.waits_behind("none"); }));
  const int whole = meeting_port();
  first.order(2, 0, 2, whole);
  // A rank may take part before the other has said that it waits.
  REQUIRE(wait_for_that([&] {
    return first.waits_behind("1") ||
           contains(first.text(), "takes part in start 2 as rank 0 of 2");
  }));
  third.order(2, 1, 2, whole);
  CHECK(first.code() == 0);
  CHECK(third.code() == 0);
  INFO(third.text());
  CHECK(contains(third.text(), "takes part in start 2 as rank 1 of 2\n"));
  const Measurements read = devices_records(w, "run");
  std::vector<int> workers;
  for (const RunRecord& run : read.runs) workers.push_back(run.workers);
  CHECK((workers == (shrinks ? std::vector{2, 1, 2} : std::vector{2, 2})));
  // Each start goes on behind the last step of the one before, not from a checkpoint.
  for (std::size_t k = 1; k < read.runs.size(); ++k)
    for (const StepRecord& step : read.steps)
      if (step.attempt < read.runs[k].attempt) CHECK(step.step < read.runs[k].first_step);
  if (!shrinks) {
    CHECK((devices_weights(w, "run") == expected));
    return;
  }
  // Other orders of sums, of the same samples in each step.
  std::map<std::int64_t, double> losses;
  for (const StepRecord& step : devices_records(w, "straight").steps)
    if (step.rank == 0) losses[step.step] = step.loss.value();
  for (const StepRecord& step : read.steps) {
    CHECK(step.samples == 16);
    if (step.rank == 0) CHECK(step.loss.value() == Approx(losses.at(step.step)).epsilon(1e-4));
  }
  CHECK(largest_apart(devices_weights(w, "run"), expected) < 1e-3);
}

TEST_CASE("ranks on devices outlive one that is lost, with what they hold or a checkpoint",
          "[.long]") {
  const Workspace w;
  const auto [strategy, kind, keeps] = GENERATE(table<std::string, std::string, bool>(
      {{"{kind: multi_worker_mirrored}", "in_place", true},
       {"{kind: multi_worker_mirrored}", "elastic", true},
       {"{kind: sharded, zero_stage: 3}", "in_place", false},
       {"{kind: model_parallel, data: 2, tensor: 2, micro_batch: 4}", "in_place", true},
       {"{kind: model_parallel, data: 2, tensor: 2, micro_batch: 4}", "elastic", true}}));
  INFO(strategy << ", " << kind);
  // A kernel of the emulator takes a millisecond.
  w.write("job.yaml", devices_job(strategy, 2, 40, "  restart: {kind: " + kind + "}\n", kTinyGpt));
  const std::string emulated = "env RECKON_EMULATED_DEVICES=4 RECKON_WORKER='" RECKON_BINARY_DIR
                               "/bin/reckon-worker-emulated'";
  const auto expected = devices_run(w, "job.yaml", "straight", emulated);
  BackgroundJob job(w, "job.yaml", "run", kDevicesRun, emulated);
  const LostLastRank seen = lose_last_rank(w, job);
  CHECK((seen.outlives(0) && seen.outlives(1)));  // of the other worker
  const Measurements read = devices_records(w, "run");
  REQUIRE(read.interruptions.size() == 1);
  CHECK(read.interruptions[0].rank == 3);
  CHECK(read.runs[0].accelerator == "emulated device");
  if (keeps) {
    CHECK(read.interruptions[0].lost_steps <= 1);
  } else {
    CHECK(read.runs.back().first_step % 10 == 0);
  }
  if (kind == "in_place") {
    CHECK((devices_weights(w, "run") == expected));
    return;
  }
  CHECK(read.runs[1].workers == 1);
  CHECK(largest_apart(devices_weights(w, "run"), expected) < 1e-3);
}
