#include "exchange/graphs/onnx_file.h"

#include <catch2/catch.hpp>
#include <fstream>

#ifdef RECKON_WITH_ONNX
#include <onnx/onnx_pb.h>
#endif

using namespace reckon;
using Catch::Matchers::Contains;

#ifndef RECKON_WITH_ONNX

TEST_CASE("without the ONNX library a file is refused by name") {
  CHECK_FALSE(reads_onnx());
  const auto graph = read_onnx_graph("", "net.onnx", std::nullopt);
  REQUIRE_FALSE(graph.has_value());
  CHECK_THAT(format(graph.error()), Contains("net.onnx") && Contains("without the ONNX library"));
}

#else

namespace {

/// A model is built field by field, its initializers without numbers: only their shapes are read.
class OnnxNet {
 public:
  OnnxNet() {
    model_.set_ir_version(7);
    model_.add_opset_import()->set_version(13);
    model_.mutable_graph()->set_name("net");
  }
  /// 0: an axis that has a name and no size.
  void input(const std::string& name, std::vector<std::int64_t> dims, bool ids = false) {
    value(*model_.mutable_graph()->add_input(), name, dims, ids);
  }
  void output(const std::string& name, std::vector<std::int64_t> dims) {
    value(*model_.mutable_graph()->add_output(), name, dims, false);
  }
  void weight(const std::string& name, std::vector<std::int64_t> dims) {
    auto& tensor = *model_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t n : dims) tensor.add_dims(n);
  }
  onnx::NodeProto& node(const std::string& kind, const std::vector<std::string>& inputs,
                        const std::string& output) {
    auto& made = *model_.mutable_graph()->add_node();
    made.set_op_type(kind);
    made.set_name(kind + "_" + output);
    for (const std::string& input : inputs) made.add_input(input);
    made.add_output(output);
    return made;
  }
  static void numbers(onnx::NodeProto& node, const std::string& name,
                      std::vector<std::int64_t> values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t n : values) attribute.add_ints(n);
  }
  std::string bytes() const { return model_.SerializeAsString(); }

 private:
  static void value(onnx::ValueInfoProto& info, const std::string& name,
                    const std::vector<std::int64_t>& dims, bool ids) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(ids ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
    for (const std::int64_t n : dims) {
      auto& axis = *tensor.mutable_shape()->add_dim();
      if (n > 0)
        axis.set_dim_value(n);
      else
        axis.set_dim_param("any");
    }
  }
  onnx::ModelProto model_;
};

ImportedGraph imported_onnx(const OnnxNet& net, std::optional<std::int64_t> length = {}) {
  const auto graph = read_onnx_graph(net.bytes(), "net.onnx", length);
  if (!graph) FAIL(format(graph.error()));
  auto model = make_graph_model(*graph);
  if (!model) FAIL(format(model.error()));
  return std::move(*model);
}

OnnxNet image_net() {
  OnnxNet net;
  net.input("x", {0, 3, 16, 16});
  net.weight("w", {8, 3, 3, 3});
  net.weight("b", {8});
  for (const char* name : {"scale", "shift", "mean", "variance"}) net.weight(name, {8});
  net.weight("fc", {512, 10});
  OnnxNet::numbers(net.node("Conv", {"x", "w", "b"}, "c"), "pads", {1, 1, 1, 1});
  net.node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, "n");
  net.node("Relu", {"n"}, "r");
  auto& pool = net.node("MaxPool", {"r"}, "p");
  OnnxNet::numbers(pool, "kernel_shape", {2, 2});
  OnnxNet::numbers(pool, "strides", {2, 2});
  net.node("Flatten", {"p"}, "f");
  net.node("MatMul", {"f", "fc"}, "m");
  net.node("Softmax", {"m"}, "y");
  net.output("y", {0, 10});
  return net;
}

}  // namespace

TEST_CASE("an ONNX model is counted as its layers, shapes inferred from the input's") {
  const ImportedGraph net = imported_onnx(image_net());
  CHECK(net.model.name() == "net");
  // Mean and variance of the norm are no parameters.
  CHECK(net.model.parameters() == 8 * 27 + 8 + 16 + 5120);
  CHECK(net.model.forward_macs() == 27 * 8 * 16 * 16 + 5120);
  CHECK(net.model.sample_unit() == SampleUnit::image);
  REQUIRE(net.unmapped.size() == 1);
  CHECK(net.unmapped[0].kind == "Softmax");
}

TEST_CASE("axes of tokens take the sequence length, a table is looked up") {
  OnnxNet net;
  net.input("ids", {0, 0}, true);
  net.weight("wte", {1000, 32});
  net.weight("head", {32, 1000});
  net.node("Gather", {"wte", "ids"}, "e");
  net.node("MatMul", {"e", "head"}, "y");
  net.output("y", {0, 0, 1000});
  const ImportedGraph made = imported_onnx(net, 12);
  CHECK(made.model.sequence_length() == 12);
  CHECK(made.model.parameters() == 64'000);
  CHECK(made.model.forward_macs() == 12 * 32'000);
  const auto without = read_onnx_graph(net.bytes(), "net.onnx", std::nullopt);
  REQUIRE_FALSE(without.has_value());
  CHECK_THAT(format(without.error()), Contains("axis 1 of input 'ids' (any) has no fixed size") &&
                                          Contains("--sequence-length 128"));
}

TEST_CASE(
    "what is no ONNX model, or has shapes that do not fit, is an error with the file's name") {
  const auto none = read_onnx_graph("no model", "net.onnx", std::nullopt);
  REQUIRE_FALSE(none.has_value());
  CHECK_THAT(format(none.error()), Contains("net.onnx") && Contains("the file is no ONNX model"));
  OnnxNet net;
  net.input("x", {1, 3, 16, 16});
  net.weight("w", {8, 4, 3, 3});
  net.node("Conv", {"x", "w"}, "y");
  net.output("y", {1, 8, 14, 14});
  const auto graph = read_onnx_graph(net.bytes(), "net.onnx", std::nullopt);
  const bool answered = !graph || make_graph_model(*graph).has_value();
  CHECK(answered);  // the library may or may not see that channels differ; nothing throws
}

TEST_CASE("what Debian's PyTorch exported is counted as torch counts it") {
  for (const char* name : {"onnx_net", "onnx_block"}) {
    CAPTURE(name);
    std::ifstream in(std::string(RECKON_SOURCE_DIR) + "/tests/fuzz/corpus/graphs/" + name,
                     std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    REQUIRE(bytes.size() > 1);
    const auto graph = read_onnx_graph(bytes.substr(1), "net.onnx", std::nullopt);
    REQUIRE(graph.has_value());
    const auto model = make_graph_model(*graph);
    REQUIRE(model.has_value());
    const bool block = std::string_view(name) == "onnx_block";
    // The export copies the tied matrix, 100 x 32, and folds the norm of `net` into its
    // convolution.
    CHECK(model->model.parameters() == (block ? 7872 + 3200 : 8 * 27 + 8 + 5120 + 10));
  }
}

#endif
