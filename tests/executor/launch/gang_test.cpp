#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "executor/launch/shell_gang.h"
#include "executor/launch/supervise.h"

namespace reckon {
namespace {

using namespace std::chrono_literals;
using namespace reckon::test;

GangEnd run(GangOptions&& options) { return run_gang(std::move(options), {}, {}); }

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

TEST_CASE("a request to stop reaches all, who ends with 75 has stopped well") {
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

TEST_CASE("a stop of the watcher's own waits for a step and its save, a loss in it is a loss") {
  const auto own = [](const std::string& script) {
    GangOptions options = gang_of({script});
    options.notice = 200ms;
    options.own_notice = [] { return Seconds{20}; };
    bool ready = false;
    GangEvents events;
    events.progress = [&](int, const ProgressReport&) { ready = true; };
    return run_gang(std::move(options), events,
                    [&] { return ready ? StopRequest::own : StopRequest::none; });
  };
  const GangEnd saved = own("trap 'sleep 1; exit 75' TERM; say 1 computing; sleep 60 & wait");
  CHECK(saved.code == 75);
  CHECK(verdict_on(saved) == Verdict::stopped);
  const GangEnd killed = own("trap 'kill -9 $$' TERM; say 1 computing; sleep 60 & wait");
  CHECK(killed.reason == "rank 0 was killed by signal 9 (Killed)");
  CHECK(verdict_on(killed) == Verdict::retry);
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

}  // namespace
}  // namespace reckon
