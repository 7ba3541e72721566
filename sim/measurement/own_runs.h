#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sim/base/quantity.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/plan.h"

// Runs of one's own on this machine as evidence of the next (docs/MODELS.md, "Runs of one's own").
namespace reckon {

/// What was run, what the step model had said of it, and what it took.
struct OwnRun {
  std::string machine;   // its processor, and cores
  std::string network;   // "mlp_mnist"
  std::string unit;      // of a sample: "image"
  std::string strategy;  // split_text(): "multi_worker_mirrored", "sharded, ZeRO-3"
  bool synchronous = true;
  int workers = 1, servers = 0;
  std::int64_t batch = 1;  // of a worker
  Seconds modelled{};      // a step, without evidence
  // Measured, means of the run; 0: it has none.
  Seconds step{}, start{}, save{};
  std::int64_t steps = 0;  // behind `step`
};

/// The plan's job as a question: what is measured is 0, and so is `modelled`.
OwnRun own_question(const Plan& plan, std::string machine);

/// With what was measured, of the steps at steady state, the first start, the saves that training
/// waited for.
OwnRun measured_as(OwnRun question, Seconds modelled, const Measurements& measured);

/// What the runs say of a job.
struct OwnEvidence {
  double median = 1, low = 1, high = 1;  // of the step's time over the modelled; 5th, 95th
  double half_width = 0;                 // of its natural logarithm: nine of ten lie within
  int runs = 0;                          // on this machine
  std::optional<Seconds> start, save;    // of the newest run like it, else of the newest run
};

/// Oldest first. The factor's logarithm is a Gaussian process over what two runs have in common:
/// machine, kind of sample, network, strategy and count of processes, batch. Its amplitudes are
/// those of the residuals of docs/measurements/2026-11-24-own-runs.md; without runs the factor is 1
/// and its range that of a probed machine.
OwnEvidence own_evidence(std::span<const OwnRun> runs, const OwnRun& question);

/// The same of one run that goes on otherwise, by what its parts have shown: nothing is taken to be
/// known of the machine, so that their factor holds whole, to within what two ways of running one
/// network differ.
OwnEvidence evidence_of_run(std::span<const OwnRun> seen, const OwnRun& question);

/// Sets the factor, start and save of the plan's job by what own_evidence() says; the plan's
/// sources name what they rest on.
OwnEvidence set_own_evidence(Plan& plan, std::span<const OwnRun> runs, const OwnRun& question);

}  // namespace reckon
