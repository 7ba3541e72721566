#include <fmt/format.h>

#include <array>

#include "report/queue/queue.h"
#include "sim/base/text/csv.h"

namespace reckon {
namespace {

std::string csv_or_empty(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::vector<std::string> sweep_csv_cells(const TraceResult& r) {
  std::vector<std::string> cells;
  for (const auto& times : {r.waiting, r.completion, r.slowdown})
    for (const auto which : {&TimeStatistics::mean, &TimeStatistics::p50, &TimeStatistics::p95})
      cells.push_back(times && times->count > 0 ? fmt::format("{}", (*times).*which) : "");
  for (const auto& value : {r.fairness, r.preemptions, r.makespan_seconds, r.utilization,
                            r.allocation, r.fragmentation, r.goodput, r.cost_usd, r.energy_joules})
    cells.push_back(csv_or_empty(value));
  cells.push_back(std::to_string(r.jobs));
  cells.push_back(std::to_string(r.never));
  return cells;
}

}  // namespace

std::string queue_sweep_csv(const QueueSweep& sweep) {
  constexpr std::array kColumns{"wait_mean_seconds",
                                "wait_p50_seconds",
                                "wait_p95_seconds",
                                "jct_mean_seconds",
                                "jct_p50_seconds",
                                "jct_p95_seconds",
                                "slowdown_mean",
                                "slowdown_p50",
                                "slowdown_p95",
                                "fairness",
                                "preemptions",
                                "makespan_seconds",
                                "utilization",
                                "allocation",
                                "fragmentation",
                                "goodput",
                                "cost_usd",
                                "energy_joules",
                                "jobs",
                                "never"};
  return sweep_csv(sweep.paths, kColumns, rows_of(sweep, [&](std::size_t k) {
                     return sweep_csv_cells(*sweep.points[k].forecast);
                   }));
}

std::string queue_jobs_csv(const TraceQuestion& question, const QueueRecord& record) {
  const auto* queue = std::get_if<QueueQuestion>(&question.work);
  const JobNames& names = record.list.names;
  std::string out =
      "job,line,team,user,queue,qos,priority,gpus,submit_seconds,start_seconds,end_seconds,"
      "wait_seconds,duration_seconds,preemptions,measured,cost_usd,energy_joules,never,resource\n";
  const auto seconds = [](std::optional<SimTime> at) {
    return at ? fmt::format("{}", to_seconds(*at - SimTime{}).count()) : "";
  };
  const auto reasons = queue != nullptr ? why_never(*queue, record.list, record.run.never)
                                        : std::vector<std::string>(record.run.never.size());
  std::size_t next_never = 0;
  for (std::size_t j = 0; j < record.list.jobs.size(); ++j) {
    const JobRequest& job = record.list.jobs[j];
    const JobTimes& times = record.run.jobs[j];
    const bool never = next_never < record.run.never.size() && record.run.never[next_never] == j;
    const bool measured =
        j >= record.run.first_measured && j < record.run.first_measured + record.run.measured;
    const std::vector<std::string> cells{
        std::to_string(j + 1),
        job.line > 0 ? std::to_string(job.line) : "",
        names.teams.name(job.owner.team),
        names.users.name(job.owner.user),
        names.queues.name(job.owner.queue),
        names.qos.name(job.owner.qos),
        std::to_string(job.owner.priority),
        std::to_string(job.gpus()),
        seconds(times.submit),
        seconds(times.start),
        seconds(times.end),
        times.start ? fmt::format("{}", to_seconds(*times.start - times.submit).count()) : "",
        fmt::format("{}", to_seconds(std::get<FixedTime>(job.work).time).count()),
        std::to_string(times.preemptions),
        measured ? "true" : "false",
        record.charges.priced ? fmt::format("{}", record.charges.of_job[j].usd) : "",
        record.charges.powered ? fmt::format("{}", record.charges.of_job[j].joules) : "",
        never ? reasons[next_never++] : "",
        names.resources.name(job.owner.resource)};
    out += csv_line(cells);
  }
  return out;
}

std::string queue_teams_csv(const TraceResult& result) {
  std::string out =
      "team,jobs,gpu_seconds,wait_mean_seconds,wait_p50_seconds,wait_p95_seconds,"
      "jct_mean_seconds,jct_p50_seconds,jct_p95_seconds,slowdown_mean,slowdown_p50,slowdown_p95,"
      "cost_usd,energy_joules\n";
  for (const TeamAnswer& team : result.teams) {
    std::vector<std::string> cells{team.name, std::to_string(team.jobs),
                                   fmt::format("{}", team.gpu_seconds)};
    for (const TimeStatistics& t : {team.waiting, team.completion, team.slowdown})
      for (const double value : {t.mean, t.p50, t.p95}) cells.push_back(fmt::format("{}", value));
    cells.push_back(csv_or_empty(team.usd));
    cells.push_back(csv_or_empty(team.joules));
    out += csv_line(cells);
  }
  return out;
}

}  // namespace reckon
