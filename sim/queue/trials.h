#pragma once
#include <vector>

#include "sim/base/random.h"
#include "sim/scenario/spec/trace.h"

// Searches over hyper-parameters: which part of its run each trial makes before it is stopped.
namespace reckon {

/// By trial, in the order in which they are submitted, the share of a full run that it makes: 1
/// where it is not stopped. A trial's final result is drawn from N(0, 1), more is better; what is
/// seen after a share f is the final one plus noise x sqrt(least / f) x N(0, 1). It is looked at
/// after the shares `least`, least x b, least x b^2 ... below 1, and stopped if it is worse than
///   asha (b = eta)    the quantile 1 - 1/eta of the results that earlier trials had there
///                     [Li et al. 2020, "A System for Massively Parallel Hyperparameter Tuning",
///                     MLSys '20; the rule that stops, as in Ray Tune's AsyncHyperBandScheduler]
///   median (b = 2)    the median of the results of earlier trials up to there, each the mean of
///                     its looks [Golovin et al. 2017, "Google Vizier", KDD '17, Sec. 3.2.1]
/// The first at a look is never stopped there. Earlier: of a lower number. So what a trial is held
/// against does not depend on the queue, as it does where trials overtake each other.
std::vector<double> shares_of_trials(const TrialsSpec& trials, RandomStream& stream);

}  // namespace reckon
