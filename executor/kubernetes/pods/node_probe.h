#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"
#include "executor/kubernetes/pods/cluster_gang.h"

// The same few steps of training on each node of a pool, one pod a node: the slow one is found
// before a gang waits for it.
namespace reckon::kubernetes {

struct NodeProbeOptions {
  std::string name;    // of the probe's objects: "ring-probe"
  std::string worker;  // JSON of a Job whose pods are the workers of the plan
  std::string plan;    // its artifact
  Words arguments;     // of reckon-worker behind the plan
  std::vector<std::string> nodes;
  Seconds pending_deadline{120};
};

struct ProbedNode {
  std::string node;
  std::vector<double> seconds;  // of each step
  std::string problem;          // "": none
};

/// The Job of the probe of one node, and the ConfigMap of all: `rank` is the node's place among
/// `options.nodes`.
Json probe_job(const NodeProbeOptions& options, int rank);
Json probe_plan(const NodeProbeOptions& options);

/// Applies, watches, and deletes what it applied. A node that fails is told with its problem; the
/// others go on. Throws KubectlError, but not for what could not be deleted.
std::vector<ProbedNode> probe_nodes(const Kubectl& kubectl, const NodeProbeOptions& options,
                                    const std::function<void(const std::string&)>& message,
                                    const std::function<StopRequest()>& stop);

}  // namespace reckon::kubernetes
