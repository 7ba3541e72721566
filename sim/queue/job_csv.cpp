#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/printable.h"
#include "sim/queue/fifo.h"
#include "sim/queue/timestamp.h"
#include "sim/queue/trace_csv.h"

namespace reckon {
namespace {

constexpr double kLongest = 3.15e9;  // seconds: a hundred years
constexpr std::int64_t kMostGpus = 1'000'000;

Expected<std::vector<JobRequest>> jobs_or(Diagnostics problems, const std::string& file,
                                          std::vector<JobRequest> jobs) {
  if (problems.empty() && jobs.empty())
    problems.push_back({Severity::error, {file, 0, 0}, "the list has no job", ""});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return jobs;
}

}  // namespace

Expected<std::vector<JobRequest>> read_job_csv(const std::string& file, std::string_view bytes) {
  enum { submit, duration, gpus, limit };
  constexpr std::array<std::string_view, 3> kColumns{"submit_seconds", "duration_seconds", "gpus"};
  constexpr std::array<std::string_view, 1> kOptional{"limit_seconds"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, kOptional, problems);
  std::vector<JobRequest> jobs;
  while (rows.next()) {
    const auto at = rows.number(submit, 0, kLongest), length = rows.number(duration, 0, kLongest);
    const auto count = rows.whole(gpus, 1, kMostGpus);
    std::optional<SimDuration> most;
    if (!rows.text(limit).empty()) {
      const auto seconds = rows.number(limit, 0, kLongest);
      if (!seconds) continue;
      most = to_clock(Seconds{*seconds});
    }
    if (!at || !length || !count) continue;
    jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{*at}), to_clock(Seconds{*length}),
                                static_cast<int>(*count), most, rows.line()));
  }
  return jobs_or(std::move(problems), file, std::move(jobs));
}

Expected<std::vector<JobRequest>> read_philly_csv(const std::string& file, std::string_view bytes) {
  enum { timestamp, duration, num_gpus };
  constexpr std::array<std::string_view, 3> kColumns{"timestamp", "duration", "num_gpus"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  std::vector<JobRequest> jobs;
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
    jobs.push_back(
        recorded_job({}, to_clock(Seconds{*length}), static_cast<int>(*count), {}, rows.line()));
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
