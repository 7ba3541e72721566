#pragma once
#include "report/json_parts.h"
#include "sim/serving/serving.h"

namespace reckon {

/// "serving" in the JSON of `reckon simulate`.
Json serving_object(const ServingForecast& forecast);

}  // namespace reckon
