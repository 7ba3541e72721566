#pragma once
#include <memory>

#include "executor/comm/communicator.h"
#include "executor/comm/rendezvous/rendezvous.h"

namespace reckon {

struct GlooOptions {
  int ranks = 0;         // members [0, ranks) take part; 0: all
  Seconds timeout{120};  // longest wait for a peer within a call
  /// ring: Gloo's, each element summed in the order of the ring from its part on: bits depend on
  /// the ranks' number and on how values are cut into calls, on nothing else. direct: every rank
  /// sums its n-th part of all ranks' values in the order of the ranks and sends the sum to all:
  /// the ring's bytes in 2 rounds instead of 2 (n-1), to n-1 peers at once; bits do not depend on
  /// the cutting. automatic: summed_directly() (sim/step/network/collectives_cpu.h).
  enum class AllReduce { automatic, ring, direct } all_reduce = AllReduce::automatic;
};

/// Is it in this program? Debian has no static Gloo, so the archive's `reckon` is without.
bool has_gloo();

/// Over TCP, on the interface of this rank's Member::address; each pair of ranks has a connection
/// at a port that the system chooses. `membership` outlives it and tells who is lost. The
/// process ignores SIGPIPE from now on. Throws CommError; std::runtime_error where reckon was built
/// without Gloo.
std::unique_ptr<Communicator> make_gloo_communicator(Membership& membership,
                                                     const GlooOptions& options = {});

}  // namespace reckon
