#include "sim/queue/lists/job_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "sim/base/text/printable.h"
#include "sim/queue/lists/philly_csv.h"
#include "sim/queue/lists/timestamp.h"
#include "sim/queue/lists/trace_csv.h"

namespace reckon {
namespace {

constexpr double kLongest = 3.15e9;  // seconds: a hundred years
constexpr std::int64_t kMostGpus = 1'000'000;

void count_left_out(JobList& list, int rows, const char* what) {
  if (rows > 0) list.left_out.emplace_back(rows, what);
}

/// A date with its time in the column, or a mistake.
std::optional<std::int64_t> calendar_time(TraceCsv& rows, std::size_t column,
                                          std::string_view name) {
  const auto at = parse_timestamp(rows.text(column));
  if (!at)
    rows.error(column,
               fmt::format("{} is '{}', but must be a date with its time", name,
                           printable(rows.text(column))),
               "example: 2017-10-09 07:01:55");
  return at;
}

/// Tables of a submit, a length, GPUs, and optionally a user and a team, in this order.
Expected<JobList> read_calendar_csv(const std::string& file, std::string_view bytes,
                                    std::span<const std::string_view> columns,
                                    std::span<const std::string_view> optional) {
  enum { submit, duration, gpus, user, team };
  Diagnostics problems;
  TraceCsv rows(file, bytes, columns, optional, problems);
  JobList list;
  std::vector<std::int64_t> submits;
  int without_gpu = 0;
  while (rows.next()) {
    const auto at = calendar_time(rows, submit, columns[submit]);
    const auto length = rows.number(duration, 0, kLongest);
    const auto count = rows.whole(gpus, 0, kMostGpus);
    if (!at || !length || !count) continue;
    if (*count == 0) {
      ++without_gpu;
      continue;
    }
    list.jobs.push_back(
        recorded_job({}, to_clock(Seconds{*length}), static_cast<int>(*count), {}, rows.line()));
    list.jobs.back().owner.user = list.names.users.number(rows.text(user));
    list.jobs.back().owner.team = list.names.teams.number(rows.text(team));
    submits.push_back(*at);
  }
  count_left_out(list, without_gpu, "without a GPU");
  return finished_list(std::move(problems), file, std::move(list), submits);
}

}  // namespace

Expected<JobList> finished_list(Diagnostics problems, const std::string& file, JobList list,
                                const std::vector<std::int64_t>& submits) {
  if (problems.empty() && list.jobs.empty())
    problems.push_back({Severity::error, {file, 0, 0}, "the list has no job", ""});
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  if (submits.empty()) return list;
  list.epoch = *std::min_element(submits.begin(), submits.end());
  for (std::size_t k = 0; k < list.jobs.size(); ++k)
    list.jobs[k].submit = SimTime{} + std::chrono::seconds(submits[k] - *list.epoch);
  return list;
}

Expected<JobList> read_job_csv(const std::string& file, std::string_view bytes) {
  enum { submit, duration, gpus, limit, user, team, queue, qos, priority, resource, training };
  constexpr std::array<std::string_view, 3> kColumns{"submit_seconds", "duration_seconds", "gpus"};
  constexpr std::array<std::string_view, 8> kOptional{
      "limit_seconds", "user", "team", "queue", "qos", "priority", "resource", "job"};
  constexpr std::int64_t kMostPriority = 1'000'000'000;
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, kOptional, problems);
  JobList list;
  while (rows.next()) {
    const auto at = rows.number(submit, 0, kLongest);
    // How long a training takes is the step model's to say.
    const bool trains = !rows.text(training).empty() && rows.text(duration).empty();
    const auto length = trains ? std::optional(0.0) : rows.number(duration, 0, kLongest);
    const auto count = rows.whole(gpus, 1, kMostGpus);
    if (!rows.text(training).empty() && !trains)
      rows.error(training, "a row has a duration_seconds and a job", "leave one of them empty");
    std::optional<SimDuration> most;
    std::optional<std::int64_t> rank = 0;
    if (!rows.text(limit).empty()) {
      const auto seconds = rows.number(limit, 0, kLongest);
      if (!seconds) continue;
      most = to_clock(Seconds{*seconds});
    }
    if (!rows.text(priority).empty()) rank = rows.whole(priority, -kMostPriority, kMostPriority);
    if (!at || !length || !count || !rank) continue;
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{*at}), to_clock(Seconds{*length}),
                                     static_cast<int>(*count), most, rows.line()));
    list.jobs.back().owner = {
        list.names.users.number(rows.text(user)), list.names.teams.number(rows.text(team)),
        list.names.queues.number(rows.text(queue)), list.names.qos.number(rows.text(qos)),
        static_cast<std::int32_t>(*rank)};
    list.jobs.back().owner.resource = list.names.resources.number(rows.text(resource));
    list.jobs.back().pace = list.names.trainings.number(rows.text(training));
  }
  return finished_list(std::move(problems), file, std::move(list), {});
}

Expected<JobList> read_philly_csv(const std::string& file, std::string_view bytes) {
  constexpr std::array<std::string_view, 3> kColumns{"timestamp", "duration", "num_gpus"};
  constexpr std::array<std::string_view, 2> kOptional{"user", "cluster"};
  return read_calendar_csv(file, bytes, kColumns, kOptional);
}

Expected<JobList> read_helios_csv(const std::string& file, std::string_view bytes) {
  constexpr std::array<std::string_view, 3> kColumns{"submit_time", "duration", "gpu_num"};
  constexpr std::array<std::string_view, 2> kOptional{"user", "vc"};
  return read_calendar_csv(file, bytes, kColumns, kOptional);
}

Expected<JobList> read_sia_csv(const std::string& file, std::string_view bytes,
                               const std::map<std::string, Seconds>& durations) {
  enum { submit, application, replicas };
  constexpr std::array<std::string_view, 3> kColumns{"time", "application", "num_replicas"};
  Diagnostics problems;
  TraceCsv rows(file, bytes, kColumns, {}, problems);
  JobList list;
  while (rows.next()) {
    const auto at = rows.number(submit, 0, kLongest);
    const auto count = rows.whole(replicas, 1, kMostGpus);
    const std::string name(rows.text(application));
    const auto length = durations.find(name);
    if (length == durations.end()) {
      std::vector<std::string> known;
      for (const auto& [key, time] : durations) known.push_back(key);
      rows.error(application,
                 fmt::format("no duration of application '{}'{}", printable(name),
                             did_you_mean(name, known)),
                 "the list does not say how long a job takes: trace.durations: {" +
                     printable(name) + ": 2h}");
      continue;
    }
    if (!at || !count) continue;
    list.jobs.push_back(recorded_job(SimTime{} + to_clock(Seconds{*at}), to_clock(length->second),
                                     static_cast<int>(*count), {}, rows.line()));
    list.jobs.back().owner.team = list.names.teams.number(name);
  }
  return finished_list(std::move(problems), file, std::move(list), {});
}

}  // namespace reckon
