#pragma once
#include <string>

#include "sim/forecast/forecast.h"

namespace reckon {

/// What a forecast assumes of a program whose spot node is about to be taken, in one or two
/// sentences; "" where none is.
std::string notice_sentences(const Forecast& forecast);

/// How a job goes on after a loss and from whose state, in a sentence or two; "" where its plan
/// does not say.
std::string restart_sentences(const Forecast& forecast);

}  // namespace reckon
