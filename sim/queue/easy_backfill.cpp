#include "sim/queue/easy_backfill.h"

#include <algorithm>
#include <functional>
#include <list>
#include <numeric>
#include <queue>
#include <set>

#include "sim/queue/free_nodes.h"

namespace reckon {
namespace {

class EasyBackfill {
 public:
  EasyBackfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups, QueueRun& run)
      : jobs_(jobs), run_(run), empty_(groups), nodes_(groups), held_(jobs.size()) {}

  void simulate() {
    std::vector<std::size_t> order(jobs_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return jobs_[a].submit < jobs_[b].submit;
    });
    auto next = order.begin();
    while (next != order.end() || !ends_.empty()) {
      const bool ends =
          !ends_.empty() && (next == order.end() || ends_.top().first <= jobs_[*next].submit);
      now_ = ends ? ends_.top().first : jobs_[*next].submit;
      while (!ends_.empty() && ends_.top().first <= now_) end_first();
      for (; next != order.end() && jobs_[*next].submit <= now_; ++next) {
        if (empty_.fits(jobs_[*next].gpus()))
          waiting_.push_back(*next);
        else
          run_.never.push_back(*next);
      }
      look_at_queue();
    }
    std::sort(run_.never.begin(), run_.never.end());
  }

 private:
  using Timed = std::pair<SimTime, std::size_t>;  // when, and which job

  const FixedTime& fixed(std::size_t job) const { return std::get<FixedTime>(jobs_[job].work); }
  /// That it may run.
  SimDuration longest(std::size_t job) const { return fixed(job).limit.value_or(fixed(job).time); }
  SimTime end_at_limit(std::size_t job) const { return now_ + longest(job); }

  void start(std::size_t j) {
    const JobRequest& job = jobs_[j];
    held_[j] = nodes_.take(job.gpus());
    run_.jobs[j].start = now_;
    run_.jobs[j].end = now_ + fixed(j).time;
    run_.gpu_seconds += to_seconds(fixed(j).time).count() * job.gpus();
    ends_.push({now_ + fixed(j).time, j});
    expected_.insert({end_at_limit(j), j});
  }

  void end_first() {
    const std::size_t j = ends_.top().second;
    ends_.pop();
    expected_.erase({*run_.jobs[j].start + longest(j), j});
    nodes_.give_back(held_[j]);
    held_[j] = {};
  }

  void look_at_queue() {
    while (!waiting_.empty() && nodes_.fits(jobs_[waiting_.front()].gpus())) {
      start(waiting_.front());
      waiting_.pop_front();
    }
    if (waiting_.size() < 2 || nodes_.free() == 0) return;
    reserve(waiting_.front());
    for (auto at = std::next(waiting_.begin()); at != waiting_.end() && nodes_.free() > 0;)
      at = may_start(*at) ? waiting_.erase(at) : std::next(at);
  }

  /// Lets running jobs end at their limits until the first fits, notes what it leaves of the nodes
  /// that it gets, and takes it all back.
  void reserve(std::size_t head) {
    std::vector<std::size_t> ended;
    reserved_at_ = now_;
    for (const auto& [at, j] : expected_) {
      if (nodes_.fits(jobs_[head].gpus())) break;
      reserved_at_ = std::max(now_, at);
      nodes_.give_back(held_[j]);
      ended.push_back(j);
    }
    const std::vector<NodePart> gets = nodes_.take(jobs_[head].gpus());
    spare_.clear();
    for (const NodePart& part : gets) spare_.push_back({part.node, nodes_.free_of(part.node)});
    nodes_.give_back(gets);
    for (const std::size_t j : ended) nodes_.take_again(held_[j]);
  }

  bool may_start(std::size_t j) {
    if (!nodes_.fits(jobs_[j].gpus())) return false;
    if (end_at_limit(j) <= reserved_at_) {
      start(j);
      return true;
    }
    // It would still run: of the reserved nodes only what is spare then.
    std::vector<NodePart> kept;
    for (const NodePart& spare : spare_)
      if (const int more = nodes_.free_of(spare.node) - spare.gpus; more > 0)
        kept.push_back({spare.node, more});
    nodes_.take_again(kept);
    const bool fits = nodes_.fits(jobs_[j].gpus());
    if (fits) {
      start(j);
      for (NodePart& spare : spare_)
        for (const NodePart& part : held_[j])
          if (part.node == spare.node) spare.gpus -= part.gpus;
    }
    nodes_.give_back(kept);
    return fits;
  }

  std::span<const JobRequest> jobs_;
  QueueRun& run_;
  const FreeNodes empty_;
  FreeNodes nodes_;
  std::vector<std::vector<NodePart>> held_;  // by job
  std::priority_queue<Timed, std::vector<Timed>, std::greater<>> ends_;
  std::set<Timed> expected_;        // of running jobs, their ends at the limit
  std::list<std::size_t> waiting_;  // in order of arrival
  SimTime now_{}, reserved_at_{};
  std::vector<NodePart> spare_;  // GPUs that the first leaves of the nodes that it gets
};

}  // namespace

QueueRun run_easy_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                           std::size_t first_measured, std::size_t measured) {
  QueueRun run;
  run.first_measured = first_measured;
  run.measured = measured;
  for (const JobRequest& job : jobs) run.jobs.push_back({job.submit, std::nullopt, std::nullopt});
  EasyBackfill(jobs, groups, run).simulate();
  summarize(run, std::accumulate(groups.begin(), groups.end(), 0, [](int sum, const NodeGroup& g) {
              return sum + g.nodes * g.gpus;
            }));
  return run;
}

}  // namespace reckon
