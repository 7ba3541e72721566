#include <catch2/catch.hpp>
#include <cstdlib>

#include "executor/train/records/run_directory.h"

namespace reckon {
namespace {

TEST_CASE("the clock of a run is told as text and read back to the millisecond") {
  // 2026-12-04T18:00:00.123Z: 1796407200 s after 1970 by `date -d`.
  const RunClock clock(
      std::chrono::system_clock::time_point(std::chrono::milliseconds(1'796'407'200'123)));
  CHECK(clock.text() == "2026-12-04T18:00:00.123Z");
  CHECK(RunClock::parse(clock.text())->started() == clock.started());
  for (const char* text : {"", "2026-12-04", "2026-12-04T18:00:00.123", "now"})
    CHECK(!RunClock::parse(text));
  const auto moment = std::chrono::steady_clock::now() - std::chrono::seconds(5);
  const RunClock fresh = RunClock::starting_now();
  CHECK(fresh.at(moment).count() == Approx(-5).margin(0.5));
}

TEST_CASE("what a process is told arrives as it was meant") {
  RunEnvironment told;
  told.attempt = 3;
  told.clock = RunClock::parse("2026-12-04T18:00:00.123Z");
  told.supervisor = 4242;
  for (const auto& [name, value] : told.variables()) ::setenv(name.c_str(), value.c_str(), 1);
  const RunEnvironment read = RunEnvironment::read();
  for (const auto& [name, value] : told.variables()) ::unsetenv(name.c_str());
  CHECK(read.attempt == 3);
  CHECK(read.clock->text() == told.clock->text());
  CHECK(read.supervisor == 4242);
  CHECK(!read.lock);
  CHECK(RunEnvironment::read().attempt == 0);  // by hand
}

}  // namespace
}  // namespace reckon
