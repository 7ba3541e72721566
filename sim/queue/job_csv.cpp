#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "sim/base/printable.h"
#include "sim/queue/fifo.h"
#include "sim/queue/trace_csv.h"

namespace reckon {
namespace {

constexpr double kLongest = 3.15e9;  // seconds: a hundred years
constexpr std::int64_t kMostGpus = 1'000'000;

Expected<std::vector<TimedJob>> jobs_or(Diagnostics problems, const std::string& file,
                                        std::vector<TimedJob> jobs) {
  if (problems.empty() && jobs.empty())
    problems.push_back({Severity::error, {file, 0, 0}, "the list has no job", ""});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return jobs;
}

/// "2017-10-09 07:01:55", in seconds since 1970.
std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, end = 0;
  const std::string copy(text);
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d %2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &end) != 6 ||
      end != static_cast<int>(copy.size()))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  const bool in_day =
      hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 61;
  if (!date.ok() || !in_day) return std::nullopt;
  return (std::chrono::sys_seconds(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
          std::chrono::minutes(minute) + std::chrono::seconds(second))
      .time_since_epoch()
      .count();
}

}  // namespace

Expected<std::vector<TimedJob>> read_job_csv(const std::string& file, std::string_view bytes) {
  enum { submit, duration, gpus };
  constexpr std::array<std::string_view, 3> kColumns{"submit_seconds", "duration_seconds", "gpus"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  std::vector<TimedJob> jobs;
  while (rows.next()) {
    const auto at = rows.number(submit, 0, kLongest), length = rows.number(duration, 0, kLongest);
    const auto count = rows.whole(gpus, 1, kMostGpus);
    if (!at || !length || !count) continue;
    jobs.push_back(
        {SimTime{} + to_clock(Seconds{*at}), to_clock(Seconds{*length}), static_cast<int>(*count)});
  }
  return jobs_or(std::move(problems), file, std::move(jobs));
}

Expected<std::vector<TimedJob>> read_philly_csv(const std::string& file, std::string_view bytes) {
  enum { timestamp, duration, num_gpus };
  constexpr std::array<std::string_view, 3> kColumns{"timestamp", "duration", "num_gpus"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  std::vector<TimedJob> jobs;
  std::vector<std::int64_t> submits;
  while (rows.next()) {
    const auto at = parse_timestamp(rows.text(timestamp));
    if (!at)
      rows.error(timestamp,
                 fmt::format("timestamp is '{}', but must be a date with its time",
                             printable(rows.text(timestamp))),
                 "example: 2017-10-09 07:01:55");
    const auto length = rows.number(duration, 0, kLongest);
    const auto count = rows.whole(num_gpus, 0, kMostGpus);
    if (!at || !length || !count || *count == 0) continue;
    jobs.push_back({{}, to_clock(Seconds{*length}), static_cast<int>(*count)});
    submits.push_back(*at);
  }
  if (!jobs.empty()) {
    const std::int64_t first = *std::min_element(submits.begin(), submits.end());
    for (std::size_t k = 0; k < jobs.size(); ++k)
      jobs[k].submit = SimTime{} + std::chrono::seconds(submits[k] - first);
  }
  return jobs_or(std::move(problems), file, std::move(jobs));
}

}  // namespace reckon
