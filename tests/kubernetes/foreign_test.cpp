#include <catch2/catch.hpp>

#include <memory>

#include "executor/launch/process.h"
#include "executor/train/measurement_log.h"
#include "kubernetes/cluster.h"

// A program that is not ours in real pods: a script of the shell in an image with nothing but a
// shell, which tells of its steps by lines and keeps a file of its own.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kSteps = 200;
const char* const kImage = "localhost/my-trainer:1";

/// Saves every 40 steps. At its first start rank 0 waits behind step 100 for the others, as a
/// collective would; told to end it saves and ends well.
const char* const kTrain = R"sh(#!/bin/sh
dir=$2
mkdir -p $dir
step=0; [ -e $dir/state ] && read step < $dir/state
echo "rank $RANK of $WORLD_SIZE goes on at $step, chief $MASTER_ADDR"
save() { echo $step > $dir/new.$RANK; mv $dir/new.$RANK $dir/state; }
trap 'exit 0' TERM
if [ $RANK != 0 ]; then
  while [ $step -lt 200 ]; do sleep 0.1; [ -e $dir/state ] && read step < $dir/state; done
  exit 0
fi
while [ $step -lt 200 ]; do
  sleep 0.02
  step=$((step + 1))
  echo "epoch 1 | it $step | mse 0.$((1000 - step))"
  if [ $((step % 40)) = 0 ]; then save; fi
  while [ $step = 100 ] && [ $RECKON_ATTEMPT = 0 ]; do sleep 0.1; done
done
)sh";

const std::string kScenario = std::string("name: mine\n") +
                              "workload:\n"
                              "  container:\n"
                              "    image: " +
                              kImage +
                              "\n"
                              "    command: [/bin/train, --job-dir]\n"
                              "    profile: mlp_boston_housing\n"
                              "    metrics: {log: 'it (?<step>[0-9]+) \\| mse (?<loss>[0-9.]+)'}\n"
                              "  dataset: {samples: 4040, bytes_per_sample: 112B}\n"
                              "  train: {steps: 200}\n"
                              "  precision: fp32\n"
                              "  batch_per_accelerator: 8\n"
                              "  strategy: {kind: multi_worker_mirrored, workers: 3}\n"
                              "  checkpoint: {interval: none}\n"
                              "cluster:\n"
                              "  provider: on_premises\n"
                              "  pools:\n"
                              "    - {name: here, role: worker, nodes: 3, machine: {vcpu: 1, "
                              "memory: 2GiB, network: 10Gbps}}\n";

class ForeignJob {
 public:
  ForeignJob() : cluster_(Cluster::with_node()) {
    w_.write("train", kTrain);
    cluster_.load_image(w_, kImage,
                        {"train:bin/train:755", "/bin/sh:bin/sh", "/bin/sleep:bin/sleep",
                         "/bin/mkdir:bin/mkdir", "/bin/mv:bin/mv"});
    space_ = cluster_.make_space("mine", w_);
    w_.write("mine.yaml", kScenario);
  }
  ~ForeignJob() { cluster_.kubectl("delete namespace mine --wait=false"); }
  ForeignJob(const ForeignJob&) = delete;
  ForeignJob& operator=(const ForeignJob&) = delete;

  void start(const std::string& words, const std::string& out) {
    out_ = out;
    process_ = std::make_unique<ChildProcess>(
        ProcessSpec{"reckon",
                    {"sh", "-c",
                     "cd '" + w_.path("").string() + "' && exec env " + cluster_.environment() +
                         " '" RECKON_BINARY_DIR "/bin/reckon' run --on kubernetes --out " + out +
                         ' ' + words + " > " + out + ".out 2>> " + out + ".err"},
                    {},
                    {}});
  }
  bool running() { return !process_->poll_end(); }
  void kill_launcher() {
    process_->signal(SIGKILL);
    REQUIRE(wait_for([&] { return !running(); }));
  }
  int code() {
    const bool ended = wait_for([&] { return !running(); }) || wait_for([&] { return !running(); });
    INFO(errors());
    REQUIRE(ended);
    const ProcessEnd end = *process_->poll_end();
    return end.signal != 0 ? 128 + end.signal : end.code;
  }
  std::string errors() const { return read_all(w_.path(out_ + ".err")); }
  bool said(const std::string& text) { return contains(errors(), text) || !running(); }
  Measurements measured() const {
    const auto read = read_measurement_log(w_.path(out_) / "measurements.jsonl");
    REQUIRE(read);
    return *read;
  }
  std::string pod_of(int rank) const {
    std::string name;
    const nlohmann::json pods = cluster_.get("pods -n mine");
    for (const auto& pod : pods.at("items"))
      if (pod.at("metadata").at("annotations").value("reckon/first-rank", "") ==
          std::to_string(rank))
        name = std::max(name, pod.at("metadata").at("name").get<std::string>());
    return name;
  }
  void kubectl(const std::string& words) const { cluster_.kubectl("-n mine " + words); }
  Output reckon(const std::string& words) const { return w_.run(words); }

 private:
  Workspace w_;
  Cluster& cluster_;
  Cluster::Space space_;
  std::string out_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace

TEST_CASE("a program of one's own trains in pods, is deleted by force, resumes by its own file",
          "[.long]") {
  ForeignJob job;
  job.start("mine.yaml --replications 20 --claim checkpoints --retry-delay 1s", "run");
  REQUIRE(wait_for([&] { return job.said("it 100 |"); }));
  job.kubectl("delete pod " + job.pod_of(1) + " --force --grace-period=0");
  // In the middle of the second attempt the launcher dies, and another takes its place.
  REQUIRE(wait_for([&] { return job.said("it goes on from step 80"); }));
  job.kill_launcher();
  job.start("--attach mine", "run");
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);

  const Measurements m = job.measured();
  CHECK(m.useful_steps().size() == kSteps);
  CHECK(m.useful_steps().back().loss == Approx(0.8));
  REQUIRE(m.runs.size() == 2);
  CHECK(m.runs[1].first_step == 80);
  CHECK(m.runs[1].workers == 3);
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].detail == "rank 1 was deleted");
  CHECK(m.interruptions[0].lost_steps == 20);
  REQUIRE(!m.ends.empty());
  CHECK(m.ends.back().finished);
  const auto waits = std::count_if(m.timeline.spans.begin(), m.timeline.spans.end(),
                                   [](const Span& s) { return s.name == "start container"; });
  CHECK(waits >= 3);
  const Output diff = job.reckon("diff run/forecast.json run");
  INFO(diff.err);
  CHECK(diff.code <= 1);  // the forecast is of no machine like this one
  CHECK_THAT(diff.out, Contains("mine: the run took"));
}

TEST_CASE("a program of one's own that ends well when it is evicted was interrupted", "[.long]") {
  ForeignJob job;
  job.start("mine.yaml --replications 20 --claim checkpoints --retry-delay 1s", "run");
  REQUIRE(wait_for([&] { return job.said("it 100 |"); }));
  job.kubectl("delete pod " + job.pod_of(2));  // SIGTERM, and it ends with 0
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].rank == 2);
  CHECK(m.interruptions[0].detail == "rank 2 was deleted");
  CHECK(m.interruptions[0].lost_steps == 20);  // from 100 back to 80
  CHECK(m.useful_steps().size() == kSteps);
}
