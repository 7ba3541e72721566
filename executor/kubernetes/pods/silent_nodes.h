#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "executor/kubernetes/kubectl.h"

namespace reckon::kubernetes {

/// Nodes that stopped answering the cluster. It ends the pods of such a node itself, but not where
/// all nodes of a zone are silent [Kubernetes, "Node eviction: rate limits"]: then it takes itself
/// for the one that is cut off, and the pods run for ever on paper.
class SilentNodes {
 public:
  /// Nodes count as lost when they were not ready for `patience`: as long as the pods tolerate it.
  explicit SilentNodes(const Kubectl& kubectl, Seconds patience = Seconds{30},
                       Seconds between = Seconds{10})
      : kubectl_(kubectl), patience_(patience), between_(between) {}

  /// Asks where it is time to. A user who may not look at nodes does without; a cluster that does
  /// not answer is asked later.
  void look();
  bool lost(const std::string& node) const;

 private:
  using Clock = std::chrono::steady_clock;
  const Kubectl& kubectl_;
  Seconds patience_, between_;
  std::map<std::string, Clock::time_point> since_;  // not ready
  Clock::time_point last_{}, seen_{};
  bool refused_ = false;
};

}  // namespace reckon::kubernetes
