#pragma once
#include <string>

#include "sim/serving/serving.h"

// The serving part of `reckon simulate`.
namespace reckon {

/// Latency first, then what it is made of and how replicas follow the load. `width` is where long
/// lines are broken.
std::string serving_table(const ServingForecast& forecast, int width = 100);

/// Of a scenario that trains nothing: one object.
std::string serving_json(const ServingForecast& forecast);

}  // namespace reckon
