#include <signal.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "executor/comm/errors.h"
#include "executor/launch/supervise.h"

// A gang whose members do not end with a lost peer but wait for the next start.
using namespace reckon;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kAttempt = 2;

std::shared_ptr<WatchedProcess> staying(const std::string& name, const std::string& script) {
  return std::make_shared<WatchedProcess>(ProcessSpec{
      name, {"sh", "-c", "say() { echo \"$*\" >&$RECKON_PROGRESS_FD; }\n" + script}, {}, {}});
}

GangOptions staying_gang(std::vector<std::string> scripts) {
  GangOptions gang;
  for (std::size_t k = 0; k < scripts.size(); ++k)
    gang.running.push_back(staying("rank " + std::to_string(k), scripts[k]));
  gang.stays = true;
  gang.attempt = kAttempt;
  gang.grace = 5s;
  gang.notice = 5s;
  return gang;
}

const std::string kLost = "say 7 waiting 2 0; exec sleep 100";
const std::string kTold = "say 7 waiting 2 1; exec sleep 100";

}  // namespace

TEST_CASE("a start is over when each member has ended or waits, who waits lives on") {
  GangOptions gang = staying_gang({kLost, "say 6 computing; kill -9 $$", kLost});
  const auto running = gang.running;
  const GangEnd end = run_gang(std::move(gang), {}, {});
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 was killed by signal 9 (Killed)");
  CHECK(end.ends[0].code == kExitLostPeer);
  CHECK(verdict_on(end) == Verdict::retry);
  CHECK_FALSE(end.regroups);
  for (const std::size_t k : {0u, 2u}) {
    CHECK_FALSE(running[k]->look_for_end());
    CHECK(running[k]->has_left(kAttempt));
    CHECK(running[k]->last->step == 7);
  }
}

TEST_CASE("who does not leave a broken mesh is killed behind the grace, and none who waits") {
  GangOptions gang = staying_gang({"say 6 exchanging; exec sleep 100", "exit 3", kLost});
  gang.grace = 300ms;
  const auto running = gang.running;
  const GangEnd end = run_gang(std::move(gang), {}, {});
  CHECK(end.culprit == 1);
  CHECK(end.code == 3);
  CHECK(end.ends[0].signal == SIGKILL);
  CHECK_FALSE(running[2]->look_for_end());
}

TEST_CASE("where all leave as they were told nobody is lost, and where they were not somebody is") {
  GangOptions told = staying_gang({kTold, kTold});
  const GangEnd regrouped = run_gang(std::move(told), {}, {});
  CHECK(regrouped.regroups);
  CHECK_FALSE(regrouped.culprit);
  CHECK(verdict_on(regrouped) == Verdict::regroup);
  // One is lost on the way: that is a loss like any other.
  const GangEnd broken = run_gang(staying_gang({kTold, "sleep 0.2; exit 3"}), {}, {});
  CHECK_FALSE(broken.regroups);
  CHECK(broken.culprit == 1);
  const GangEnd apart = run_gang(staying_gang({kLost, kLost}), {}, {});
  CHECK(apart.code == kExitLostPeer);
  CHECK(apart.reason.ends_with("lost the others"));
  CHECK(verdict_on(apart) == Verdict::retry);
  // A report of an earlier start is none of this one: the deadline for silence goes on.
  GangOptions stale = staying_gang({"say 7 waiting 1 0; exec sleep 100"});
  stale.progress_deadline = stale.start_deadline = 300ms;
  CHECK(run_gang(std::move(stale), {}, {}).hung);
}

TEST_CASE("processes that stand by are heard, and their ends are nobody's loss") {
  GangOptions gang = staying_gang({"sleep 0.4; say 9 done 0.1 8 1.5"});
  gang.beside = {staying("stands by", "say 0 waiting -1 0; exec sleep 100"),
                 staying("stands by", "exit 3")};
  const auto beside = gang.beside;
  std::vector<int> heard;
  GangEvents events;
  events.progress = [&](int member, const ProgressReport&) { heard.push_back(member); };
  const GangEnd end = run_gang(std::move(gang), events, {});
  CHECK(end.code == 0);
  CHECK(heard == std::vector<int>{1, 0});
  CHECK(beside[0]->waits());
  CHECK_FALSE(beside[0]->has_left(kAttempt));
  CHECK(beside[1]->end->code == 3);
}

TEST_CASE("a start that regroups counts for nothing: no try, no wait") {
  SuperviseOptions options;
  options.retry = {.backoff_limit = 0, .base = Seconds{60}, .cap = Seconds{60}};
  int starts = 0;
  options.run = [&](std::int64_t) {
    GangEnd end;
    end.regroups = ++starts < 4;
    return end;
  };
  const SupervisedEnd end = supervise(options, {}, {});
  CHECK(end.verdict == Verdict::finished);
  CHECK(end.attempts == 4);
}
