#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "sim/measurement/own_runs.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/processor_rates.h"

// A plan is of the place that its scenario describes. Where it runs elsewhere it is another plan.
namespace reckon {

/// This machine, as far as it is known. What is empty was not measured.
struct ThisMachine {
  const OperationalDefaults* operations = nullptr;  // the catalog's; of our worker's start and save
  std::string name;                                 // "AMD EPYC 9654 96-Core Processor, 192 cores"
  const ProcessorRates* rates = nullptr;
  /// Forward and backward of the job's network on these workers; nullopt: not worth measuring.
  std::function<std::optional<Seconds>(const PlannedPool& workers, const PlannedWorkload& job)>
      passes;
  std::span<const OwnRun> runs;  // earlier ones, oldest first
};

struct Rebound {
  RunArtifact artifact;  // names the digest of what it was made of
  /// What the run will be evidence of, and what its forecast rests on; nullopt: it does not compute
  /// on processors that were probed.
  std::optional<OwnRun> run;
  OwnEvidence evidence;
};

/// The plan as its processes run on this machine (run_here(), sim/scenario/resolve/here.h), by what
/// was measured of it: its processors, the passes of the job's network, earlier runs.
Rebound rebind(const RunArtifact& planned, const ThisMachine& here);

}  // namespace reckon
