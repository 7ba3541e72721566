#pragma once
#include <string_view>

#include "sim/model/graph.h"

// What the files of sim/model/families/ say of each kind of layer, for those who do not care which
// kind it is; more of it in shapes.h, counts.h and layer_text.h. layer_rules.cpp is the table: a
// kind without one of its rules does not compile, so none is forgotten into a smaller model.
namespace reckon {

/// Weights of a layer, biases included, tied or not.
struct LayerWeights {
  Shape weight, bias;                     // empty: none
  std::int64_t parts = 1, parts_met = 1;  // experts, and how many of them a token meets
  bool looked_up = false;                 // a sample reads its rows, not all of them
  bool shares_bias = false;               // with the layer that it is tied to, as its weight
};
LayerWeights weights_of(const LayerOp& op);

/// What a layer keeps for its backward pass of the tensors that it takes and makes.
struct LayerSaved {
  enum class Inputs { never, to_learn, always };  // to_learn: where its weights are trained
  Inputs inputs = Inputs::never;
  bool output = false;
  bool view = false;  // passes its input on untouched: the tensor is that of the input
};
LayerSaved saved_by(const LayerOp& op);

/// How tensor parallelism may cut a layer (sharding.h).
enum class SplitRule {
  whole,        // needs all features of its inputs
  matrix,       // a product with a matrix: (..., out, in), cut along either
  rows,         // a table, cut along its rows
  features,     // works on each feature, or each head's features, by itself
  heads,        // takes the heads that a rank has
  first_input,  // so of its first input; the second is whole on every rank
  sums_up       // takes split features together by itself
};
SplitRule split_rule(const LayerOp& op);

}  // namespace reckon
