#pragma once
#include <vector>

#include "sim/scenario/plan.h"

namespace reckon {

/// First pool of that role; nullptr: none.
const PlannedPool* pool_of(const Plan& plan, Role role);

/// The pools whose processes compute: the chief's (TensorFlow: it takes part as a worker), then the
/// workers'; without those that stand in for another. A chief without chips in front of a TPU slice
/// (AI Platform's BASIC_TPU) tells it what to do and computes nothing.
std::vector<const PlannedPool*> worker_pools(const Plan& plan);

}  // namespace reckon
