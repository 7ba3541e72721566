#pragma once
#include <string>
#include <vector>

#include "sim/base/quantity.h"

namespace reckon {

/// Hosts of a cluster as network namespaces of this machine, joined by a bridge in a namespace of
/// its own; each host's link is shaped in both directions by a token bucket (tc tbf). Needs root,
/// ip and tc. Gone with the object.
class EmulatedCluster {
 public:
  /// One host a bandwidth. Throws std::runtime_error with the command that failed.
  explicit EmulatedCluster(const std::vector<BytesPerSecond>& links);
  ~EmulatedCluster();
  EmulatedCluster(const EmulatedCluster&) = delete;
  EmulatedCluster& operator=(const EmulatedCluster&) = delete;

  static std::string address(int host);
  /// For `ip netns exec`.
  std::string name_of(int host) const;
  /// The calling process lives on that host from now on.
  void enter(int host) const;

  /// Why this machine cannot do it, or "".
  static std::string why_not();

 private:
  std::string prefix_;
  int hosts_ = 0;
};

}  // namespace reckon
