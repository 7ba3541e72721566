#pragma once
#include <vector>

#include "sim/accuracy/scoring/accuracy.h"
#include "sim/accuracy/scoring/fit/fit.h"

// How wide intervals must be, from how wrong predictions of other sources were.
namespace reckon {

/// Nine of ten: around each prediction a factor either way that nine of ten residuals of other
/// folds' runs stay below. Runs of one fold, accelerator, model and number of accelerators
/// count once. Residuals of all runs whose stack was seen or not alike are drawn from, of these
/// those that share out work alike, of these those of the same row of the catalog; each weighs by
/// its number of folds against two of the more general.
void set_held_out_intervals(std::vector<ScoredRun>& runs, const Catalog& catalog,
                            HoldOut by = HoldOut::source);

}  // namespace reckon
