#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "sim/model/graph.h"

// The graph of the layers, as a graph: Boost.Graph stands behind these two functions and nowhere
// else.
namespace reckon {

/// The layers (indices) that lie on a common cycle with layer `i`, itself first; empty: on none.
/// `inputs` of the layers may point anywhere inside `layers`.
std::vector<std::size_t> cycle_of(std::span<const Layer> layers, std::size_t i);

/// For each layer: does a path lead from it to `loss`? Inputs outside `layers` are passed over.
std::vector<bool> leads_to(std::span<const Layer> layers, std::size_t loss);

}  // namespace reckon
