#pragma once
#include <memory>
#include <vector>

#include "executor/comm/communicator.h"
#include "sim/base/quantity.h"

namespace reckon {

/// Communicators of `ranks` threads of this process that exchange by shared memory: replicas of
/// `mirrored` on CPUs, and tests. Each is used by its own thread. A rank whose communicator is
/// destroyed is lost to those that still wait for it; one that does not come within `timeout` too.
std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int ranks,
                                                                     Seconds timeout = Seconds{
                                                                         120});

}  // namespace reckon
