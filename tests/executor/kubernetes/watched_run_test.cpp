#include <catch2/catch.hpp>

#include "executor/kubernetes/watched_cluster.h"
#include "executor/launch/progress_readers.h"

using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

/// One node of 1 USD a second.
RunRates dollar_a_second() {
  RunRates rates;
  PoolRates pool;
  pool.nodes = 1;
  pool.price.machine = {3'600'000'000'000};
  rates.pools.push_back(pool);
  return rates;
}

}  // namespace

TEST_CASE("pods that tell of steps and then of none are ended, and the job starts again") {
  ClusterJob job({steps_of(0, 0, 5, 1s), steps_of(0, 1, 5, 1s), steps_of(0, 2, 5, 1s)});
  job.options.patience = {.step = Seconds{1}};
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
  CHECK(w.interruption().cause == Interruption::failure);
  CHECK(w.interruption().detail == "no step was told for 1.00 s behind step 5");
  CHECK(w.interruption().lost_steps == 5);
  CHECK(!w.interruption().rank);
  // It is written into the cluster before the pods are ended.
  CHECK(w.said.find("patch configmap") < w.said.find("patch --filename"));
}

TEST_CASE("what ends the watch of a later attempt starts no other beside its pods") {
  ClusterJob job({steps_of(0, 0, 5, 1s), steps_of(0, 1, 5, 1s), steps_of(0, 2, 5, 1s)});
  job.options.patience = {.step = Seconds{1}};
  job.options.retry.backoff_limit = 6;
  SECTION("its pods may not be listed any more") {
    job.write("refused-1", "Error from server (Forbidden): pods is forbidden");
    CHECK_THROWS_WITH(job.run(), Contains("pods is forbidden"));
    CHECK(job.read("made") == "2\n");
  }
  SECTION("the run was deleted") {
    // It is there at the end of the first attempt, and gone when the next is made.
    job.write("state-lives", "1");
    CHECK_THROWS_WITH(job.run(), "the run was deleted by somebody else");
    CHECK(job.read("made") == "1\n");
  }
}

TEST_CASE("a later start whose pods cannot be made is a failure, and none of them is left") {
  ClusterJob job({steps_of(0, 0, 5, 1s), steps_of(0, 1, 5, 1s), steps_of(0, 2, 5, 1s)});
  job.options.patience = {.step = Seconds{1}};
  job.options.retry.backoff_limit = 6;
  job.write("not-made-1", "Error from server (Forbidden): exceeded quota: pods");
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 3);
  REQUIRE(w.measured.interruptions.size() == 2);
  CHECK_THAT(w.measured.interruptions[1].detail, Contains("exceeded quota"));
  // Its Jobs, and whether pods are left, before the next is applied.
  const std::size_t failed = w.said.rfind("attempt=1");
  CHECK(failed != std::string::npos);
  CHECK(failed < w.said.rfind("apply --filename"));
}

TEST_CASE("a program of the user's own that hangs in its pods is ended, one that is mute is not") {
  const bool tells = GENERATE(true, false);
  const std::string line = tells ? "step " : "at ";
  ClusterJob job({log_of({line + "1/1000", line + "2/1000"}), "", ""});
  job.options.foreign = reader_of({});
  job.options.patience = {.step = Seconds{1}};
  if (!tells) {
    const auto begin = std::chrono::steady_clock::now();
    job.stops = [=](const auto&) {
      return std::chrono::steady_clock::now() - begin > 4s ? StopRequest::graceful
                                                           : StopRequest::none;
    };
  }
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  if (tells) {
    CHECK(w.end.end.verdict == Verdict::finished);
    CHECK(w.interruption().detail == "no step was told for 1.00 s behind step 2");
  } else {
    CHECK(w.end.end.verdict == Verdict::stopped);
    CHECK(w.measured.interruptions.empty());
  }
}

TEST_CASE("a log whose connection died without a word is read anew before its pods hang") {
  std::vector<std::string> later;
  for (int step = 3; step <= 20; ++step) later.push_back("step " + std::to_string(step) + "/20");
  ClusterJob job({log_of({"hello", "step 1/20", "step 2/20"}) + log_of(later, 40), "", ""});
  job.plan.jobs.front().steps = 20;
  job.options.foreign = reader_of({});
  job.options.patience = {.step = Seconds{1}};
  job.write("log-0-1", log_of({"a", "b", "c"}));
  job.write("log-0-2", log_of({"a", "b", "c"}));
  job.write("dies-log-0-0", "");
  std::int64_t done = 0;
  job.observer.run.status = [&](const RunStatus& status) { done = status.steps_done; };
  job.stops = [&](const auto&) { return done == 20 ? StopRequest::graceful : StopRequest::none; };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(done == 20);
  CHECK_THAT(w.said, Contains("--tail=1"));
  CHECK(w.measured.interruptions.empty());
}

TEST_CASE("a part of a run begins when it is started, not where its budget is too small for that") {
  ClusterJob job({"", "", ""});
  job.rates = dollar_a_second();
  const bool poor = GENERATE(true, false);
  job.options.budget = Usd{poor ? 20.0 : 2000.0};  // a start takes 30 s
  job.options.create = false;
  job.options.begins_part = true;
  job.options.first_attempt = 1;
  job.options.state.started = RunClock::starting_now().text();
  job.options.state.parts = {{0, Seconds{0}}, {1, Seconds{0}}};
  job.write("pods-", Json{{"items", Json::array()}}.dump());
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(w.end.ran != poor);
  CHECK(w.end.budget_spent == poor);
  const std::size_t part = w.said.find("apply --server-side --force-conflicts --filename -");
  CHECK((part == std::string::npos) == poor);
  CHECK((poor || part < w.said.find("job-1-worker") || part < w.said.find("attempt%3D1")));
}

TEST_CASE("a save that took longer than forecast ends a run in a cluster before its budget") {
  CheckpointRecord save;
  save.step = 3;
  save.seconds = 1000s;
  RunRecord begin;
  ClusterJob job({log_of({to_json(begin), to_json(save)}), "", ""});
  job.rates = dollar_a_second();
  job.options.budget = Usd{500};
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(w.end.budget_spent);
  CHECK(w.end.end.verdict == Verdict::stopped);
}
