#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/quantity.h"

// What a machine's processors do, as a probe of it measured (executor/probe/processor.cpp): fp32
// products by their shape, and memory by how much of it is touched, which says in which cache it
// lies. A step on CPUs is made of both (sim/step/measured_compute.h).
namespace reckon {

/// Times of one product c (m, n) = a (m, k) b (k, n) for m, n and k of a grid.
class ProductTimes {
 public:
  /// Ascending; at least one extent.
  std::vector<std::int64_t> extents;
  /// [m][n][k], each an index into `extents`.
  std::vector<Seconds> times;

  /// FLOPs a second of a product of any shape. Between the grid's points the logarithm of the rate
  /// is linear in the logarithms of m, n and k; beyond them it is that of the nearest point.
  FlopsPerSecond rate(double m, double n, double k) const;
  Seconds time(double m, double n, double k) const;
};

/// Times of passes that read and write memory: as `bytes` were touched, again and again.
class StreamTimes {
 public:
  struct Pass {
    Bytes bytes{};  // read and written
    Seconds time{};
  };
  std::vector<Pass> passes;  // by `bytes`, ascending; at least one

  /// Of the pass nearest in size, linear in its logarithm between two.
  BytesPerSecond rate(Bytes bytes) const;
  Seconds time(Bytes bytes) const;
};

/// What one worker has of a machine.
struct WorkerRates {
  int threads = 1;
  /// What the passes of the job's network took, over what its layers' products and passes over
  /// memory say; 1: nobody measured them.
  double network = 1;     // factor
  ProductTimes products;  // by all of its threads together
  ProductTimes each;      // by one of them, while the others do others
  StreamTimes streams;
};

/// Between two processes of a machine, by what they do: t = latency + bytes / bandwidth.
struct ProcessLink {
  Seconds latency{};
  BytesPerSecond bandwidth{};  // 0: not measured
};

struct ProcessorRates {
  std::string processor;  // "AMD EPYC 9654 96-Core Processor"
  int cores = 1;          // logical ones
  ProductTimes together;  // all cores at one product
  ProductTimes apart;     // each core at its own, all at once: of one core
  StreamTimes streams, streams_apart;
  ProcessLink reduce;   // of an all-reduce's messages
  ProcessLink message;  // of one message, one way

  /// Of a worker with `threads` threads beside `busy - 1` others as busy as it is: alone with all
  /// cores what they do together; with one thread what a core does; between, its share of what they
  /// do together. More threads than cores take turns.
  WorkerRates of_worker(int threads, int busy) const;
};

}  // namespace reckon
