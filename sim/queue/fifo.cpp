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
    const SimDuration time = options.time(j, held[j], time_of(jobs[j]));
    run.jobs[j].end = now + time;
    endings.push({now + time, j});
    run.gpu_seconds += to_seconds(time).count() * jobs[j].whole_gpus();
  };
  for (const RunningJob& running : options.running) {
    const int gpus = jobs[running.job].gpus();
    const CellSet cells = options.cells_of(running.job);
    if (running.on.empty() && !nodes.fits(gpus, cells)) continue;
    if (!running.on.empty()) nodes.take_again(running.on);
    begin(running.job, running.on.empty() ? nodes.take(gpus, cells) : running.on);
  }
  for (const std::size_t j : order) {
    const JobRequest& job = jobs[j];
    if (run.jobs[j].start) continue;  // it ran already
    const CellSet cells = options.cells_of(j);
    if (!empty.fits(job.gpus(), cells)) {
      run.never.push_back(j);
      continue;
    }
    now = std::max(now, job.submit);
    while (!endings.empty() && endings.top().at <= now) end_first();
    while (!nodes.fits(job.gpus(), cells)) now = std::max(now, end_first());
    begin(j, nodes.take(job.gpus(), cells));
    if (options.until == j) break;
  }
  while (options.holdings != nullptr && !endings.empty()) end_first();
  std::sort(run.never.begin(), run.never.end());
  summarize(run, whole_gpus_of(groups));
  return run;
}

}  // namespace reckon
