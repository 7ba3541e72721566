#pragma once
#include <string>
#include <vector>

#include "exchange/kubernetes/pods.h"

// Inside exchange: the documents of a plan's job, and what surrounds it.
namespace reckon::kubernetes {

// Since when Kubernetes has what we would like to use, and does so without a feature gate.
inline constexpr int kIndexedJob = 22, kPodFailurePolicy = 26, kPodIndexLabel = 28;
inline constexpr int kTpuNodes = 26;  // of GKE: v4 from 1.26.1 on [GKE, "About TPUs in GKE"]

/// Workers (chief first), then servers; `job` has its plan, names and options.
/// groups.cpp
std::vector<PodGroup> groups_of(const Job& job);

/// An object in the job's namespace, with its labels.
Json object(const char* version, const char* kind, const Job& job, const std::string& name);

// surroundings.cpp
Json config_map(const Job& job);
Json secret(const Job& job);
/// Room for the checkpoints that are kept, the one that is being written, and as much again.
Json claim(const Job& job);
Json service(const Job& job);
/// The job's pods talk to each other, to the cluster's name servers and, where checkpoints go to a
/// bucket or the program is the user's own, to the outside by HTTPS; to the store of the samples.
Json network_policy(const Job& job);

// kubernetes_jobs.cpp
/// One Job a group, or a rank; servers that nobody watches are a StatefulSet.
void add_jobs(std::vector<Json>& documents, const Job& job);
Json job_set(const Job& job);
Json pytorch_job(const Job& job);
Json tf_job(const Job& job);
/// A launcher, whose mpirun starts the program in the workers over ssh. The image has Open MPI, an
/// sshd and the user mpiuser, as mpi-operator's base images have them.
Json mpi_job(const Job& job);
/// An account, what it may do, the plan, and a Job that runs `reckon run` with it. launcher.cpp
std::vector<Json> launcher_documents(const Job& job);
/// The job's own runtime, which has its pods, and the job of it: Kubeflow Trainer v2.
Json training_runtime(const Job& job);
Json train_job(const Job& job);

}  // namespace reckon::kubernetes
