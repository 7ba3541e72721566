#include <catch2/catch.hpp>

#include <algorithm>

#include "executor/kubernetes/watched_cluster.h"

// Ranks of a run in a cluster that are slow beyond their kind.
using namespace reckon;
using namespace reckon::kubernetes;
using namespace reckon::test;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace {

ClusterJob job_with_slow_rank(int nodes) {
  return ClusterJob({steps_of(0, 0, 30, 500ms), steps_of(0, 1, 30, 500ms), steps_of(0, 2, 30, 1s)},
                    nodes);
}

const char* const kSlow =
    "rank 2 on node node-2 takes 1.00 s for its own part of a step, 2.0 times what the other 2 "
    "ranks like it take";

}  // namespace

TEST_CASE("the node of a slow rank is cordoned where another has room, as the decision says") {
  ClusterJob job = job_with_slow_rank(kPods + 1);
  job.options.cordon_slow = true;
  RunEnds then;
  job.observer.decides = [&](DecisionRecord& d, const RunStatus& now, const RunEnds& ends) {
    then = ends;
    d.kept_p50 = Seconds{now.estimate.time_seconds.p50};
    d.p50 = Seconds{ends.times[1]};
  };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow));
  CHECK_THAT(w.messages, Contains("node node-2 is cordoned ('kubectl uncordon node-2' takes it "
                                  "back), and its pod ends behind a checkpoint"));
  CHECK(w.said.find("annotate configmap job-run --overwrite reckon/cordoned-in=0") <
        w.said.find("cordon node-2"));
  CHECK_THAT(w.said, Contains("cordon node-2") &&
                         Contains("annotate node node-2 --overwrite reckon/cordoned-by=ns/job") &&
                         Contains("--field-selector spec.nodeName=node-2"));
  REQUIRE(w.measured.decisions.size() == 1);
  const DecisionRecord& decision = w.measured.decisions.front();
  CHECK(decision.applied);
  CHECK(decision.what == std::string("node node-2 cordoned and its pod replaced: ") + kSlow);
  CHECK(decision.changes.empty());
  // Steps of 1 s become steps of half a second, behind a start of 30 s.
  REQUIRE(then.times.size() == 3);
  REQUIRE(decision.p50);
  CHECK(*decision.p50 < decision.kept_p50);
  CHECK(*decision.p50 > 0.5 * decision.kept_p50 + 30s);
  CHECK(w.end.end.verdict == Verdict::finished);
  CHECK(w.end.end.attempts == 2);
}

TEST_CASE("a rank whose log is read first is not slow where all were slow in the same steps") {
  // Rank 0 became slow with all others, of which the first steps alone are read yet.
  const auto slows_down = [](int rank, int steps) {
    std::string log = steps_of(0, rank, std::min(steps, 40), 500ms);
    for (int step = 40; step < steps; ++step)
      log += log_of({to_json(StepRecord{.rank = rank,
                                        .step = step,
                                        .at = Seconds{double(step)},
                                        .seconds = Seconds{1},
                                        .compute = 1s,
                                        .samples = 64})},
                    std::size_t(step - 20));
    return log;
  };
  ClusterJob job({slows_down(0, 80), slows_down(1, 30), slows_down(2, 30)});
  std::int64_t done = 0;
  job.observer.run.status = [&](const RunStatus& status) { done = status.steps_done; };
  job.stops = [&](const auto&) { return done == 80 ? StopRequest::graceful : StopRequest::none; };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK(done == 80);
  CHECK_THAT(w.messages, !Contains("slow: "));
}

TEST_CASE("a slow rank stays where no other node has room for it, and that is said") {
  ClusterJob job = job_with_slow_rank(kPods);
  job.options.cordon_slow = true;
  job.stops = [](const WatchedInCluster& w) {
    const bool told = w.messages.find("cordoned") != std::string::npos;
    return told ? StopRequest::graceful : StopRequest::none;
  };
  SECTION("of a fixed pool") {
    const WatchedInCluster w = job.run();
    INFO(w.messages << w.said);
    CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow) &&
                               Contains("node node-2 is not cordoned: no other node is known to "
                                        "have room for its pod"));
    CHECK_THAT(w.said, !Contains("cordon node-2") && !Contains("delete pod"));
    CHECK(w.measured.decisions.empty());
  }
  SECTION("an autoscaler makes a node") {
    job.plan.pools.front().autoscaling = true;
    const WatchedInCluster w = job.run();
    INFO(w.messages << w.said);
    CHECK_THAT(w.said, Contains("cordon node-2") && Contains("delete pod"));
    CHECK(w.measured.decisions.size() == 1);
  }
}

TEST_CASE("behind a launcher that cordoned a node in an attempt no second one is in the same") {
  ClusterJob job = job_with_slow_rank(kPods + 1);
  job.options.cordon_slow = true;
  const std::int64_t before = GENERATE(0, 1);
  job.options.state.cordoned_in = before;  // 1: of a later attempt than this one
  job.stops = [](const WatchedInCluster& w) {
    return w.messages.find("slow: ") != std::string::npos ? StopRequest::graceful
                                                          : StopRequest::none;
  };
  const WatchedInCluster w = job.run();
  INFO(w.messages << w.said);
  CHECK_THAT(w.messages, Contains(std::string("slow: ") + kSlow));
  CHECK((w.said.find("cordon node-2") != std::string::npos) == (before != 0));
}

TEST_CASE("of a large job it is said how many ranks are compared for slowness") {
  ClusterJob job({"", "", ""});
  job.plan = make_round_plan(small_mlp(), StrategyKind::multi_worker_mirrored, 70, 2);
  job.stops = [](const auto&) { return StopRequest::at_once; };
  const std::string messages = job.run().messages;
  CHECK_THAT(messages,
             Contains("the logs of 64 of 70 workers are read: 128 of 140 ranks are compared "
                      "for slowness"));
}
