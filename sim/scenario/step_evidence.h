#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/base/money.h"
#include "sim/base/quantity.h"

namespace reckon {

/// A published run that bears on a plan's step.
struct ComparableRun {
  std::string id, source;  // catalogs/evidence/sources.csv says where it was published
  std::string accelerator, network, stack;
  int accelerators = 0;
  SamplesPerSecond each{};  // measured, of one accelerator
  bool same_job = false;    // the same network on the same accelerator
  double correlation = 0;   // of its error with this step's, 0..1
  double residual = 0;      // ln(measured / the step model's rate)
};

/// What a short run of this very job would bring, by the same posterior.
struct TrialOffer {
  int steps = 0, accelerators = 0;  // of one node, or of all where the job has less
  double half_width = 0;            // then, of the logarithm of the step's time
  Seconds time{};                   // node, start and steps, at their medians
  std::optional<Usd> cost;          // nullopt: a price is unknown
};

/// What comparable runs say of a step: its time over the step model's
/// (sim/accuracy/evidence/evidence.h).
struct StepEvidence {
  double median = 1, low = 1, high = 1;  // factors; 5th and 95th percentile
  double half_width = 0;                 // of the natural logarithm: nine of ten lie within
  std::vector<ComparableRun> runs;       // most alike first; equal configurations are one
  int of_this_job = 0;                   // of them: of this network on this accelerator
  std::optional<TrialOffer> trial;       // nullopt: it would narrow the range by less than a fifth
};

}  // namespace reckon
