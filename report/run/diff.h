#pragma once
#include <string>

#include "sim/measurement/run_diff.h"

namespace reckon {

std::string diff_table(const RunDiff& diff);
std::string diff_json(const RunDiff& diff);

}  // namespace reckon
