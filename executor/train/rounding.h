#pragma once
#include <cstddef>

#include "executor/train/workers.h"
#include "sim/catalog/precision.h"

// Mixed precision on CPUs, which compute in float: what a device would hold in 16 bits is rounded
// as it is stored there.
namespace reckon {

/// Of activations, their gradients and the weights that layers read. The weights that the optimizer
/// has, gradients of weights, sums within a layer and statistics are float [Micikevicius 2018,
/// arXiv:1710.03740, section 3].
enum class Rounding { none, bf16, fp16 };

/// What a plan's precision rounds to on a CPU; what CPUs do not imitate (fp8 and less) is float.
Rounding rounding_of(Precision precision);

/// The precision that is imitated so.
Precision held_in(Rounding rounding);

/// to[i] = from[i] to the nearest, ties to even, in pieces of the workers; `to` may be `from`.
void round_elements(Workers& workers, Rounding rounding, const float* from, float* to,
                    std::int64_t count);

}  // namespace reckon
