#pragma once
#include <memory>
#include <span>

#include "sim/step/network/network.h"

// The benchmarks' work as SimGrid programs written for it by hand: not the general referee, which
// would be slower. Mailboxes rather than direct communications, which SimGrid 3.32 keeps in one
// list that every completion scans (fixed in 3.34); the ring is the exception, where dependent
// direct communications without actors were its fastest.
namespace reckon::bench {

/// Hosts around one switch, each with a full-duplex NIC, in SimGrid's pure max-min setting. One at
/// a time in a process.
class SimGridStar {
 public:
  explicit SimGridStar(std::span<const BytesPerSecond> nics);
  ~SimGridStar();

  // Each runs its program from the clock's present time and returns the simulated time that it
  // took. A platform is built once and used by many runs, so building it is in no measurement.

  /// Hosts 0..W-1 are workers, W..W+P-1 servers; W + P actors.
  Seconds parameter_server(int workers, int servers, Bytes model, int steps);
  /// cases::asynchronous_parameter_server with the same seed; W + 2 P actors.
  Seconds asynchronous_parameter_server(int workers, int servers, int steps, Bytes model,
                                        Seconds compute);
  /// `rounds` rounds of a ring over all hosts: communications that wait for one another, no actor.
  Seconds ring(Bytes model, int rounds);
  /// The same with an actor for each rank and mailboxes.
  Seconds ring_of_actors(Bytes model, int rounds);
  /// cases::churn with the same seed; a sender and a receiver on each host.
  Seconds churn(int flows, Seconds window, std::uint64_t seed);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace reckon::bench
