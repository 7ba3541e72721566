#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/quantity.h"

// What `reckon probe` finds out about a machine, as records of Measurements:
//
//   {"record":"machine","schema_version":1,"started":"2026-12-04T18:00:00.123Z","processor":...}
//   {"record":"accelerator","index":0,"name":"NVIDIA H100 80GB HBM3",...}       one a GPU
//   {"record":"probe","kind":"matrix_product","precision":"fp32","m":1024,...}  one an item
namespace reckon {

/// The machine itself, and in what state it was while it was probed: the first record of a probe.
struct MachineRecord {
  int schema_version = 1;
  std::string started;    // 2026-12-04T18:00:00.123Z
  std::string host;       // its name
  std::string processor;  // "AMD EPYC 9654 96-Core Processor"
  std::string stack;      // as in RunRecord: "reckon-cpu-avx512"
  int cores = 1;          // logical ones that this process may use
  int threads = 1;        // that the probe used
  int sockets = 1, numa_nodes = 1;
  Bytes memory{};
  std::optional<double> cpu_quota;  // cores' worth of time that the control group allows; none: all
  /// Of the first core, before and after the probe; where the system tells.
  std::optional<double> hertz_before, hertz_after;
  Seconds throttled{};  // in which the control group held its processes back, during the probe
  /// The rate of one fp32 product at the end of the probe over that at its begin, less 1: below
  /// about -0.1 the machine has become slower while it was measured (heat, neighbours, quota).
  double drift = 0;                    // a share
  std::optional<double> device_drift;  // the same of the GPU's bf16 products; null: not measured
  Seconds seconds{};                   // of the whole probe
};

/// A GPU as its driver describes it. Null: the driver does not say.
struct AcceleratorRecord {
  int index = 0;
  std::string name;    // the driver's: "NVIDIA H100 80GB HBM3"
  std::string driver;  // its version
  Bytes memory{};
  std::optional<double> hertz, hertz_max;  // clock of the multiprocessors: now, and at most
  std::optional<int> pcie_generation, pcie_lanes, nvlinks;
  std::optional<double> celsius;  // degrees, of the GPU
  /// NVML's bit mask of reasons why clocks are low: nvmlClocksEventReason*; 1 is "idle".
  std::optional<std::int64_t> throttle_reasons;
};

/// One item: something done again and again on a warm machine. `kind` says which of the other
/// fields speak:
///
///   matrix_product              c (m, n) = a (m, k) b (k, n): flops = 2 m n k
///   memory                      a[i] = b[i] + s c[i] in all threads, bytes = 3 arrays, as STREAM
///                               counts [McCalpin 1995]
///                               (a[i] = b[i] + c[i] on a device)
///   copy                        memory to memory in one thread, bytes = those copied; on a device
///                               one copy between its memory and the host's, or within its own
///   dispatch                    nothing, by all threads: to wake them and to wait for them
///   launch                      a kernel of a device that does nothing
///   convolution, attention      a layer's forward pass at a model's shapes, samples = its batch;
///                               convolution: m, n, k of the product that it amounts to
///   passes                      forward and backward of a network as training runs them, samples
///                               = the batch of each of `processes` processes
///   all_reduce, all_gather, reduce_scatter, all_to_all, broadcast
///                               between `processes`; bytes = size as nccl-tests counts it (of
///                               all_gather and reduce_scatter the whole buffer of all ranks)
///   point_to_point              one way between two processes: half a round trip of `bytes`
///   checkpoint_save             `bytes` written, fsynced and renamed
///   checkpoint_restore          the same read, as far as possible not from memory
///   data_loading                a batch of `samples` of `bytes`, through the loader of training
struct ProbeRecord {
  std::string kind;
  std::string item;       // what exactly, in words: "1024x1024x1024", "conv1 of resnet18"
  std::string device;     // "" : the CPU; else the accelerator's name
  std::string precision;  // "fp32", "fp64", "bf16"; "": of no matter
  int threads = 1;        // of a process
  int processes = 1;
  std::int64_t m = 0, n = 0, k = 0;
  Flops flops{};  // of one repetition; 0: of no matter
  Bytes bytes{};
  std::int64_t samples = 0;
  // Of one repetition: the median, the best, the 99th percentile (nearest rank).
  Seconds median{}, min{}, p99{};
  double variation = 0;          // standard deviation over mean of a repetition's time
  std::int64_t repetitions = 0;  // that count
  std::int64_t warmup = 0;       // before them, that do not: executor/probe/repeat.h
  /// Collectives: bytes / median times the factor by which the busiest link carries more, as
  /// nccl-tests defines it (sim/step/network/collectives.h, bus_bandwidth()). 0: no collective.
  BytesPerSecond bus_bandwidth{};
};

}  // namespace reckon
