#pragma once
#include <string>

#include "sim/forecast/forecast.h"
#include "sim/queue/trace.h"

// What `reckon simulate` and `reckon check` say of a trace of jobs.
namespace reckon {

/// Waiting and completion, or allocation and fragmentation over load, then what they rest on.
std::string queue_table(const TraceResult& result, int width = 100);
/// One object; lists over load are of 1 %, 2 %, ... of it.
std::string queue_json(const TraceResult& result);
/// One line of `expect`.
ExpectationResult evaluate(const Expectation& expectation, const TraceResult& result);

}  // namespace reckon
