#pragma once
#include <cstdint>
#include <optional>

#include "sim/scenario/resolve/serving.h"
#include "sim/serving/serving.h"

namespace reckon {

/// The service at the 5th and the 95th percentile of what a batch takes, two more lives of the same
/// seed. What a batch takes rests on several assumed numbers, each with a range; the two ends are
/// the most probable points of the joint distribution at which a full batch is 1.645 standard
/// deviations faster or slower (first-order reliability: each number moves by its share of the
/// variance, z_i = e_i / |e|). All else (provisioning, start-up, prices, the load) stays at the
/// plan's values. nullopt: nothing assumed changes what a batch takes (kMeasuredStack,
/// batch_times).
std::optional<ServingRange> serving_range(const ServingPlan& plan,
                                          std::optional<std::uint64_t> seed = {},
                                          std::optional<Seconds> trained_for = {});

}  // namespace reckon
