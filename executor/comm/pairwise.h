#pragma once
#include <span>

#include "executor/comm/communicator.h"

// Exchanges of every rank with every other, of sizes of their own.
namespace reckon {

/// Every rank meets every other once, in the same order of pairs on all: in round k ranks whose
/// numbers add up to k, modulo all. Of a pair the lower sends first, so that none waits for a rank
/// that waits for it. body(peer, sends_first); peer may be the rank itself.
template <class Body>
void meet_all(const Communicator& group, Body body) {
  const int ranks = group.size(), own = group.rank();
  for (int round = 0; round < ranks; ++round) {
    const int peer = (round - own + ranks) % ranks;
    body(peer, own < peer);
  }
}

/// What one of a pair does in that meeting. Nothing is sent where there is nothing.
inline void swap_with(Communicator& group, int peer, bool sends_first,
                      std::span<const std::byte> out, std::span<std::byte> in) {
  for (const bool sending : {sends_first, !sends_first}) {
    if (sending && !out.empty()) group.send(out, peer);
    if (!sending && !in.empty()) group.receive(in, peer);
  }
}

}  // namespace reckon
