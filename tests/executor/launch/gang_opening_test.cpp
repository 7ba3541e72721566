#include <catch2/catch.hpp>

#include "executor/comm/errors.h"
#include "executor/launch/shell_gang.h"
#include "executor/train/stop_signal.h"

// Members that open their data before they meet the others.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("a member may open its data for longer than a start may take while it gets on") {
  // Rank 0 has opened its own and waits for the other.
  GangOptions options =
      gang_of({"say 0 opening; say 0 starting; sleep 1.5",
               "for i in 1 2 3 4 5 6 7 8 9 10; do say 0 opening; sleep 0.1; done"});
  options.progress_deadline = 10ms;
  options.start_deadline = 600ms;
  const GangEnd end = run_gang(std::move(options), {}, {});
  CHECK(end.reason == "");
  CHECK(end.code == 0);
}

TEST_CASE("one that does not get on with its data is named with what it did") {
  GangOptions options =
      gang_of({"say 0 opening; say 0 starting; sleep 60", "say 0 opening; sleep 60"});
  options.progress_deadline = 10ms;
  options.start_deadline = 300ms;
  options.grace = 100ms;
  const GangEnd end = run_gang(std::move(options), {}, {});
  CHECK(end.culprit == 1);
  CHECK(end.reason == "rank 1 hung while it opened its data: no progress for 300 ms");
}

TEST_CASE("a stop while data are opened does not wait for those that wait to meet the stopped") {
  GangOptions options = gang_of({"trap '' TERM; say 0 opening; say 0 starting; sleep 60",
                                 "trap 'exit 75' TERM; say 0 opening; sleep 60 & wait"});
  options.notice = 60s;
  int ready = 0;
  GangEvents events;
  events.progress = [&](int, const ProgressReport&) { ++ready; };
  GangEnd end;
  CHECK(elapsed_of([&] {
          end = run_gang(std::move(options), events,
                         [&] { return ready == 3 ? StopRequest::graceful : StopRequest::none; });
        }) < 20s);
  CHECK(end.code == kExitStoppedOnRequest);
  CHECK(end.reason == "stopped on request");
}
