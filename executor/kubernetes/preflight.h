#pragma once
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"
#include "sim/base/diagnostic.h"

// What would keep a job from running in a cluster, found before anything is applied: all of it at
// once, each with what to do.
namespace reckon::kubernetes {

/// What must be known before manifests can be written.
struct ClusterFacts {
  int minor = 0;  // of Kubernetes 1.x
  bool namespace_exists = false;
};
/// Throws KubectlError where the cluster cannot be reached, or is none of 1.20 or later.
ClusterFacts cluster_facts(const Kubectl& kubectl);

struct PreflightQuestion {
  std::string manifests;                                        // of the first attempt
  std::string run;                                              // the job's name
  std::string claim, storage_class, pull_secret, store_secret;  // "": none is named
  bool makes_claim = false;
  bool makes_secret = false;
  bool makes_run = true;       // false: it is there and is gone on with
  bool cordons = false;        // a slow rank's node
  bool stays = false;          // pods are told their parts in each start
  bool reads_metrics = false;  // a page of the pods', by way of the API server
  bool autoscaling = false;    // the plan's pools grow: nodes may come that are not there yet
};

struct PreflightAnswer {
  Diagnostics problems;  // each keeps the job from running
  Diagnostics warnings;  // may do so, or could not be found out
  bool no_room = false;  // one of the problems is that it never fits: the answer to the plan is no
};
PreflightAnswer preflight(const Kubectl& kubectl, const ClusterFacts& facts,
                          const PreflightQuestion& question);

}  // namespace reckon::kubernetes
