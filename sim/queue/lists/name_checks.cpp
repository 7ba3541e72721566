#include "sim/queue/lists/name_checks.h"

#include <algorithm>

#include "sim/queue/kueue/kueue.h"

namespace reckon {
namespace {

class NameChecks {
 public:
  NameChecks(const Scenario& scenario, const QueueQuestion& question, TraceSource& source)
      : scenario_(scenario), question_(question), source_(source) {}

  void check() {
    const auto tell = [&](const std::vector<std::string>& unknown, const char* what,
                          const char* hint) {
      for (const std::string& name : unknown)
        source_.error(place_of(&JobSpec::queue, name, "queue"),
                      name.empty()
                          ? fmt::format("a job names no {}, and there are several", what)
                          : fmt::format("jobs name the {} '{}', which is not there", what, name),
                      hint);
    };
    const SchedulingPolicy policy = question_.scheduler.policy;
    if (policy == SchedulingPolicy::slurm)
      tell(unknown_partitions(question_.list, *question_.scheduler.slurm), "partition",
           "add it to cluster.scheduler.slurm.partitions");
    if (policy == SchedulingPolicy::kueue)
      tell(unknown_cluster_queues(question_.list, *question_.scheduler.kueue), "ClusterQueue",
           "add it to cluster.scheduler.kueue.clusterQueues");
    check_resources();
  }

 private:
  /// Where jobs name it: the list, the classes, or the first of `jobs:` that does.
  std::string place_of(std::string JobSpec::*which, const std::string& name,
                       const char* key) const {
    if (scenario_.trace) return "trace.file";
    if (scenario_.arrivals) return "arrivals.classes";
    const auto job = std::ranges::find(scenario_.jobs, name, which);
    return job == scenario_.jobs.end() ? "jobs" : fmt::format("jobs.{}.{}", job->name, key);
  }

  /// Devices that jobs ask for, and no pool has.
  void check_resources() {
    std::vector<std::string> known;
    for (const NodeGroup& group : question_.groups)
      if (!group.resource.empty()) known.push_back(group.resource);
    for (const std::string& name : question_.list.names.resources.names())
      if (std::ranges::find(known, name) == known.end())
        source_.error(
            place_of(&JobSpec::resource, name, "resource"),
            fmt::format("jobs ask for '{}', which no pool has{}", name, did_you_mean(name, known)),
            "example: accelerator: {type: A100-SXM4-80, count: 8, shared: {resource: "
            "nvidia.com/mig-1g.10gb, devices: 7}}");
  }

  const Scenario& scenario_;
  const QueueQuestion& question_;
  TraceSource& source_;
};

}  // namespace

void check_names(const Scenario& scenario, const QueueQuestion& question, TraceSource& source) {
  NameChecks(scenario, question, source).check();
}

bool check_pods(const Scenario& scenario, TraceSource& source) {
  const std::size_t before = source.problems.size();
  const auto check = [&](const std::optional<PodShapeSpec>& pod, int gpus, const std::string& at) {
    if (pod && gpus % pod->gpus != 0)
      source.error(at + ".pod",
                   fmt::format("{} GPUs are no whole pods of {} GPUs", gpus, pod->gpus),
                   "pod.gpus: a divisor of the job's GPUs");
  };
  for (const JobSpec& job : scenario.jobs) check(job.pod, job.gpus, "jobs." + job.name);
  if (scenario.arrivals)
    for (const ArrivalClassSpec& kind : scenario.arrivals->classes)
      for (const auto& [gpus, share] : kind.gpus)
        check(kind.pod, gpus, "arrivals.classes." + kind.name);
  return source.problems.size() == before;
}

}  // namespace reckon
