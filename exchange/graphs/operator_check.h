#pragma once
#include "exchange/graphs/operator_graph.h"

namespace reckon {

/// What keeps a graph from being imported before any operator is looked at: its size, its inputs
/// and outputs. All errors, at most twenty.
Diagnostics check_operators(const OperatorGraph& graph);

}  // namespace reckon
