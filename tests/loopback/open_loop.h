#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantity.h"

// Load that does not wait for answers.
namespace reckon {

struct LoadResult {
  /// Of each request: from when it should have been sent to the last byte of its answer, so that
  /// what waits because others are slow counts [Tene 2013, "How NOT to measure latency"].
  std::vector<Seconds> latencies;
  std::vector<Seconds> late;  // of each request: from when it should have been sent to when it was
  int failed = 0;             // answers other than 200
};

/// Requests as a Poisson process of `rate` a second for `length`, each over a connection of its own
/// or one that is free; all answers are waited for. `request`: the whole text. Throws
/// std::runtime_error where the server does not answer.
LoadResult send_open_loop(std::uint16_t port, const std::string& request, double rate,
                          Seconds length, std::uint64_t seed);

}  // namespace reckon
