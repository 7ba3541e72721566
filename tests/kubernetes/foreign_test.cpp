#include "kubernetes/foreign_job.h"

// A program that is not ours in real pods: a script of the shell in an image with nothing but a
// shell, which tells of its steps by lines and keeps a file of its own.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

constexpr int kSteps = 200;

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

}  // namespace

TEST_CASE("a program of one's own trains in pods, is deleted by force, resumes by its own file",
          "[.long]") {
  ForeignJob job("mine", kTrain, foreign_job("mine", kSteps, 3));
  job.start_new();
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

TEST_CASE("an interruption that a launcher died over is told by the one that goes on, elsewhere",
          "[.long]") {
  ForeignJob job("handed", kTrain, foreign_job("handed", kSteps, 3));
  job.start_new("--retry-delay 1min");
  REQUIRE(wait_for([&] { return job.said("it 100 |"); }));
  job.kubectl("delete pod " + job.pod_of(1) + " --force --grace-period=0");
  REQUIRE(wait_for([&] { return job.said("restarting in"); }));
  job.kill_launcher();
  job.start("--attach handed", "elsewhere");
  const int code = job.code();
  INFO(job.errors());
  REQUIRE(code == 0);
  const Measurements m = job.measured();
  REQUIRE(m.interruptions.size() == 1);
  CHECK(m.interruptions[0].attempt == 0);
  CHECK(m.interruptions[0].detail == "rank 1 was deleted");
  CHECK(m.interruptions[0].lost_steps == 20);  // from 100 back to 80, as the next attempt told
  REQUIRE(!m.runs.empty());
  CHECK(m.runs.back().first_step == 80);
}

TEST_CASE("a program of one's own that ends well when it is evicted was interrupted", "[.long]") {
  ForeignJob job("polite", kTrain, foreign_job("polite", kSteps, 3));
  job.start_new();
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
