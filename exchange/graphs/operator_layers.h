#pragma once
#include <optional>

#include "exchange/graphs/operator_graph.h"

// Which layer an operator is.
namespace reckon {

/// What the mapping knows of an operator at hand: shapes of one sample.
struct OperatorAt {
  const GraphNode& node;
  std::vector<Shape> inputs;   // of the values that depend on the sample, in order
  std::vector<Shape> weights;  // of those that are trained, in order
  Shape output;
  bool integer_input = false;
};

/// Our kind of layer for it, of the shape it has to have; nullopt: none fits. `weights` are its
/// own.
std::optional<LayerOp> layer_of(const OperatorAt& at);
/// Multiply-adds of its products, for one sample; 0: it has none.
double multiply_adds_of(const OperatorAt& at);
bool is_convolution(std::string_view kind);
/// The same numbers, or a part of them, in another shape.
bool is_view_kind(std::string_view kind);
/// Hands its input on as it is.
bool is_identity_kind(std::string_view kind);
/// Looks rows of a table up.
bool is_table_kind(std::string_view kind);
/// Its value is known without the sample's numbers.
bool is_shape_kind(std::string_view kind);

}  // namespace reckon
