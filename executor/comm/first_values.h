#pragma once
#include <span>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"

namespace reckon {

/// The values become those of rank 0 of `all`, but those of `of_experts`, ranges of them, become
/// those of rank 0 of `replicas`, which may be null where there are none. Collective over both.
/// Throws CommError.
void share_first_values(std::span<float> values, Communicator& all,
                        std::span<const ParameterRange> of_experts, Communicator* replicas);

}  // namespace reckon
