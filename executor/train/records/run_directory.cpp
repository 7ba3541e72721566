#include "executor/train/records/run_directory.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr const char* kAttempt = "RECKON_ATTEMPT";
constexpr const char* kStarted = "RECKON_RUN_STARTED";
constexpr const char* kSupervisor = "RECKON_SUPERVISOR";
constexpr const char* kStandsBy = "RECKON_STANDS_BY";
constexpr const char* kRankOfWorker = "RECKON_RANK_OF_WORKER";
constexpr const char* kMeeting = "RECKON_MEETING";
constexpr const char* kParent = "RECKON_PARENT";

std::optional<std::int64_t> integer_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const auto value = parse_integer(text);
  return value ? std::optional(*value) : std::nullopt;
}

}  // namespace

std::string RunClock::text() const {
  using namespace std::chrono;
  const auto since = duration_cast<milliseconds>(started_.time_since_epoch()).count();
  const std::time_t seconds = std::time_t(since / 1000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                     since % 1000);
}

std::optional<RunClock> RunClock::parse(const std::string& text) {
  std::tm utc{};
  int milliseconds = 0, length = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &utc.tm_year, &utc.tm_mon,
                  &utc.tm_mday, &utc.tm_hour, &utc.tm_min, &utc.tm_sec, &milliseconds,
                  &length) != 7 ||
      std::size_t(length) != text.size())
    return std::nullopt;
  utc.tm_year -= 1900;
  utc.tm_mon -= 1;
  const std::time_t seconds = ::timegm(&utc);
  return RunClock(std::chrono::system_clock::from_time_t(seconds) +
                  std::chrono::milliseconds(milliseconds));
}

RunEnvironment RunEnvironment::read() {
  RunEnvironment e;
  e.attempt = integer_of(kAttempt).value_or(0);
  if (const char* started = std::getenv(kStarted)) e.clock = RunClock::parse(started);
  if (const auto id = integer_of(kSupervisor)) e.supervisor = int(*id);
  if (const auto descriptor = integer_of(kLockVariable)) e.lock = int(*descriptor);
  if (const auto descriptor = integer_of(kRendezvousVariable)) e.rendezvous = int(*descriptor);
  if (const auto descriptor = integer_of(kOrdersVariable)) e.orders = int(*descriptor);
  e.stands_by = integer_of(kStandsBy).value_or(0) == 1;
  if (const auto rank = integer_of(kRankOfWorker)) e.rank_of_worker = int(*rank);
  if (const char* place = std::getenv(kMeeting)) e.meeting = parse_host_port(place);
  if (const auto id = integer_of(kParent)) e.parent = int(*id);
  return e;
}

std::vector<std::pair<std::string, std::string>> RunEnvironment::variables() const {
  std::vector<std::pair<std::string, std::string>> all{{kAttempt, std::to_string(attempt)}};
  if (clock) all.emplace_back(kStarted, clock->text());
  if (supervisor) all.emplace_back(kSupervisor, std::to_string(*supervisor));
  if (stands_by) all.emplace_back(kStandsBy, "1");
  return all;
}

std::vector<std::pair<std::string, std::string>> RunEnvironment::variables_of_rank() const {
  std::vector<std::pair<std::string, std::string>> all;
  if (rank_of_worker) all.emplace_back(kRankOfWorker, std::to_string(*rank_of_worker));
  if (meeting) all.emplace_back(kMeeting, text(*meeting));
  if (parent) all.emplace_back(kParent, std::to_string(*parent));
  return all;
}

}  // namespace reckon
