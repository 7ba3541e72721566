#pragma once
#include <string>

#include "sim/forecast/explain.h"

// `reckon explain`.
namespace reckon {

std::string explain_table(const Explanation& explanation, int width = 100);
std::string explain_json(const Explanation& explanation);
/// "all-reduce with 2 to 8 workers, server each from 16 workers".
std::string who_is_fastest(const Crossover& crossover);

}  // namespace reckon
