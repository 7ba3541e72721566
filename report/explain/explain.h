#pragma once
#include <string>
#include <vector>

#include "sim/forecast/explain/explain.h"
#include "sim/forecast/explain/restarts.h"

// `reckon explain`.
namespace reckon {

std::string explain_table(const Explanation& explanation, int width = 100);
/// `restarts`: left out where it is empty.
std::string explain_json(const Explanation& explanation,
                         const std::vector<RestartChange>& restarts = {});
/// "" where there are none.
std::string restarts_table(const std::vector<RestartChange>& restarts);
/// "all-reduce with 2 to 8 workers, server each from 16 workers".
std::string who_is_fastest(const Crossover& crossover);

}  // namespace reckon
