#include "sim/scenario/cron_schedule.h"

#include <catch2/catch.hpp>

using namespace reckon;
using namespace std::chrono_literals;

namespace {
/// Monday the 30th of November 2026, 00:00 UTC.
constexpr std::chrono::sys_seconds kMonday{
    std::chrono::sys_days{std::chrono::year{2026} / 11 / 30}};

bool matches(const std::string& schedule, std::chrono::seconds after) {
  const auto read = CronSchedule::parse(schedule);
  INFO(schedule);
  REQUIRE(read.has_value());
  return read->matches(kMonday + after);
}
}  // namespace

TEST_CASE("the five fields of a schedule, with names, lists, ranges and steps") {
  CHECK(matches("0 9 * * mon-fri", 9h));
  CHECK_FALSE(matches("0 9 * * mon-fri", 9h + 1min));
  CHECK_FALSE(matches("0 9 * * mon-fri", 5 * 24h + 9h));
  CHECK(matches("*/15 0 * * *", 45min));
  CHECK_FALSE(matches("*/15 0 * * *", 44min));
  CHECK(matches("5,7-9 3 * * 1", 3h + 8min));
  CHECK_FALSE(matches("5,7-9 3 * * 1", 3h + 6min));
  CHECK(matches("10/20 * * * *", 50min));
  CHECK(matches("0 0 * nov *", 0h));
  CHECK(matches("0 0 * * 7", 6 * 24h));  // Sunday is 0 and 7
  CHECK(matches("0 0 * * 0", 6 * 24h));
}

TEST_CASE("where both days are restricted either is enough") {
  CHECK(matches("0 0 30 * 3", 0h));         // the 30th
  CHECK(matches("0 0 30 * 3", 2 * 24h));    // a Wednesday
  CHECK_FALSE(matches("0 0 30 * 3", 24h));  // Tuesday the 1st
}

TEST_CASE("names of schedules") {
  CHECK(matches("@hourly", 5h));
  CHECK(matches("@daily", 24h));
  CHECK_FALSE(matches("@daily", 25h));
  CHECK(matches("@weekly", 6 * 24h));
  CHECK(matches("@monthly", 24h));  // the 1st of December
  CHECK(matches("@yearly", 32 * 24h));
}

TEST_CASE("a schedule covers its duration from each of its times") {
  const auto nightly = CronSchedule::parse("0 22 * * *");
  REQUIRE(nightly.has_value());
  CHECK_FALSE(nightly->covers(kMonday + 22h - 1s, 8h));
  CHECK(nightly->covers(kMonday + 22h, 8h));
  CHECK(nightly->covers(kMonday + 24h + 6h - 1s, 8h));
  CHECK_FALSE(nightly->covers(kMonday + 24h + 6h, 8h));
}

TEST_CASE("what is no schedule is said") {
  const auto wrong = [](const std::string& text) {
    const auto read = CronSchedule::parse(text);
    return read ? std::string() : read.error();
  };
  CHECK(wrong("0 9 * *") ==
        "'0 9 * *' has not the five fields of a schedule: minute, hour, day of the month, month, "
        "day of the week");
  CHECK(wrong("60 * * * *") == "'60' is no minute (0 to 59)");
  CHECK(wrong("0 9 * * mon-fry") == "'mon-fry' is no day of the week (0 to 7)");
  CHECK(wrong("0 9-5 * * *") == "'9-5' is no hour (0 to 23)");
  CHECK(wrong("*/0 * * * *") == "'*/0' is no minute (0 to 59)");
}
