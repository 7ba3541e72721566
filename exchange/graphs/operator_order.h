#pragma once
#include <cstddef>
#include <vector>

#include "exchange/graphs/operator_graph.h"

namespace reckon {

/// The operators that the outputs of `graph` need, as places in its `nodes`, each behind those
/// whose values it takes: in the file's order, but for operators that stand before what they take.
/// An operator that asks for a shape alone needs nothing (is_shape_kind()). An error where
/// operators take each other's values in a cycle.
Expected<std::vector<std::size_t>> needed_operators(const OperatorGraph& graph);

}  // namespace reckon
