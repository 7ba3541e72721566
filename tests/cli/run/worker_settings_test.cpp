#include <catch2/catch.hpp>

#include "cli/run/hand_started.h"

// Ranks that people start one by one, each with its own words: what must be the same is.
using namespace reckon::test;

namespace {

const std::string kTwoWorkersByHand = "{kind: multi_worker_mirrored, workers: 2}";

/// Two workers by hand, whose words are `first` and `second`: rank 1's code is the answer's; rank 0
/// is told to stop once rank 1 has ended, and its code stands in zero.code.
Output two_workers(const Workspace& w, const std::string& first, const std::string& second) {
  const std::string common = " --workers 2 --threads 1" + meeting_point(w) + " ";
  return w.run_shell(kWorker + first + common + "--rank 0 2> zero.err & zero=$!; " + kWorker +
                     second + common +
                     "--rank 1; code=$?; kill -TERM $zero; wait $zero; echo $? > zero.code; "
                     "exit $code");
}

void check_told_apart(const Workspace& w, const std::string& first, const std::string& second,
                      const std::string& said) {
  const Output out = two_workers(w, first, second);
  INFO(first << " | " << second << "\n" << out.err);
  CHECK(out.code == 2);
  CHECK(contains(out.err, "rank 1 of job 'reckon' was started otherwise than rank 0: "));
  CHECK(contains(out.err, said));
  const std::string warned = read_all(w.path("zero.err"));
  CHECK(contains(warned, "warning: rank 1 (process "));
  CHECK(contains(warned, said));
  CHECK(read_all(w.path("zero.code")) == "75\n");  // it waits for the right one, and can be stopped
}

}  // namespace

TEST_CASE("a rank with another plan or other options is turned away, with all that differs") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwoWorkersByHand, 2));
  const std::string plan = "plan.yaml";
  check_told_apart(w, plan + " --seed 1", plan + " --seed 2", "seed is 2, rank 0 has 1");
  check_told_apart(w, plan + " --set workload.optimizer=sgd",
                   plan + " --set workload.optimizer=adamw", "optimizer is adamw, rank 0 has sgd");
  check_told_apart(w, plan,
                   plan + " --set 'workload.strategy={kind: sharded, workers: 2, zero_stage: 1}'",
                   "strategy.layout.zero_stage is 1, rank 0 has 0");
  check_told_apart(w, plan + " --steps 5", plan + " --steps 4", "steps is 4, rank 0 has 5");
  check_told_apart(w, plan + " --out run", plan, "--out is not given, rank 0 has given");
  const std::string three = " --micro-batch 4 --sum-directly --seed 3";
  check_told_apart(w, plan, plan + three,
                   "--sum-directly is yes, rank 0 has no; micro_batch is 4, rank 0 has 16; seed is "
                   "3, rank 0 has ");
}

TEST_CASE("a parameter server of another plan is turned away, with what differs") {
  const Workspace w;
  ServerJob job(w, 1, "synchronous");
  job.start_again("");
  const Output out = w.run_shell(job.worker(0) + " > /dev/null 2>&1 & worker=$!; " + job.server() +
                                 " --seed 9; code=$?; kill -TERM $worker; wait; "
                                 "exit $code");
  CHECK(out.code == 2);
  CHECK(contains(out.err, "seed is 9, rank 0 has "));
}

TEST_CASE("ranks whose samples lie elsewhere, or with other threads, train one model") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwoWorkersByHand, 2));
  const std::string common = "plan.yaml --workers 2" + meeting_point(w) + " ";
  const Output out = w.run_shell(
      kWorker + common + "--rank 1 --threads 2 --data-threads 2 > /dev/null & " + kWorker + common +
      "--rank 0 --threads 1 --keep 3; code=$?; wait $! && exit $code");
  CHECK(out.err == "");
  CHECK(out.code == 0);
}

TEST_CASE("who waits for the others ends when it is told to") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwoWorkersByHand, 2));
  for (const std::string rank : {"0", "1"})
    for (const std::string signal : {"TERM", "INT"}) {
      const Output out =
          w.run_shell(kWorker + "plan.yaml --workers 2 --rank " + rank + meeting_point(w) +
                      " & sleep 1; kill -" + signal + " $!; wait $!");
      INFO("rank " << rank << ", " << signal << "\n" << out.err);
      CHECK(out.code == 75);
    }
}

TEST_CASE("a second Ctrl-C ends a rank whose step waits for one that does not answer") {
  const Workspace w;
  w.write("plan.yaml", small_plan(kRecords, kTwoWorkersByHand, 2));
  const std::string common = kWorker + "plan.yaml --set workload.train.steps=1000000 --workers 2 " +
                             "--threads 1 --out run" + meeting_point(w);
  const Output out = w.run_shell(
      common + " --rank 1 > /dev/null 2>&1 & other=$!; " + common +
      " --rank 0 > /dev/null 2>&1 & first=$!; " + until_steps_of(0) +
      "kill -STOP $other; sleep 0.5; kill -INT $first; sleep 0.5; kill -0 $first && "
      "echo waits; kill -INT $first; wait $first; code=$?; kill -KILL $other; exit $code");
  INFO(out.err);
  CHECK(out.out == "waits\n");
  CHECK(out.code == 130);
}
