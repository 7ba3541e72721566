#pragma once
#include <span>
#include <vector>

// Epochs to a target against the batch, from one batch that was run.
namespace reckon {

/// Epochs until a target was reached first, as a framework prints them that looks once an epoch.
struct BatchEpochs {
  double batch = 0;  // samples
  double epochs = 0;
};

/// Epochs with another batch than the `given` one. Samples to a target grow with the batch B as
///   E(B) = E_min (1 + B / B_crit)
/// [McCandlish et al. 2018, "An empirical model of large-batch training", arXiv:1812.06162], so
///   E(B) / E(B_0) = (1 + B / B_crit) / (1 + B_0 / B_crit).
/// A printed e stands for e - 1/2, at least 1/2: the target was reached in the course of the epoch;
/// the answer is the whole epoch in which it comes. `inverse_critical_batch` is 1 / B_crit; 0:
/// no batch costs more. Valid between batches whose learning rate was set as the given one's;
/// below the smallest useful batch, where the noise of a step hides the target, epochs rise again
/// and the law says nothing.
double epochs_at(const BatchEpochs& given, double batch, double inverse_critical_batch);

/// Which of the batches, in ascending order, is taken as given: the middle one, as of a user who
/// has run the usual batch.
const BatchEpochs& given_of(std::span<const BatchEpochs> ascending);

/// 1 / B_crit of a task from what it needed to several targets: of 0 and 2^-4, 2^-4.5, ... 2^-16
/// the one with the least sum of |log(epochs predicted from the middle batch / measured)|, the
/// whole epochs left out of it. Targets with fewer than two batches say nothing; none: 0.
double inverse_critical_batch(std::span<const std::vector<BatchEpochs>> targets);

}  // namespace reckon
