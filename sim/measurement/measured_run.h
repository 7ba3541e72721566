#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/measurement/measurements.h"
#include "sim/measurement/step_log.h"
#include "sim/scenario/scenario.h"
#include "sim/step/step.h"

// What calibration takes from a run: a few numbers that the models predict too, each with how sure
// it is, and the scenario that they belong to.
namespace reckon {

enum class Measured {
  step,      // one optimizer step, all of it
  compute,   // of it: forward and backward
  update,    // of it: the optimizer
  exchange,  // of it: what the worker waited for others, but for other stages
  stages,    // of it: handing on to and waiting for other stages of a pipeline
  other,     // of it: the worker's own time outside all that
  save,      // for which one checkpoint stops training
  start,     // from the process's begin to its first step, without the restore
  pull,      // of the container's image, by one pod
  restore,   // reading a checkpoint back
  jitter,    // standard deviation over mean of one worker's step
  reduce,    // one all-reduce of a given size between all of the plan's accelerators
  kernel,    // one kernel of the plan's accelerator
  decode,    // processor time that decoding a sample takes
  sample,    // bytes of a sample, as stored
  read,      // bytes a second from the store that the samples are in, at least
  request,   // until the store has given one sample
  number,    // a number of the catalog itself
};
std::string_view to_text(Measured q);
/// "s", "fraction", "B" or "B/s".
std::string_view unit_of(Measured q);

/// What a kernel does, as the step model counts it.
struct MeasuredKernel {
  std::string device;  // its driver's name for it: "NVIDIA H100 80GB HBM3"
  Precision precision{};
  WorkKind work{};
  Flops flops{};
  Bytes bytes{};  // read and written, once each; 0: not counted
};

struct MeasuredQuantity {
  Measured what{};
  double value = 0;       // the median, in unit_of(what)
  double log_error = 0;   // one standard deviation of its logarithm
  int values = 0;         // steps, saves, starts
  Bytes size{};           // reduce: of the buffer on each rank
  std::string parameter;  // number: which (catalog_parameter.h)
  std::optional<MeasuredKernel> kernel;
};

struct MeasuredRun {
  std::string name;  // of the scenario; of several alike, with a number behind
  std::string file;
  ScenarioFile scenario;
  /// Equal for runs that tell nothing that the other does not: of one network, batch, cluster.
  std::string configuration;
  std::int64_t global_batch = 0;  // of a step, as the run says; 0: the scenario's
  bool reads_files = false;       // of its own machine, whose memory holds them: of no storage
  std::vector<MeasuredQuantity> quantities;
  /// The same of the first and of the second half of the steps; empty where there are too few.
  std::vector<MeasuredQuantity> first_half, second_half;
  std::vector<WaitRecord> waits;
  std::vector<std::string> warnings;  // too few, throttled
};

/// Steps at steady state: those that the result rests on, all but the first of each start.
std::vector<StepRecord> steady_steps(const Measurements& measurements);

/// The numbers of `measurements`, whose scenario is `scenario`.
MeasuredRun measured_run(std::string file, ScenarioFile scenario, const Measurements& measurements);

/// A user's own log: the seconds of each step, nothing else.
MeasuredRun measured_steps(std::string file, ScenarioFile scenario,
                           const std::vector<double>& steps);

/// All-reduces of a benchmark between the accelerators of the scenario.
MeasuredRun measured_collectives(std::string file, ScenarioFile scenario,
                                 const std::vector<CollectiveSample>& samples);
/// What a probe says of the machine's processors: their products, their memory, what waking them
/// costs. A scenario is only needed for all-reduces, whose link is then the plan's, and for kernels
/// of a device, which count where the plan's accelerator is that device; without a name: none.
MeasuredRun measured_probe(std::string file, ScenarioFile scenario, const Measurements& probe);
/// Waits alone.
MeasuredRun measured_waits(std::string file, ScenarioFile scenario, std::vector<WaitRecord> waits);

}  // namespace reckon
