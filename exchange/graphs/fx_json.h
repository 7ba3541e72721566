#pragma once
#include <string>
#include <string_view>

#include "exchange/graphs/operator_graph.h"

// A graph of PyTorch FX as JSON, as the lines in docs/commands/model.md write it:
//
//   {"format": "reckon-fx", "name": "Net", "nodes": [
//     {"name": "x", "op": "placeholder", "kind": "x", "inputs": [], "shape": [1, 3, 32, 32],
//      "dtype": "torch.float32", "weights": {}, "attributes": {}},
//     {"name": "conv", "op": "call_module", "kind": "Conv2d", "inputs": ["x"],
//      "shape": [1, 8, 32, 32], "dtype": "torch.float32",
//      "weights": {"conv.weight": [8, 3, 3, 3]}, "attributes": {"padding": [1, 1]}}, ...]}
//
// `weights` has the name of each parameter in the whole network, so that one that several use
// counts once.
namespace reckon {

bool is_fx_graph(std::string_view text);
/// Any text is answered: with a graph, or with all that is wrong at its place in the text.
Expected<OperatorGraph> read_fx_graph(std::string_view text, const std::string& file);

}  // namespace reckon
