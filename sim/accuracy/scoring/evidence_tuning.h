#pragma once
#include <functional>
#include <span>
#include <string>

#include "sim/accuracy/evidence/kernel.h"
#include "sim/accuracy/published_runs.h"
#include "sim/catalog/catalog.h"

namespace reckon {

/// The kernel under which runs that are held out are most likely: by source, by publisher where
/// that has several sources, and by model of vTrain, rows of the catalog fitted without the fold.
/// Maximises the log density of ln(measured / predicted) under Student's t with four degrees of
/// freedom, of no more than 60 evenly spread questions a fold (10 of a model); a fold counts as
/// many runs as the square root of its groups (accelerator, model, count), 0.4 of it where it is
/// no source, runs of trust B and C by 0.4 and 0.2. The prior is log-normal around EvidenceKernel's
/// own numbers, with a standard deviation of 2, of links' amplitudes 0.4 (of shares: half of the
/// log-odds).
/// One number at a time is moved up or down by a factor (shares: of their odds), which shrinks
/// where neither helps; ends when a round gains nothing, or after `rounds`. `tell` hears of each
/// gain.
EvidenceKernel tune_evidence(std::span<const PublishedRun> runs, const Catalog& catalog,
                             EvidenceKernel start, int rounds,
                             const std::function<void(const std::string&)>& tell);

}  // namespace reckon
