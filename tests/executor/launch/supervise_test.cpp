#include "executor/launch/supervise.h"

#include <catch2/catch.hpp>
#include <limits>

#include "executor/launch/shell_gang.h"

// A lost gang is started again, or not.
namespace reckon {
namespace {

using namespace std::chrono_literals;
using namespace reckon::test;

RetryRules quick_rules(int limit) { return {limit, 10ms, 40ms, false}; }

SupervisedEnd supervise_script(const std::string& script, int limit,
                               std::vector<Seconds>* delays = nullptr) {
  SuperviseOptions options;
  options.retry = quick_rules(limit);
  options.gang = [script](std::int64_t attempt) {
    GangOptions gang = gang_of({script});
    gang.members[0].environment = {{"ATTEMPT", std::to_string(attempt)}};
    return gang;
  };
  SuperviseEvents events;
  events.interrupted = [&](std::int64_t, const GangEnd&, Seconds delay) {
    if (delays) delays->push_back(delay);
  };
  return supervise(options, events, {});
}

TEST_CASE("a lost gang is started again until it finishes, with doubling back-off") {
  std::vector<Seconds> delays;
  const SupervisedEnd end = supervise_script("[ $ATTEMPT -lt 4 ] && exit 76; exit 0", 6, &delays);
  CHECK(end.verdict == Verdict::finished);
  CHECK(end.attempts == 5);
  CHECK(delays == std::vector<Seconds>{10ms, 20ms, 40ms, 40ms});  // capped
}

TEST_CASE("failures beyond the limit end the job, preemptions do not count") {
  const SupervisedEnd failed = supervise_script("kill -9 $$", 2);
  CHECK(failed.verdict == Verdict::hopeless);
  CHECK(failed.exit_code == 1);
  CHECK(failed.attempts == 3);
  CHECK(failed.reason ==
        "rank 0 was killed by signal 9 (Killed), and failed more often than the limit of 2");
  const SupervisedEnd preempted = supervise_script("[ $ATTEMPT -lt 5 ] && exit 75; exit 0", 2);
  CHECK(preempted.verdict == Verdict::finished);
  CHECK(preempted.attempts == 6);
}

TEST_CASE("a configuration that cannot run and a failed run are not tried again") {
  const SupervisedEnd wrong = supervise_script("exit 2", 6);
  CHECK(wrong.attempts == 1);
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.reason == "rank 0 ended with code 2");
  CHECK(supervise_script("exit 1", 6).exit_code == 1);
  CHECK(supervise_script("exit 1", 6).attempts == 1);
}

TEST_CASE("a later start that cannot be made is one more failure") {
  SuperviseOptions options;
  options.retry = quick_rules(6);
  options.gang = [](std::int64_t attempt) {
    GangOptions gang = gang_of({attempt < 2 ? "exit 76" : "exit 0"});
    if (attempt == 1) gang.members[0].command = {"/no/such/program"};
    return gang;
  };
  std::vector<std::string> reasons;
  SuperviseEvents events;
  events.interrupted = [&](std::int64_t, const GangEnd& end, Seconds) {
    reasons.push_back(end.reason);
  };
  const SupervisedEnd end = supervise(options, events, {});
  CHECK(end.verdict == Verdict::finished);
  CHECK(end.attempts == 3);
  REQUIRE(reasons.size() == 2);
  CHECK(reasons[1] == "cannot start rank 0 (/no/such/program): No such file or directory");
}

TEST_CASE("what a gang elsewhere throws ends the supervision, at a later start too") {
  SuperviseOptions options;
  options.retry = quick_rules(6);
  int starts = 0;
  options.run = [&](std::int64_t attempt) {
    ++starts;
    if (attempt == 1) throw std::runtime_error("the cluster is forbidden");
    return failed_start(std::runtime_error("no pods could be made"));
  };
  CHECK_THROWS_WITH(supervise(options, {}, {}), "the cluster is forbidden");
  CHECK(starts == 2);
}

/// Never tried too often, and at once. `saved`: the newest checkpoint after the k-th start.
SupervisedEnd supervise_without_limit(const std::string& script,
                                      const std::vector<std::int64_t>& saved) {
  SuperviseOptions options;
  options.retry = {std::numeric_limits<int>::max(), Seconds{0}, Seconds{0}, false};
  std::size_t started = 0;
  options.gang = [&](std::int64_t attempt) {
    ++started;
    GangOptions gang = gang_of({script});
    gang.members[0].environment = {{"ATTEMPT", std::to_string(attempt)}};
    return gang;
  };
  options.checkpoint = [&]() -> std::optional<std::int64_t> {
    if (started == 0 || saved.empty()) return std::nullopt;
    return saved[std::min(started, saved.size()) - 1];
  };
  return supervise(options, {}, {});
}

TEST_CASE("an environment that ends three starts in a row, nothing saved, ends the job with 3") {
  const std::string full = "echo cannot write parameters: the disk is full; echo; exit 3";
  const SupervisedEnd end = supervise_without_limit(full, {});
  CHECK(end.verdict == Verdict::hopeless);
  CHECK(end.exit_code == 3);
  CHECK(end.attempts == 3);
  CHECK(end.reason ==
        "rank 0 ended with code 3 (cannot write parameters: the disk is full), as 3 starts in a "
        "row did, and no newer checkpoint was made");
  // The first two saved something: the count begins behind them.
  CHECK(supervise_without_limit(full, {10, 20, 20, 20, 20}).attempts == 5);
}

TEST_CASE("what another supervisor saw of a job counts on") {
  const EarlierEnd full{Interruption::failure, true}, lost{Interruption::failure, false},
      taken{Interruption::preemption, false};
  const auto starts = [](std::vector<EarlierEnd> earlier, int limit, const std::string& script) {
    SuperviseOptions options;
    options.retry = {limit, Seconds{0}, Seconds{0}, false};
    options.first_attempt = std::int64_t(earlier.size());
    options.earlier = std::move(earlier);
    options.gang = [&](std::int64_t) { return gang_of({script}); };
    options.checkpoint = [] { return std::optional<std::int64_t>(500); };
    const SupervisedEnd end = supervise(options, {}, {});
    CHECK(end.verdict == Verdict::hopeless);
    return std::pair(end.attempts, end.exit_code);
  };
  constexpr int kNoLimit = std::numeric_limits<int>::max();
  // Three starts in a row that a full disk ends: here and there.
  CHECK(starts({full, full}, kNoLimit, "exit 3") == std::pair(1, 3));
  CHECK(starts({full, full, lost}, kNoLimit, "exit 3") == std::pair(3, 3));
  // Two failures are allowed, the third ends the job; being taken away is none.
  CHECK(starts({lost, taken, lost}, 2, "exit 76") == std::pair(1, 1));
  CHECK(starts({lost, taken}, 2, "exit 76") == std::pair(2, 1));
}

TEST_CASE("an environment that fails now and then does not end the job") {
  // 3 3 76 3 3 76 3 3 0: never three in a row.
  const SupervisedEnd other = supervise_without_limit(
      "[ $ATTEMPT -lt 8 ] || exit 0; [ $((ATTEMPT % 3)) = 2 ] && exit 76; exit 3", {});
  CHECK(other.verdict == Verdict::finished);
  CHECK(other.attempts == 9);
  // Each start saves something.
  const SupervisedEnd ahead =
      supervise_without_limit("[ $ATTEMPT -lt 6 ] && exit 3; exit 0", {10, 20, 30, 40, 50, 60, 70});
  CHECK(ahead.verdict == Verdict::finished);
  CHECK(ahead.attempts == 7);
}

TEST_CASE("a request to stop during a back-off ends the job at once") {
  SuperviseOptions options;
  options.retry = {6, Seconds{60}, Seconds{60}, false};
  options.gang = [](std::int64_t) { return gang_of({"exit 76"}); };
  bool waiting = false;
  SuperviseEvents events;
  events.interrupted = [&](std::int64_t, const GangEnd&, Seconds) { waiting = true; };
  SupervisedEnd end;
  CHECK(elapsed_of([&] {
          end = supervise(options, events,
                          [&] { return waiting ? StopRequest::graceful : StopRequest::none; });
        }) < 10s);
  CHECK(end.verdict == Verdict::stopped);
  CHECK(end.exit_code == 75);
}

TEST_CASE("what waiting processes hold is saved by one more start before a job ends") {
  const bool asked = GENERATE(true, false);  // else the last failure ends it
  SuperviseOptions options;
  options.retry = {asked ? 6 : 0, Seconds{60}, Seconds{60}, false};
  std::vector<std::int64_t> started;
  bool trains = false, waiting = false;
  options.gang = [&](std::int64_t attempt) {
    started.push_back(attempt);
    return gang_of(
        {attempt == 0 ? "exit 76" : "trap 'exit 75' TERM; say 1 computing; sleep 60 & wait"});
  };
  options.holds_more = [&] { return started.size() == 1; };
  options.trains = [&] { return trains; };
  SuperviseEvents events;
  events.interrupted = [&](std::int64_t, const GangEnd&, Seconds) { waiting = true; };
  events.gang.progress = [&](int, const ProgressReport&) { trains = true; };
  const SupervisedEnd end = supervise(options, events, [&] {
    return asked && waiting ? StopRequest::graceful : StopRequest::none;
  });
  CHECK(started == std::vector<std::int64_t>{0, 1});
  CHECK(trains);
  CHECK(end.attempts == 2);
  CHECK(end.verdict == (asked ? Verdict::stopped : Verdict::hopeless));
  CHECK(end.exit_code == (asked ? 75 : 1));
}

}  // namespace
}  // namespace reckon
