#include "exchange/graphs/onnx_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>

#ifdef RECKON_WITH_ONNX
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#endif

namespace reckon {

#ifndef RECKON_WITH_ONNX

bool reads_onnx() { return false; }

Expected<OperatorGraph> read_onnx_graph(std::string_view /*bytes*/, const std::string& file,
                                        std::optional<std::int64_t> /*sequence_length*/) {
  return tl::unexpected<Diagnostics>(Diagnostics{
      {.at = {file, 0, 0},
       .what = "this reckon was built without the ONNX library",
       .hint =
           "install libonnx-dev and libprotobuf-dev and build it again; or write the graph with "
           "PyTorch FX: model: {fx: graph.json}"}});
}

#else

namespace {

constexpr std::int64_t kLargestOnnxAxis = std::int64_t{1} << 30;

Diagnostics onnx_error(const std::string& file, std::string what, std::string hint = {}) {
  return {{.at = {file, 0, 0}, .what = std::move(what), .hint = std::move(hint)}};
}

bool is_real(int type) {
  using T = onnx::TensorProto;
  return type == T::FLOAT || type == T::FLOAT16 || type == T::BFLOAT16 || type == T::DOUBLE;
}

class OnnxReader {
 public:
  OnnxReader(onnx::ModelProto& model, std::string file, std::optional<std::int64_t> length)
      : model_(model), file_(std::move(file)), length_(length) {}

  Expected<OperatorGraph> read() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    graph_.name = graph.name().substr(0, 80);
    for (const auto& initializer : graph.initializer()) initializers_.insert(initializer.name());
    for (auto& input : *graph.mutable_input())
      if (!initializers_.contains(input.name())) fix_axes(input);
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    try {
      onnx::ShapeInferenceOptions options;
      options.enable_data_propagation = true;
      onnx::shape_inference::InferShapes(model_, onnx::OpSchemaRegistry::Instance(), options);
    } catch (const std::exception& e) {
      return tl::unexpected<Diagnostics>(
          onnx_error(file_, fmt::format("ONNX cannot infer the shapes: {}",
                                        std::string_view(e.what()).substr(0, 400))));
    }
    read_graph(model_.graph());
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    return std::move(graph_);
  }

 private:
  void error(std::string what, std::string hint = {}) {
    constexpr std::size_t kMost = 20;
    if (errors_.size() < kMost)
      errors_.push_back({.at = {file_, 0, 0}, .what = std::move(what), .hint = std::move(hint)});
  }

  /// Sizes for the axes that have none.
  void fix_axes(onnx::ValueInfoProto& input) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape())
      return error(fmt::format("input '{}' has no shape", input.name()));
    auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape.dim_size(); ++i) {
      auto& axis = *shape.mutable_dim(i);
      if (axis.has_dim_value() && axis.dim_value() > 0) continue;
      if (i > 0 && !length_) {
        error(fmt::format("axis {} of input '{}' ({}) has no fixed size", i, input.name(),
                          axis.dim_param()),
              "sequence_length gives it one: --sequence-length 128");
        continue;
      }
      axis.set_dim_value(i == 0 ? 1 : *length_);
    }
  }

  void read_value(const onnx::ValueInfoProto& value) {
    if (!value.type().has_tensor_type()) return;
    const auto& tensor = value.type().tensor_type();
    if (!is_real(tensor.elem_type())) graph_.integers.insert(value.name());
    if (!tensor.has_shape()) return;
    Shape shape;
    for (const auto& axis : tensor.shape().dim()) {
      if (!axis.has_dim_value() || axis.dim_value() < 0 || axis.dim_value() > kLargestOnnxAxis)
        return;
      shape.push_back(axis.dim_value());
    }
    if (shape.empty()) shape = {1};
    graph_.values[value.name()] = std::move(shape);
  }

  void read_graph(const onnx::GraphProto& graph) {
    std::set<std::string> no_weights;  // a batch norm's statistics
    for (const auto& node : graph.node())
      for (int i = 3; node.op_type() == "BatchNormalization" && i < node.input_size(); ++i)
        no_weights.insert(node.input(i));
    for (const auto& value : graph.value_info()) read_value(value);
    for (const auto& input : graph.input()) {
      read_value(input);
      if (!initializers_.contains(input.name())) graph_.inputs.push_back(input.name());
    }
    for (const auto& output : graph.output()) {
      read_value(output);
      graph_.outputs.push_back(output.name());
    }
    for (const auto& tensor : graph.initializer()) {
      Shape shape(tensor.dims().begin(), tensor.dims().end());
      const bool sizes = std::ranges::all_of(
          shape, [](std::int64_t n) { return n >= 1 && n <= kLargestOnnxAxis; });
      const bool single = std::ranges::all_of(shape, [](std::int64_t n) { return n == 1; });
      if (is_real(tensor.data_type()) && sizes && !single && !no_weights.contains(tensor.name()))
        graph_.weights[tensor.name()] = std::move(shape);
      else
        graph_.constants.insert(tensor.name());
    }
    for (const auto& node : graph.node()) read_node(node);
  }

  void read_node(const onnx::NodeProto& node) {
    GraphNode made{.name = node.name().substr(0, 200), .kind = node.op_type().substr(0, 80)};
    made.inputs.assign(node.input().begin(), node.input().end());
    made.outputs.assign(node.output().begin(), node.output().end());
    for (const auto& attribute : node.attribute()) {
      if (attribute.type() == onnx::AttributeProto::INT)
        made.attributes[attribute.name()] = {attribute.i()};
      else if (attribute.type() == onnx::AttributeProto::INTS)
        made.attributes[attribute.name()].assign(attribute.ints().begin(), attribute.ints().end());
    }
    // Its mean and variance are constants: they stand for no input.
    if (made.kind == "BatchNormalization" && made.inputs.size() > 3) made.inputs.resize(3);
    graph_.nodes.push_back(std::move(made));
  }

  onnx::ModelProto& model_;
  std::string file_;
  std::optional<std::int64_t> length_;
  OperatorGraph graph_;
  std::set<std::string> initializers_;
  Diagnostics errors_;
};

}  // namespace

bool reads_onnx() { return true; }

Expected<OperatorGraph> read_onnx_graph(std::string_view bytes, const std::string& file,
                                        std::optional<std::int64_t> sequence_length) {
  onnx::ModelProto model;
  constexpr std::size_t kMost = (std::size_t{1} << 31) - 1;  // of protobuf
  if (bytes.size() > kMost)
    return tl::unexpected<Diagnostics>(onnx_error(file, "the file has more than 2 GB",
                                                  "export it with its weights in files beside it"));
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || !model.has_graph())
    return tl::unexpected<Diagnostics>(
        onnx_error(file, "the file is no ONNX model", "torch.onnx.export writes one"));
  return OnnxReader(model, file, sequence_length).read();
}

#endif

}  // namespace reckon
