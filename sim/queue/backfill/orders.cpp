#include "sim/queue/backfill/backfill.h"
#include "sim/queue/backfill/waiting_jobs.h"

namespace reckon {
namespace {

class ShortestFirst : public QueueRules {
 public:
  explicit ShortestFirst(std::span<const JobRequest> jobs) : jobs_(jobs) {}
  double tie(std::size_t job) const override {
    return to_seconds(longest_time(jobs_[job])).count();
  }

 private:
  std::span<const JobRequest> jobs_;
};

}  // namespace

QueueRun run_easy_backfill(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                           std::size_t first_measured, std::size_t measured,
                           const RunOptions& options) {
  QueueRules in_order;
  return run_backfill(jobs, groups, in_order, first_measured, measured, options);
}

QueueRun run_shortest_job_first(std::span<const JobRequest> jobs, std::span<const NodeGroup> groups,
                                std::size_t first_measured, std::size_t measured,
                                const RunOptions& options) {
  ShortestFirst rules(jobs);
  return run_backfill(jobs, groups, rules, first_measured, measured, options);
}

}  // namespace reckon
