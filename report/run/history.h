#pragma once
#include <string>

#include "sim/measurement/history.h"

namespace reckon {

/// The last `most` forecasts, newest last, and how good all of them were.
std::string history_table(const HistoryScore& score, std::size_t most);
std::string history_json(const HistoryScore& score);

}  // namespace reckon
