#pragma once
#include <map>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.h"
#include "sim/queue/job_list.h"

// Readers of lists of recorded jobs (FixedTime). Errors: what is wrong, with file, line and column;
// a list without a job. Times of a calendar count from the first submit on. Jobs without GPU, and
// those that never ran or still do, are left out and counted.
namespace reckon {

/// job_id,submit_seconds,duration_seconds,gpus: a list of one's own; with limit_seconds, if it has
/// that column and the field is not blank, the time that the job asked for; likewise user, team,
/// queue, qos and priority.
Expected<JobList> read_job_csv(const std::string& file, std::string_view bytes);

/// Microsoft's Philly trace (Jeon et al. 2019, "Analysis of Large-Scale Multi-Tenant GPU Clusters
/// for DNN Training Workloads", USENIX ATC '19): its cluster_job_log, a JSON list of jobs with
/// submitted_time, user, vc (the team) and attempts, whose GPUs are those of the first attempt and
/// whose length is the time of all attempts; or a table made of it, timestamp,duration,num_gpus and
/// optionally user and cluster (the team).
Expected<JobList> read_philly(const std::string& file, std::string_view bytes);

/// SenseTime's Helios trace (Hu et al. 2021, "Characterization and Prediction of Deep Learning
/// Workloads in Large-Scale GPU Datacenters", SC '21; S-Lab-System-Group/HeliosData):
/// gpu_num,submit_time,duration and optionally user and vc (the team) of cluster_log.csv.
Expected<JobList> read_helios_csv(const std::string& file, std::string_view bytes);

/// Lists of Sia (Jayaram Subramanya et al. 2023, SOSP '23; petuum/adaptdl, branch osdi21-artifact):
/// name,time,application,num_replicas. They do not say how long a job takes: `durations` does, by
/// application.
Expected<JobList> read_sia_csv(const std::string& file, std::string_view bytes,
                               const std::map<std::string, Seconds>& durations);

/// `kubectl get workloads --all-namespaces --output json` of Kueue: workloads that were admitted
/// and finished. GPUs are all resources of its pods that end in "/gpu", and google.com/tpu; the
/// length is the time from the condition Admitted to Finished; the team is the namespace.
Expected<JobList> read_kueue_workloads(const std::string& file, std::string_view bytes);

/// What readers of times of a calendar need besides: `submits` are seconds since 1970 by job.
Expected<JobList> finished_list(Diagnostics problems, const std::string& file, JobList list,
                                const std::vector<std::int64_t>& submits);

}  // namespace reckon
