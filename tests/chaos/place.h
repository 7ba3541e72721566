#pragma once
#include <cstddef>
#include <optional>

#include "chaos/own_namespaces.h"
#include "cli/run_reckon.h"

namespace reckon::test {

/// Where jobs are disturbed: namespaces of this process' own, which come first, as nothing else may
/// have begun, a workspace, and in it, where mounts are possible, a small file system `disk`.
class ChaosPlace {
 public:
  ChaosPlace() {
    constexpr std::size_t kDiskBytes = 64 << 20;
    if (own.no_mounts.empty()) disk_.emplace(w.path("disk"), kDiskBytes);
  }
  const OwnNamespaces& own = enter_own_namespaces();
  const Workspace w;

 private:
  std::optional<SmallDisk> disk_;
};

}  // namespace reckon::test
