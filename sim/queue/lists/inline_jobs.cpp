#include "sim/queue/lists/inline_jobs.h"

#include <cmath>

#include "sim/base/check.h"

namespace reckon {

void set_pods(JobRequest& job, const std::optional<PodShapeSpec>& pod) {
  if (!pod) return;
  constexpr double kMilli = 1000, kBytesOfMib = 1024.0 * 1024.0;
  RECKON_CHECK(job.workers == 1 && job.worker.gpus % pod->gpus == 0);
  job.workers = job.worker.gpus / pod->gpus;
  job.worker.gpus = pod->gpus;
  job.worker.cpu_milli = std::llround(pod->cpu * kMilli);
  job.owner.do_not_disrupt = pod->do_not_disrupt;
  job.worker.memory_mib = static_cast<std::int64_t>(std::ceil(pod->memory.v / kBytesOfMib));
}

JobList inline_jobs(const ScenarioFile& file) {
  JobList list;
  if (file.scenario.start) list.epoch = file.scenario.start->time_since_epoch().count();
  const auto& jobs = file.scenario.jobs;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const JobSpec& job = jobs[k];
    JobNames& names = list.names;
    JobRequest request =
        recorded_job({}, job.duration ? to_clock(*job.duration) : SimDuration{1}, job.gpus,
                     job.limit ? std::optional(to_clock(*job.limit)) : std::nullopt,
                     file.places.find("jobs." + job.name).line);
    request.owner.user = names.users.number(job.user);
    request.owner.team = names.teams.number(job.team);
    request.owner.queue = names.queues.number(job.queue);
    request.owner.qos = names.qos.number(job.qos);
    request.owner.priority = job.priority;
    request.owner.topology = names.topologies.number(
        job.required_topology.empty() ? job.preferred_topology : job.required_topology);
    request.owner.topology_required = !job.required_topology.empty();
    request.owner.resource = names.resources.number(job.resource);
    if (!job.duration || job.pace.given()) request.pace = static_cast<std::int32_t>(k);
    set_pods(request, job.pod);
    for (int time = 0; time < job.times; ++time) {
      request.submit = SimTime{} + to_clock(job.submit + time * job.every.value_or(Seconds{0}));
      list.jobs.push_back(request);
    }
  }
  return list;
}

}  // namespace reckon
