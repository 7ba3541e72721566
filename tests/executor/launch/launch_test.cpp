#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "executor/launch/supervise.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;

/// A member that is a small program of the shell; $PROGRESS writes to its watcher.
ProcessSpec shell(const std::string& name, const std::string& script) {
  return {name, {"sh", "-c", "say() { echo \"$*\" >&$RECKON_PROGRESS_FD; }\n" + script}, {}, {}};
}

GangOptions gang_of(std::vector<std::string> scripts) {
  GangOptions options;
  for (std::size_t k = 0; k < scripts.size(); ++k)
    options.members.push_back(shell("rank " + std::to_string(k), scripts[k]));
  options.grace = 5s;
  options.notice = 5s;
  return options;
}

GangEnd run(GangOptions&& options) { return run_gang(std::move(options), {}, {}); }

Seconds elapsed_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::steady_clock::now() - begin;
}

TEST_CASE("a gang of which all end well ends well, with what each of them said") {
  std::map<int, std::string> said;
  std::map<int, std::vector<ProgressReport>> progress;
  GangEvents events;
  events.output = [&](int member, std::string_view line) {
    said[member] += std::string(line) + '|';
  };
  events.progress = [&](int member, const ProgressReport& r) { progress[member].push_back(r); };
  const GangEnd end = run_gang(gang_of({"echo one; echo two >&2; say 3 done 0.5 32 1.25",
                                        "printf 'no newline'; say 4 computing; say nonsense"}),
                               events, {});
  CHECK(end.code == 0);
  CHECK(!end.culprit);
  CHECK(said[0] == "one|two|");
  CHECK(said[1] == "no newline|");
  REQUIRE(progress[0].size() == 1);
  CHECK(progress[0][0].step == 3);
  CHECK(progress[0][0].seconds == 0.5s);
  CHECK(progress[0][0].samples == 32);
  CHECK(progress[0][0].loss == 1.25);
  REQUIRE(progress[1].size() == 1);
  CHECK(progress[1][0].phase == ProgressPhase::computing);
}

TEST_CASE("a member that writes without end is still watched, and a line without end is cut") {
  GangOptions options = gang_of({"exec yes", "head -c 300000 /dev/zero | tr '\\0' x"});
  options.notice = 0s;
  const auto begin = std::chrono::steady_clock::now();
  std::size_t longest = 0, all = 0;
  GangEvents events;
  events.output = [&](int member, std::string_view line) {
    if (std::chrono::steady_clock::now() - begin > 20s) throw std::runtime_error("not watched");
    if (member == 0) return;
    longest = std::max(longest, line.size());
    all += line.size();
  };
  const auto stop = [&] { return all == 300'000 ? StopRequest::at_once : StopRequest::none; };
  CHECK(run_gang(std::move(options), events, stop).asked);
  CHECK(all == 300'000);
  CHECK(longest <= 2 * 65536);  // a full line less one, and one read more
}

TEST_CASE("the environment and inherited descriptors reach a member, our other files do not") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // without close-on-exec: must still be named to be of use
  GangOptions options = gang_of({"echo \"hello $GREETED\" >&$GIFT"});
  options.members[0].environment = {{"GREETED", "world"}};
  options.members[0].inherited = {{"GIFT", ends[1]}};
  CHECK(run(std::move(options)).code == 0);
  char text[64] = {};
  CHECK(::read(ends[0], text, sizeof text - 1) == 12);
  CHECK(std::string(text) == "hello world\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a member that is killed is named, and the others are ended after the grace") {
  GangOptions options = gang_of({"sleep 60", "kill -9 $$"});
  options.grace = 100ms;
  GangEnd end;
  CHECK(elapsed_of([&] { end = run(std::move(options)); }) < 10s);
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 was killed by signal 9 (Killed)");
  CHECK(end.code == 137);
  CHECK(end.ends[0].signal == SIGKILL);
  CHECK(verdict_on(end) == Verdict::retry);
  CHECK(cause_of(end) == Interruption::failure);
}

TEST_CASE("a job whose first member ends well is over, and its servers are asked to end") {
  // As TensorFlow's do: one obeys, one has to be killed.
  GangOptions options = gang_of({"exit 0", "trap 'exit 3' TERM; while :; do sleep 0.05; done",
                                 "trap '' TERM; while :; do sleep 0.05; done"});
  options.grace = 100ms;
  options.notice = 300ms;
  options.foreign = options.ends_with_first = true;
  const auto begin = std::chrono::steady_clock::now();
  const auto stop = [&] {  // only where it never ends
    const bool late = std::chrono::steady_clock::now() - begin > 60s;
    return late ? StopRequest::at_once : StopRequest::none;
  };
  const GangEnd end = run_gang(std::move(options), {}, stop);
  CHECK(!end.asked);
  CHECK(end.code == 0);
  CHECK(!end.culprit);
  for (const ProcessEnd& e : end.ends) CHECK(e.good());
  CHECK(verdict_on(end) == Verdict::finished);
}

TEST_CASE("a first member that fails does not make the others' ends good ones") {
  GangOptions options = gang_of({"exit 4", "sleep 60"});
  options.grace = 100ms;
  options.foreign = options.ends_with_first = true;
  const GangEnd end = run(std::move(options));
  CHECK(end.culprit == 0);
  CHECK(end.code == 4);
  CHECK(!end.ends[1].good());
}

TEST_CASE("the others of a foreign gang get a word and all the grace when one fails") {
  // It takes longer than a gang of our own workers gets before it has said anything.
  const std::filesystem::path ready =
      std::filesystem::temp_directory_path() / ("reckon-ready-" + std::to_string(::getpid()));
  std::string said;
  GangEvents events;
  events.output = [&](int, std::string_view line) { said += line; };
  GangOptions options =
      gang_of({"trap 'sleep 1; echo saved; exit 0' TERM; : > " + ready.string() +
                   "; while :; do sleep 0.05; done",
               "while [ ! -e " + ready.string() + " ]; do sleep 0.05; done; exit 76"});
  options.grace = 60s;
  options.foreign = true;
  const GangEnd end = run_gang(std::move(options), events, {});
  std::filesystem::remove(ready);
  CHECK(said.find("saved") != std::string::npos);  // behind the shell's own "Terminated"
  CHECK(end.culprit == 1);
  CHECK(end.code == 76);
  CHECK(end.ends[0].good());
}

TEST_CASE("who lost a peer is not to blame where the peer is found") {
  // Rank 0 notices first: it ends with 76 before rank 1 has ended.
  const GangEnd end = run(gang_of({"exit 76", "sleep 0.3; exit 3"}));
  CHECK(end.culprit == 1);
  CHECK(end.code == 3);
  CHECK(run(gang_of({"exit 76", "sleep 0.3; exit 0"})).culprit == 0);
}

TEST_CASE("a member that says nothing for too long is killed and named with its step") {
  GangOptions options =
      gang_of({"say 7 computing; say 7 exchanging; sleep 60", "say 7 computing; sleep 60",
               "say 7 computing; say 7 exchanging; sleep 60"});
  options.progress_deadline = 300ms;
  options.grace = 100ms;
  const GangEnd end = run(std::move(options));
  CHECK(end.hung);
  CHECK(end.culprit == 1);  // the others wait for it in the exchange
  CHECK(end.reason == "rank 1 hung in step 7 (computing): no progress for 300 ms");
  CHECK(verdict_on(end) == Verdict::retry);
}

TEST_CASE("of several that are silent at the same place the stopped one is named") {
  GangOptions options =
      gang_of({"say 7 computing; sleep 60", "say 7 computing; kill -STOP $$; sleep 60"});
  options.progress_deadline = 300ms;
  options.grace = 100ms;
  CHECK(run(std::move(options)).culprit == 1);
}

TEST_CASE("a stopped server is named, not the worker that waits for it") {
  GangOptions options =
      gang_of({"say 7 computing; say 7 exchanging; sleep 60", "kill -STOP $$; sleep 60"});
  options.members[1].name = "rank 1 (server 0)";
  options.members[1].reports = false;
  options.progress_deadline = 300ms;
  options.grace = 100ms;
  const GangEnd end = run(std::move(options));
  CHECK(end.hung);
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 (server 0) stands still: no progress of the others for 300 ms");
  CHECK(verdict_on(end) == Verdict::retry);
}

TEST_CASE("a loss while all are starting does not wait for those who wait for the lost one") {
  GangOptions options = gang_of({"sleep 60", "kill -KILL $$"});
  options.grace = 60s;
  GangEnd end;
  CHECK(elapsed_of([&] { end = run(std::move(options)); }) < 20s);
  CHECK(end.culprit == 1);
}

TEST_CASE("a member that never says anything is given the time of a start") {
  GangOptions options = gang_of({"sleep 60"});
  options.progress_deadline = 10ms;  // does not count before the first word
  options.start_deadline = 300ms;
  options.grace = 0s;
  const GangEnd end = run(std::move(options));
  CHECK(end.reason == "rank 0 did not say anything within 300 ms");
}

TEST_CASE("a member that does not report is held to no deadline") {
  GangOptions options =
      gang_of({"for i in 1 2 3 4 5 6; do say $i computing; sleep 0.1; done", "sleep 0.7"});
  options.members[1].reports = false;
  options.start_deadline = options.progress_deadline = 300ms;
  CHECK(run(std::move(options)).code == 0);
}

TEST_CASE("who saves has the time of a start, and who waits for it is not found silent") {
  const std::string saved =
      std::filesystem::temp_directory_path() / ("reckon-saved-" + std::to_string(::getpid()));
  REQUIRE(::mkfifo(saved.c_str(), 0600) == 0);
  GangOptions options =
      gang_of({"say 7 computing; say 7 exchanging; read done < " + saved,
               "say 7 computing; say 6 saving; sleep 0.8; say 7 computing; echo > " + saved});
  options.progress_deadline = 400ms;
  options.start_deadline = 20s;
  const GangEnd end = run(std::move(options));
  CHECK(end.reason == "");
  CHECK(end.code == 0);
  std::filesystem::remove(saved);
}

TEST_CASE("of those that are silent the one that hangs while it saves is named") {
  GangOptions options = gang_of(
      {"say 7 computing; say 7 exchanging; sleep 60", "say 7 computing; say 6 saving; sleep 60"});
  options.progress_deadline = 100ms;
  options.start_deadline = 500ms;
  options.grace = 100ms;
  const GangEnd end = run(std::move(options));
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 hung in step 6 (saving): no progress for 500 ms");
}

TEST_CASE("a request to stop reaches all; who ends with 75 has stopped well") {
  const std::string good = "trap 'say 9 saving; exit 75' TERM; say 1 computing; sleep 60 & wait";
  GangOptions options = gang_of({good, good});
  int ready = 0;
  GangEvents events;
  events.progress = [&](int, const ProgressReport& r) { ready += r.step == 1 ? 1 : 0; };
  const auto stop = [&] { return ready == 2 ? StopRequest::graceful : StopRequest::none; };
  const GangEnd end = run_gang(std::move(options), events, stop);
  CHECK(end.asked);
  CHECK(end.code == 75);
  CHECK(!end.culprit);
  CHECK(verdict_on(end) == Verdict::stopped);
}

TEST_CASE(
    "a request to stop that comes while processes start finds nothing to save, and is no error") {
  GangOptions options = gang_of({"say 0 starting; sleep 60",  // does not catch the signal yet
                                 "trap '' TERM; say 0 starting; sleep 60 & wait; sleep 60",
                                 "trap 'exit 76' TERM; say 0 starting; sleep 60 & wait"});
  int ready = 0;
  GangEvents events;
  events.progress = [&](int, const ProgressReport&) { ++ready; };
  const auto stop = [&] { return ready == 3 ? StopRequest::graceful : StopRequest::none; };
  const GangEnd end = run_gang(std::move(options), events, stop);
  CHECK(end.asked);
  CHECK(end.code == 75);
  CHECK(verdict_on(end) == Verdict::stopped);
}

TEST_CASE("who does not stop within the notice is killed, and named") {
  GangOptions options = gang_of({"trap '' TERM; say 1 computing; sleep 60 & wait; sleep 60"});
  options.notice = 200ms;
  bool ready = false;
  GangEvents events;
  events.progress = [&](int, const ProgressReport&) { ready = true; };
  const auto stop = [&] { return ready ? StopRequest::graceful : StopRequest::none; };
  const GangEnd end = run_gang(std::move(options), events, stop);
  CHECK(end.reason == "rank 0 did not stop within 200 ms");
  CHECK(verdict_on(end) == Verdict::hopeless);
}

TEST_CASE("a program that does not exist is an error that names it, and nothing is left running") {
  GangOptions options = gang_of({"sleep 60"});
  options.members.push_back({"rank 1", {"/no/such/program"}, {}, {}});
  std::string message;
  CHECK(elapsed_of([&] {
          try {
            run(std::move(options));
          } catch (const std::runtime_error& e) {
            message = e.what();
          }
        }) < 10s);
  CHECK(message == "cannot start rank 1 (/no/such/program): No such file or directory");
}

TEST_CASE("children of a member go with it") {
  const std::string file =
      std::filesystem::temp_directory_path() / ("reckon-grandchild-" + std::to_string(::getpid()));
  CHECK(run(gang_of({"sleep 60 & echo $! > " + file})).code == 0);
  pid_t grandchild = 0;
  std::ifstream(file) >> grandchild;
  std::filesystem::remove(file);
  REQUIRE(grandchild > 0);
  // Orphaned by us: whoever adopts it may take a moment to reap it.
  bool gone = false;
  for (int k = 0; k < 100 && !gone; ++k) {
    gone = ::kill(grandchild, 0) != 0 || state_of_process(grandchild) == 'Z';
    ::usleep(10'000);
  }
  CHECK(gone);
}

// ---- starting again

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

}  // namespace
}  // namespace reckon
