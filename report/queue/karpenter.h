#pragma once
#include <string>

#include "report/json_parts.h"
#include "sim/queue/trace.h"

// Nodes that Karpenter made, of a result that has some. Internal to report/queue.
namespace reckon {

/// "40 nodes, 212 node hours: 31 g5.xlarge spot (40 USD), ...", the dearest three kinds.
std::string nodes_made_text(const TraceResult& result);
/// "12 empty nodes, 4 of several at a time, 2 alone; 3 replacements".
std::string consolidation_text(const TraceResult& result);
Json json_of_karpenter(const TraceResult& result);

}  // namespace reckon
