#pragma once
#include <span>
#include <vector>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/accuracy/scoring/accuracy.h"
#include "sim/accuracy/scoring/fit/fit.h"

// Predictions moved by what others measured.
namespace reckon {

/// What is near of a run: others' runs of its accelerator, network and about its size (within a
/// factor of four accelerators, of language models 1.6 of parameters).
inline constexpr std::string_view kNearEvidence = "same stack and publisher",
                                  kOtherEvidence = "other stack or publisher",
                                  kNoEvidence = "nothing near";

/// Predictions of the step model against `catalog`, moved by the posterior of `evidence`, which
/// has none of the runs' folds; intervals are the posterior's. What a run may know of its publisher
/// is what its fold leaves: of a held-out source the other sources of its publisher, of a held-out
/// model the other models of its source.
void add_evidence(std::vector<ScoredRun>& runs, const Evidence& evidence, const Catalog& catalog,
                  HoldOut by);

/// The same of runs that may be evidence themselves: of each run the evidence is without its
/// source.
void add_evidence_of_others(std::vector<ScoredRun>& runs, std::span<const PublishedRun> evidence,
                            const Catalog& catalog, const EvidenceKernel& kernel);

/// The same of predicted times (minutes to a target), which are as much shorter as rates are
/// higher.
void add_evidence_to_times(std::vector<ScoredRun>& runs, std::span<const PublishedRun> evidence,
                           const Catalog& catalog, const EvidenceKernel& kernel);

}  // namespace reckon
