#pragma once
#include <string>

#include "sim/scenario/planned/workload.h"

namespace reckon {

/// How a job is cut, in words that tell two layouts apart but for the numbers of their batches:
/// "sharded, ZeRO-3"; "model_parallel, data 4 x tensor 2 x pipeline 1"; "parameter_server, 2
/// servers".
std::string split_text(StrategyKind kind, const Layout& layout, int servers);
std::string split_text(const PlannedWorkload& job);

}  // namespace reckon
