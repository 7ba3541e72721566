#include "sim/queue/fifo.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>

#include "sim/base/check.h"

namespace reckon {
namespace {

struct Part {
  int node = 0, gpus = 0;
};

/// Nodes by how many of their GPUs are free.
class FreeNodes {
 public:
  explicit FreeNodes(std::span<const NodeGroup> groups) {
    for (const NodeGroup& group : groups) largest_ = std::max(largest_, group.gpus);
    by_free_.resize(static_cast<std::size_t>(largest_) + 1);
    for (const NodeGroup& group : groups)
      for (int k = 0; k < group.nodes; ++k) {
        by_free_[group.gpus].insert(static_cast<int>(free_.size()));
        free_.push_back(group.gpus);
      }
  }

  bool fits(int gpus) const {
    const auto whole = static_cast<std::size_t>(whole_nodes(gpus));
    if (by_free_[largest_].size() < whole) return false;
    const int rest = rest_of(gpus);
    if (rest == 0) return true;
    return by_free_[largest_].size() > whole || smallest_with(rest, largest_ - 1) >= 0;
  }

  std::vector<Part> take(int gpus) {
    std::vector<Part> parts;
    for (int k = whole_nodes(gpus); k > 0; --k) take_from(largest_, largest_, parts);
    if (const int rest = rest_of(gpus); rest > 0)
      take_from(smallest_with(rest, largest_), rest, parts);
    return parts;
  }

  void give_back(const std::vector<Part>& parts) {
    for (const Part& part : parts) move(part.node, part.gpus);
  }

 private:
  int whole_nodes(int gpus) const { return gpus / largest_; }
  int rest_of(int gpus) const { return gpus % largest_; }
  /// Number of free GPUs; -1: no node has from `least` to `most` free.
  int smallest_with(int least, int most) const {
    for (int free = least; free <= most; ++free)
      if (!by_free_[free].empty()) return free;
    return -1;
  }
  void take_from(int free, int gpus, std::vector<Part>& parts) {
    RECKON_CHECK(free >= gpus);
    const int node = *by_free_[free].begin();
    parts.push_back({node, gpus});
    move(node, -gpus);
  }
  void move(int node, int more) {
    by_free_[free_[node]].erase(node);
    free_[node] += more;
    RECKON_CHECK(free_[node] >= 0 && free_[node] <= largest_);
    by_free_[free_[node]].insert(node);
  }

  std::vector<int> free_;               // by node
  std::vector<std::set<int>> by_free_;  // nodes by free GPUs
  int largest_ = 0;
};

struct Ending {
  SimTime at{};
  std::size_t job = 0;
  friend bool operator>(const Ending& a, const Ending& b) {
    return a.at != b.at ? a.at > b.at : a.job > b.job;
  }
};

}  // namespace

QueueRun run_fifo(std::span<const TimedJob> jobs, std::span<const NodeGroup> groups,
                  std::size_t first_measured, std::size_t measured) {
  QueueRun run;
  run.first_measured = first_measured;
  run.measured = measured;
  FreeNodes nodes(groups);
  const FreeNodes empty(groups);
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].submit < jobs[b].submit; });
  for (const TimedJob& job : jobs) run.jobs.push_back({job.submit, std::nullopt, std::nullopt});
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> endings;
  std::vector<std::vector<Part>> held(jobs.size());
  SimTime now{};
  const auto end_first = [&] {
    const Ending ending = endings.top();
    endings.pop();
    nodes.give_back(held[ending.job]);
    held[ending.job] = {};
    return ending.at;
  };
  for (const std::size_t j : order) {
    const TimedJob& job = jobs[j];
    if (!empty.fits(job.gpus)) {
      run.never.push_back(j);
      continue;
    }
    now = std::max(now, job.submit);
    while (!endings.empty() && endings.top().at <= now) end_first();
    while (!nodes.fits(job.gpus)) now = std::max(now, end_first());
    held[j] = nodes.take(job.gpus);
    run.jobs[j].start = now;
    run.jobs[j].end = now + job.duration;
    endings.push({now + job.duration, j});
    run.gpu_seconds += to_seconds(job.duration).count() * job.gpus;
  }
  std::sort(run.never.begin(), run.never.end());
  summarize(run, std::accumulate(groups.begin(), groups.end(), 0, [](int sum, const NodeGroup& g) {
              return sum + g.nodes * g.gpus;
            }));
  return run;
}

}  // namespace reckon
