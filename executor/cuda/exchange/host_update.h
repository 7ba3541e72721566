#pragma once
#include <cstdint>
#include <span>

#include "executor/train/workers.h"
#include "kernels/optimizer/optimizer.h"

// The optimizer's update in the host's memory by all threads of a rank, as exchanges of an
// offloaded optimizer call it. Work is cut every kHostPiece elements, so that neither the number of
// threads nor their order can change a bit.
namespace reckon::cuda {

/// optimizer.update(), the same bits.
void update_on_host(FlatOptimizer& optimizer, Workers& workers, std::int64_t step,
                    double learning_rate, double gradient_scale, std::span<float> weights,
                    std::span<const float> gradients);

/// Sum of squares in double: of each piece in the order of its elements, then of the pieces in
/// theirs. Of no more than a piece it is squared_norm().
double squared_norm_on_host(Workers& workers, std::span<const float> values);

/// to += more, element by element; as many of both.
void add_on_host(Workers& workers, std::span<float> to, std::span<const float> more);

}  // namespace reckon::cuda
