#include "sim/queue/queue_question.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/queue/backfill/backfill.h"
#include "sim/queue/backfill/kubernetes_rules.h"
#include "sim/queue/karpenter/karpenter_answer.h"
#include "sim/queue/kueue/kueue.h"
#include "sim/queue/preemptive.h"

namespace reckon {

void set_devices(JobList& list, std::span<const NodeGroup> groups) {
  if (list.names.resources.names().empty()) return;
  std::vector<double> devices;  // by resource
  for (const std::string& name : list.names.resources.names()) {
    const auto group = std::ranges::find(groups, name, &NodeGroup::resource);
    devices.push_back(group == groups.end() ? 1.0 : group->devices_of_gpu);
  }
  for (JobRequest& job : list.jobs)
    if (job.owner.resource >= 0)
      job.devices_of_gpu = devices[static_cast<std::size_t>(job.owner.resource)];
}

std::vector<CellSet> cells_of_jobs(const QueueQuestion& question, const JobList& list) {
  const auto& groups = question.groups;
  const bool shared =
      std::ranges::any_of(groups, [](const NodeGroup& g) { return !g.resource.empty(); });
  const bool excludes = std::ranges::any_of(list.paces, [](const PlacementPace& pace) {
    return std::ranges::any_of(pace.by_pool, &std::vector<double>::empty);
  });
  if (!shared && !excludes) return {};
  // Of whole GPUs, then by resource.
  std::vector<CellSet> with_resource(list.names.resources.names().size() + 1);
  for (const NodeGroup& group : groups) {
    const CellSet cell = CellSet{1} << group.cell;
    if (group.resource.empty()) with_resource.front() |= cell;
    for (std::size_t r = 0; r + 1 < with_resource.size(); ++r)
      if (list.names.resources.names()[r] == group.resource) with_resource[r + 1] |= cell;
  }
  std::vector<CellSet> runs;  // by pace
  for (const PlacementPace& pace : list.paces) {
    CellSet cells = 0;
    for (const NodeGroup& group : groups)
      if (!pace.by_pool[static_cast<std::size_t>(group.pool)].empty())
        cells |= CellSet{1} << group.cell;
    runs.push_back(excludes ? cells : kAllCells);
  }
  std::vector<CellSet> out;
  out.reserve(list.jobs.size());
  for (const JobRequest& job : list.jobs) {
    const int resource = job.owner.resource;
    CellSet cells = with_resource[resource < 0 ? 0 : static_cast<std::size_t>(resource) + 1];
    if (job.pace >= 0) cells &= runs[static_cast<std::size_t>(job.pace)];
    out.push_back(cells);
  }
  return out;
}

JobList jobs_of(const QueueQuestion& question, std::uint64_t seed, std::uint32_t replication) {
  if (!question.drawn) return question.list;
  const DrawnJobs& drawn = *question.drawn;
  JobList list =
      draw_arrivals(drawn.arrivals, drawn.profile, drawn.begins, seed, replication, drawn.paces);
  set_devices(list, question.groups);
  return list;
}

std::size_t first_measured(const QueueQuestion& question, const JobList& list) {
  if (!question.drawn) return question.running;
  const SimTime warm = SimTime{} + to_clock(question.drawn->arrivals.warm_up);
  return static_cast<std::size_t>(
      std::find_if(list.jobs.begin(), list.jobs.end(),
                   [&](const JobRequest& job) { return job.submit >= warm; }) -
      list.jobs.begin());
}

QueueRun run_queue(const QueueQuestion& question, const JobList& list, std::size_t first,
                   std::size_t measured, const RunOptions& given) {
  RunOptions options = given;
  const std::vector<CellSet> cells = cells_of_jobs(question, list);
  options.cells = cells;
  NodePlaces places;
  std::optional<JobPaces> paces;
  if (!list.paces.empty()) {
    places = node_places(question.groups, question.group_names, question.nodes_per_leaf);
    paces.emplace(list.jobs, list.paces, places);
    options.paces = &*paces;
  }
  switch (question.scheduler.policy) {
    case SchedulingPolicy::easy_backfill:
      return run_easy_backfill(list.jobs, question.groups, first, measured, options);
    case SchedulingPolicy::sjf:
      return run_shortest_job_first(list.jobs, question.groups, first, measured, options);
    case SchedulingPolicy::srtf:
      return run_preemptive(list.jobs, question.groups, PreemptiveOrder::shortest_remaining, first,
                            measured, options);
    case SchedulingPolicy::las:
      return run_preemptive(list.jobs, question.groups, PreemptiveOrder::least_attained, first,
                            measured, options);
    case SchedulingPolicy::slurm: {
      MultifactorRules rules(list, *question.scheduler.slurm, question.partitions,
                             gpus_of(question.groups));
      return run_backfill(list.jobs, question.groups, rules, first, measured, options);
    }
    case SchedulingPolicy::kueue:
      return run_kueue(list, question.groups, question.pools, *question.scheduler.kueue, first,
                       measured, options);
    case SchedulingPolicy::kubernetes: {
      static const KubernetesSpec kDefaults;
      const auto& spec = question.scheduler.kubernetes;
      KubernetesRules rules(list, spec ? *spec : kDefaults);
      return run_backfill(list.jobs, question.groups, rules, first, measured, options);
    }
    case SchedulingPolicy::fifo:
      return run_fifo(list.jobs, question.groups, first, measured, options);
    case SchedulingPolicy::fifo_perf:
    case SchedulingPolicy::max_min_fairness:
    case SchedulingPolicy::max_min_fairness_perf:
    case SchedulingPolicy::max_min_fairness_water_filling_perf:
    case SchedulingPolicy::finish_time_fairness:
    case SchedulingPolicy::finish_time_fairness_perf:
    case SchedulingPolicy::min_total_duration:
    case SchedulingPolicy::min_total_duration_perf:
    case SchedulingPolicy::fgd:
    case SchedulingPolicy::best_fit:
    case SchedulingPolicy::dot_product:
    case SchedulingPolicy::gpu_packing:
    case SchedulingPolicy::gpu_clustering:
    case SchedulingPolicy::random:
      break;
  }
  RECKON_CHECK(false);
  return {};
}

std::vector<std::string> why_never(const QueueQuestion& question, const JobList& list,
                                   std::span<const std::size_t> jobs) {
  if (question.karpenter) {
    std::vector<std::string> reasons;
    for (const std::size_t job : jobs)
      reasons.push_back(why_no_node(list.jobs[job], *question.karpenter));
    return reasons;
  }
  std::optional<MultifactorRules> rules;
  if (question.scheduler.policy == SchedulingPolicy::slurm)
    rules.emplace(list, *question.scheduler.slurm, question.partitions, gpus_of(question.groups));
  const std::vector<CellSet> cells = cells_of_jobs(question, list);
  if (rules) rules->keep_to(cells);
  std::vector<std::string> reasons;
  for (const std::size_t job : jobs) {
    std::optional<std::string> why;
    if (question.scheduler.policy == SchedulingPolicy::kueue)
      why = kueue_never(list, job, question.groups, question.pools, *question.scheduler.kueue,
                        cells.empty() ? kAllCells : cells[job]);
    else if (rules)
      why = rules->never(job);
    if (!why && question.scheduler.policy != SchedulingPolicy::kueue)
      why = limit_that_binds(list.jobs[job].gpus(), question.groups,
                             rules           ? rules->nodes_of(job)
                             : cells.empty() ? kAllCells
                                             : cells[job]);
    reasons.push_back(why.value_or(""));
  }
  return reasons;
}

std::optional<std::string> note_of_never(const QueueQuestion& question, const JobList& list,
                                         const std::vector<std::size_t>& never) {
  if (never.empty()) return std::nullopt;
  const JobRequest& first = list.jobs[never.front()];
  const std::string& device = list.names.resources.name(first.owner.resource);
  return fmt::format(
      "{} of the jobs can never run; the first, {}, asks for {} {}{}: {}", never.size(),
      first.line > 0 ? fmt::format("line {} of the list", first.line)
                     : fmt::format("job {}", never.front() + 1),
      first.gpus(), device.empty() ? "GPU" : device, device.empty() && first.gpus() != 1 ? "s" : "",
      why_never(question, list, std::span(never).first(1)).front());
}

std::optional<std::string> note_of_accounts(const QueueQuestion& question, const JobList& list) {
  const SchedulerSpec& scheduler = question.scheduler;
  if (scheduler.policy != SchedulingPolicy::slurm || scheduler.slurm->accounts.empty())
    return std::nullopt;
  std::vector<std::string> accounts;
  for (const SlurmAccountSpec& account : scheduler.slurm->accounts)
    accounts.push_back(account.name);
  for (const std::string& team : list.names.teams.names())
    if (!team.empty() && std::ranges::find(accounts, team) == accounts.end())
      return fmt::format("team '{}' is no account of Slurm, so it has a share of 1{}", team,
                         did_you_mean(team, accounts));
  return std::nullopt;
}

}  // namespace reckon
