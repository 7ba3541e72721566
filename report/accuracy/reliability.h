#pragma once
#include <string>

#include "sim/accuracy/scoring/reliability_runs.h"

namespace reckon {

/// Published runs against the forecast of their interruptions and lost goodput, a row each.
std::string reliability_table(const ReliabilityScores& scores);
std::string reliability_json(const ReliabilityScores& scores);

}  // namespace reckon
