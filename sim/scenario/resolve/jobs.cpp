#include <algorithm>

#include <fmt/format.h>

#include "sim/base/limits.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/resolve/training/size.h"

// Several jobs on one cluster: each is planned as if it were alone, then their
// plans are laid together. What the plans must agree on is what the pools have
// once and not for each job.
namespace reckon::planning {
namespace {

std::string path_of(const JobSpec& job) { return "jobs." + job.name + ".workload"; }

/// The file with the job's workload as its own; mistakes point into the job.
ScenarioFile file_of_job(const ScenarioFile& file, const JobSpec& job) {
  ScenarioFile one = file;
  one.scenario.workload = job.workload;
  one.scenario.jobs.clear();
  one.places = file.places.with_alias(path_of(job), "workload");
  return one;
}

/// Mistakes of the cluster are found once for each job and said once.
void add_new(Diagnostics& all, const Diagnostics& more) {
  for (const Diagnostic& d : more)
    if (std::find(all.begin(), all.end(), d) == all.end()) all.push_back(d);
}

class Together {
 public:
  Together(const ScenarioFile& file, Diagnostics& errors) : file_(file), errors_(errors) {}

  void add(const JobSpec& spec, Plan alone) {
    PlannedWorkload job = std::move(alone.only_job());
    job.path = path_of(spec);
    if (once_.empty()) {
      first_ = spec.name;
      plan_ = std::move(alone);
      plan_.jobs.clear();
      storage_ = job.checkpoint.storage.name;
    } else {
      agree(spec, alone, job);
      for (const std::string& warning : alone.warnings)
        if (std::find(plan_.warnings.begin(), plan_.warnings.end(), warning) ==
            plan_.warnings.end())
          plan_.warnings.push_back(warning);
    }
    count_in(spec, job);
    once_.emplace_back(&spec, std::move(job));
  }

  /// Each job as often as it is submitted. Call it where there are no errors.
  Plan take() {
    for (const auto& [spec, job] : once_) {
      const std::size_t first = plan_.jobs.size();
      for (int k = 0; k < spec->times; ++k) {
        PlannedWorkload again = job;
        again.name = spec->times > 1 ? fmt::format("{}-{}", spec->name, k + 1) : spec->name;
        again.submit = spec->submit + double(k) * spec->every.value_or(Seconds{0});
        if (k > 0) again.same_as = first;
        plan_.jobs.push_back(std::move(again));
      }
    }
    return std::move(plan_);
  }

 private:
  /// Says once that the jobs so far are more than may be held.
  void count_in(const JobSpec& spec, const PlannedWorkload& job) {
    const bool held = bytes_ <= limits_.bytes;
    count_ += spec.times;
    bytes_ += spec.times * bytes_of(job) * (kCopiesOfPlan + 1);
    if (!held || bytes_ <= limits_.bytes) return;
    errors_.push_back({Severity::error, file_.places.find("jobs." + spec.name),
                       fmt::format("{} jobs up to '{}' take about {} of memory", count_, spec.name,
                                   format_bytes(Bytes{bytes_})),
                       hint_of_memory("fewer jobs, or fewer times", bytes_)});
  }

  void not_yet(std::string_view path, std::string what, std::string hint) {
    errors_.push_back({Severity::error, file_.places.find(path),
                       std::move(what) + " are not simulated yet", std::move(hint)});
  }

  void agree(const JobSpec& spec, const Plan& alone, const PlannedWorkload& job) {
    for (std::size_t p = 0; p < plan_.pools.size() && p < alone.pools.size(); ++p) {
      const PlannedPool& ours = plan_.pools[p];
      const PlannedPool& theirs = alone.pools[p];
      if (ours.role != theirs.role)
        errors_.push_back(
            {Severity::error, file_.places.find("cluster.pools." + ours.name),
             fmt::format("pool '{}' would be {} for job '{}' and {} for job '{}'", ours.name,
                         to_text(ours.role), first_, to_text(theirs.role), spec.name),
             "give the pool its role"});
      const bool same_speed = ours.efficiency.precision == theirs.efficiency.precision &&
                              ours.efficiency.stack == theirs.efficiency.stack;
      if (!same_speed) {
        not_yet(path_of(spec) + ".precision",
                fmt::format("jobs of different precisions or stacks ('{}' and "
                            "'{}') in one pool",
                            first_, spec.name),
                "one precision and stack for all jobs");
        break;
      }
    }
    if (job.checkpoint.storage.name != storage_)
      not_yet(path_of(spec) + ".checkpoint.storage",
              fmt::format("checkpoints of jobs in different storages ({} and {})", storage_,
                          job.checkpoint.storage.name),
              "one storage for all jobs");
  }

  const ScenarioFile& file_;
  Diagnostics& errors_;
  Plan plan_;
  std::string first_, storage_;
  const WorkLimits limits_ = work_limits();
  std::int64_t count_ = 0;
  double bytes_ = 0;
  std::vector<std::pair<const JobSpec*, PlannedWorkload>> once_;
};

}  // namespace

Expected<Plan> plan_of_jobs(const ScenarioFile& file, const Catalog& catalog,
                            const std::function<Expected<Plan>(const ScenarioFile&)>& make) {
  Diagnostics errors;
  const ServiceRules* service = service_of(file.scenario.cluster, catalog);
  if (service != nullptr && service->nodes_of_job)
    errors.push_back(
        {Severity::error, file.places.find("jobs"),
         fmt::format("jobs of {} do not share machines: each gets its own", to_text(service->id)),
         "one scenario a job, with workload: instead of jobs:"});
  for (const PoolSpec& pool : file.scenario.cluster.pools)
    if (!pool.fallback_for.empty())
      errors.push_back({Severity::error,
                        file.places.find("cluster.pools." + pool.name + ".fallback_for"),
                        "fallback pools are not simulated for several jobs yet",
                        "one scenario a job, with workload: instead of jobs:"});
  Together together(file, errors);
  for (const JobSpec& job : file.scenario.jobs) {
    auto plan = make(file_of_job(file, job));
    if (plan)
      together.add(job, std::move(*plan));
    else
      add_new(errors, plan.error());
  }
  if (!errors.empty()) return tl::unexpected(std::move(errors));
  return together.take();
}

}  // namespace reckon::planning
