#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>

#include "checkpoint_support.h"
#include "executor/train/records/measurement_log.h"
#include "sim/base/random.h"

namespace reckon {
namespace {

using namespace reckon::test;

constexpr Purpose kLogKillMoment{"test_kill_moment"};

StepRecord step_of(int rank, std::int64_t step) {
  StepRecord r;
  r.rank = rank;
  r.step = step;
  return r;
}

TEST_CASE("a torn last line is cut off when the file is opened, and counted") {
  const Scratch scratch;
  const auto file = scratch.path() / "measurements.jsonl";
  const std::string whole = to_line(step_of(0, 0));
  // The torn part is longer than what is read at once when its begin is looked for.
  std::ofstream(file) << whole << "{\"record\":\"step\"" << std::string(10'000, 'x');
  MeasurementLog log(file);
  CHECK(log.torn_bytes() == 10'016);  // {"record":"step" is 16
  log.append(step_of(0, 1));
  CHECK(read_file_text(file) == whole + to_line(step_of(0, 1)));
}

TEST_CASE("a line that another writer left torn is cut off by the next record") {
  const Scratch scratch;
  const auto file = scratch.path() / "measurements.jsonl";
  MeasurementLog log(file);
  log.append(step_of(0, 0));
  std::ofstream(file, std::ios::app) << "{\"rec";
  log.append(step_of(0, 1));
  CHECK(log.torn_bytes() == 5);
  CHECK(read_measurement_log(file)->steps.size() == 2);
}

TEST_CASE("a writer that hangs with the lock keeps nobody from writing") {
  const Scratch scratch;
  const auto file = scratch.path() / "measurements.jsonl";
  MeasurementLog log(file);
  const FileHandle hung = open_file(file, O_RDWR);
  REQUIRE(::flock(hung.get(), LOCK_EX) == 0);
  std::string all;
  for (int step = 0; step < 500; ++step) {  // not a second each: the lock is waited for once
    log.append(step_of(0, step));
    all += to_line(step_of(0, step));
  }
  CHECK(read_file_text(file) == all);
  REQUIRE(::flock(hung.get(), LOCK_UN) == 0);
  log.append(step_of(0, 500));
  CHECK(read_file_text(file) == all + to_line(step_of(0, 500)));
}

TEST_CASE("a record that does not fit on the disk leaves the file as it was") {
  const Scratch scratch;
  const auto file = scratch.path() / "measurements.jsonl";
  MeasurementLog log(file);
  log.append(step_of(0, 0));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit low{to_line(step_of(0, 0)).size() + 10, before.rlim_max};  // ten bytes of the next
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &low) == 0);
  const std::string message = message_of([&] { log.append(step_of(0, 1)); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  CHECK(contains(message, "the file-size limit (ulimit -f) is reached"));
  CHECK(read_file_text(file) == to_line(step_of(0, 0)));
  log.append(step_of(0, 2));
  CHECK(read_measurement_log(file)->steps.size() == 2);
}

TEST_CASE("whoever goes on with a run sets damaged lines aside, once, and keeps every byte") {
  const Scratch scratch;
  const auto file = scratch.path() / "measurements.jsonl";
  std::string bad = to_line(step_of(0, 1));
  bad[20] = char(bad[20] ^ 4);
  const std::string garbage("\0\xff{", 3);
  const std::string first = to_line(step_of(0, 0)), last = to_line(step_of(0, 2));
  const std::string torn = "{\"record\":\"st";
  std::ofstream(file) << first << bad << garbage << first << last << torn;
  const auto read = take_up_measurement_log(file);
  REQUIRE(read);
  CHECK(read->steps.size() == 3);  // the one behind the garbage as well
  REQUIRE(read->damaged.size() == 2);
  CHECK(read->damaged[0].line == 2);
  CHECK(read_file_text(file) == first + first + last + torn);  // its writer cuts what is torn
  const std::string aside = read_file_text(damaged_lines_of(file));
  CHECK(contains(aside, "line 2, " + std::to_string(bad.size() - 1) +
                            " bytes: the line is damaged: its checksum differs\n" + bad));
  CHECK(contains(aside, garbage + first));
  CHECK(take_up_measurement_log(file)->damaged.empty());
  CHECK(read_file_text(damaged_lines_of(file)) == aside);
}

TEST_CASE("the next start is counted and timed although the record of the last is lost") {
  Measurements before;
  CHECK(next_start(before).attempt == 0);
  StepRecord step = step_of(0, 7);
  step.attempt = 4;
  step.at = Seconds{3600};
  before.steps.push_back(step);
  const NextStart next = next_start(before);
  CHECK(next.attempt == 5);
  CHECK(next.clock.now() >= Seconds{3600});
  CHECK(next.clock.now() < Seconds{3700});
  RunRecord run;
  run.started = "2026-12-04T18:00:00.123Z";
  before.runs.push_back(run);
  CHECK(next_start(before).attempt == 5);
  CHECK(next_start(before).clock.text() == run.started);
}

/// Appends record after record as `rank`, and tells the pipe each that is accepted.
[[noreturn]] void append_for_ever(const std::filesystem::path& file, int rank, std::int64_t first,
                                  int tell) {
  MeasurementLog log(file);
  for (std::int64_t step = first;; ++step) {
    log.append(step_of(rank, step));
    if (::write(tell, &step, sizeof step) != sizeof step) ::_exit(1);
  }
}

TEST_CASE("kill -9 of one of two writers, 200 times, loses no accepted measurement") {
  const Scratch scratch(memory_directory());
  const auto file = scratch.path() / "measurements.jsonl";
  RandomStream random(1, 0, kLogKillMoment, 1);
  std::map<int, std::int64_t> accepted{{0, -1}, {1, -1}};
  for (int kill = 0; kill < 100; ++kill) {
    int told[2][2];
    pid_t writers[2];
    for (const int rank : {0, 1}) {
      REQUIRE(::pipe(told[rank]) == 0);
      writers[rank] = ::fork();
      if (writers[rank] == 0) append_for_ever(file, rank, accepted[rank] + 1, told[rank][1]);
      ::close(told[rank][1]);
    }
    // Every other time at any moment from the start on, else behind some records: a busy machine
    // may start no writer within the pauses below.
    constexpr double kMostRecords = 10;
    const int records = kill % 2 == 0 ? 0 : 1 + int(random.uniform() * kMostRecords);
    for (const int rank : {0, 1})
      for (int k = 0; k < records; ++k)
        REQUIRE(::read(told[rank][0], &accepted[rank], sizeof accepted[rank]) ==
                sizeof accepted[rank]);
    const int first = random.uniform() < 0.5 ? 0 : 1;
    for (const int rank : {first, 1 - first}) {  // the other goes on for a while, then goes too
      const timespec wait{0, long(random.uniform() * 2e6)};
      ::nanosleep(&wait, nullptr);
      ::kill(writers[rank], SIGKILL);
    }
    for (const int rank : {0, 1}) {
      ::waitpid(writers[rank], nullptr, 0);
      for (std::int64_t step = 0; ::read(told[rank][0], &step, sizeof step) == sizeof step;)
        accepted[rank] = step;
      ::close(told[rank][0]);
    }
  }
  const auto read = read_measurement_log(file);
  REQUIRE(read);
  std::map<int, std::map<std::int64_t, int>> found;
  for (const StepRecord& s : read->steps) ++found[s.rank][s.step];
  for (const int rank : {0, 1}) {
    CHECK(accepted[rank] > 100);
    std::int64_t missing = 0;
    for (std::int64_t step = 0; step <= accepted[rank]; ++step) missing += found[rank][step] == 0;
    CHECK(missing == 0);
  }
}

}  // namespace
}  // namespace reckon
