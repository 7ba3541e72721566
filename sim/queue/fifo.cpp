#include "sim/queue/fifo.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace reckon {
namespace {

struct Ending {
  SimTime at{};
  std::size_t job = 0;
  friend bool operator>(const Ending& a, const Ending& b) {
    return a.at != b.at ? a.at > b.at : a.job > b.job;
  }
};

SimDuration time_of(const JobRequest& job) { return std::get<FixedTime>(job.work).time; }

}  // namespace

QueueRun run_fifo(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                  std::size_t first_measured, std::size_t measured, const RunOptions& options) {
  QueueRun run = queue_of_jobs(jobs, first_measured, measured);
  FreeNodes nodes(groups);
  const FreeNodes empty(groups);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].submit < jobs[b].submit; });
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  std::vector<std::vector<NodePart>> held(jobs.size());
  SimTime now{};
  const auto end_first = [&] {
    const Ending ending = endings.top();
    endings.pop();
    nodes.give_back(held[ending.job]);
    options.note(ending.job, held[ending.job], *run.jobs[ending.job].start, ending.at);
    held[ending.job] = {};
    return ending.at;
  };
  const auto begin = [&](std::size_t j, std::vector<NodePart> parts) {
    held[j] = std::move(parts);
    run.jobs[j].start = now;
    run.jobs[j].end = now + time_of(jobs[j]);
    endings.push({now + time_of(jobs[j]), j});
    run.gpu_seconds += to_seconds(time_of(jobs[j])).count() * jobs[j].gpus();
  };
  for (const RunningJob& running : options.running) {
    if (running.on.empty() && !nodes.fits(jobs[running.job].gpus())) continue;
    if (!running.on.empty()) nodes.take_again(running.on);
    begin(running.job, running.on.empty() ? nodes.take(jobs[running.job].gpus()) : running.on);
  }
  for (const std::size_t j : order) {
    const JobRequest& job = jobs[j];
    if (run.jobs[j].start) continue;  // it ran already
    if (!empty.fits(job.gpus())) {
      run.never.push_back(j);
      continue;
    }
    now = std::max(now, job.submit);
    while (!endings.empty() && endings.top().at <= now) end_first();
    while (!nodes.fits(job.gpus())) now = std::max(now, end_first());
    begin(j, nodes.take(job.gpus()));
    if (options.until == j) break;
  }
  while (options.holdings != nullptr && !endings.empty()) end_first();
  std::sort(run.never.begin(), run.never.end());
  summarize(run, gpus_of(groups));
  return run;
}

}  // namespace reckon
