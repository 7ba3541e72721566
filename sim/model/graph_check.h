#pragma once
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/layer.h"
#include "sim/model/layer_graph.h"

namespace reckon {

/// All that keeps `layers`, of which `graph` is the graph, from being a network whose samples have
/// the shape `input` (ModelGraph::make()), each error naming its layer. Infers their outputs.
Diagnostics check_graph(const Shape& input, std::vector<Layer>& layers, const LayerGraph& graph);

}  // namespace reckon
