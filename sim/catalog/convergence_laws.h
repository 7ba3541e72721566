#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/catalog/convergence.h"

// The laws of a catalog's points.
namespace reckon {

/// Below so many batches a law's own spread, of n - 2 degrees of freedom, rests on one point or
/// none.
inline constexpr std::size_t kBatchesOfOwnSpread = 4;

/// A law for each target, start and sequence length that `points` have of the model on the dataset.
/// Its points' spread around it is their own; below kBatchesOfOwnSpread it is at least the pooled
/// one of all laws: the root of all residuals' squares over all degrees of freedom.
std::vector<Convergence> convergence_laws(std::span<const ConvergencePoint> points,
                                          std::string_view model, std::string_view dataset);

/// Is the batch within those that the law's runs had?
bool is_measured_at(const Convergence& law, std::int64_t global_batch);

}  // namespace reckon
