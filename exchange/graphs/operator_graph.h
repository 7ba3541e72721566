#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/graph.h"

// A network as another tool's graph of operators (ONNX, PyTorch FX), and as a ModelGraph.
namespace reckon {

struct GraphNode {
  std::string name;
  std::string kind;  // as ONNX names it: "Conv", "MatMul"; "Linear" and "Attention" as PyTorch does
  std::vector<std::string> inputs, outputs;  // values; "": an input that is left out
  std::map<std::string, std::vector<std::int64_t>> attributes;  // "strides", "pads", "group"
};

/// Of one sample: the first axis of what depends on the input is a batch of one.
struct OperatorGraph {
  std::string name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Shape> values;   // all whose shape is known
  std::map<std::string, Shape> weights;  // what is trained
  std::set<std::string> constants;       // other numbers that the file holds
  std::set<std::string> integers;        // values that are no real numbers
  std::vector<GraphNode> nodes;
};

/// Operators that have no layer kind and no product: counted as a pass over memory.
struct UnmappedKind {
  std::string kind;
  int nodes = 0;
  double share = 0;  // 0..1, of the numbers that a forward pass of the network reads and writes
};
struct ImportedGraph {
  ModelGraph model;
  std::vector<UnmappedKind> unmapped;  // the largest share first
  std::vector<std::string> notes;      // a sentence each
};

/// Operators become layers of our kinds where their shapes allow it; other products (batched ones,
/// convolutions along other axes) keep their multiply-adds, views move nothing, and the rest is
/// bound by memory. What the outputs do not need is left out. Each output has a loss: a
/// cross-entropy over its last axis, or a squared error where it has three axes and more. All that
/// is wrong comes at once: no input, a batch of several, an unknown shape.
Expected<ImportedGraph> make_graph_model(const OperatorGraph& graph);

/// "Softmax x 12: bound by memory, 3.1 % of what moves", the largest first, and the notes.
std::vector<std::string> notes_of(const ImportedGraph& imported);

}  // namespace reckon
