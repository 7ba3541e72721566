#pragma once
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"

namespace reckon {

/// What a forecast assumes of a program whose spot node is about to be taken, in one or two
/// sentences; "" where none is. Of several jobs that differ, the sentences of each name it.
std::string notice_sentences(const Forecast& forecast);

/// How a job goes on after a loss and from whose state, in a sentence or two; "" where its plan
/// does not say. Of several jobs that differ, the sentences of each name it.
std::string restart_sentences(const Forecast& forecast);

/// "Job a", "Jobs a, b, c and 4 more".
std::string names_of_jobs(const std::vector<std::string>& names);

}  // namespace reckon
