#include "exchange/graphs/fx_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace reckon {
namespace {

using FxJson = nlohmann::json;

constexpr std::string_view kFormat = "reckon-fx";
constexpr std::int64_t kLargestAxis = std::int64_t{1} << 30;
constexpr std::size_t kMostAxes = 16;

struct KindName {
  std::string_view torch, kind;
};
// Modules, functions of torch and torch.nn.functional, methods of tensors.
constexpr std::array kKindNames{KindName{"Linear", "Linear"},
                                KindName{"linear", "Linear"},
                                KindName{"Conv1d", "Conv"},
                                KindName{"Conv2d", "Conv"},
                                KindName{"Conv3d", "Conv"},
                                KindName{"conv1d", "Conv"},
                                KindName{"conv2d", "Conv"},
                                KindName{"conv3d", "Conv"},
                                KindName{"ConvTranspose1d", "ConvTranspose"},
                                KindName{"ConvTranspose2d", "ConvTranspose"},
                                KindName{"ConvTranspose3d", "ConvTranspose"},
                                KindName{"BatchNorm1d", "BatchNormalization"},
                                KindName{"BatchNorm2d", "BatchNormalization"},
                                KindName{"LayerNorm", "LayerNormalization"},
                                KindName{"layer_norm", "LayerNormalization"},
                                KindName{"Embedding", "Embedding"},
                                KindName{"embedding", "Embedding"},
                                KindName{"ReLU", "Relu"},
                                KindName{"relu", "Relu"},
                                KindName{"relu_", "Relu"},
                                KindName{"ReLU6", "Relu"},
                                KindName{"GELU", "Gelu"},
                                KindName{"gelu", "Gelu"},
                                KindName{"NewGELUActivation", "Gelu"},
                                KindName{"GELUActivation", "Gelu"},
                                KindName{"SiLU", "Silu"},
                                KindName{"silu", "Silu"},
                                KindName{"SiLUActivation", "Silu"},
                                KindName{"Tanh", "Tanh"},
                                KindName{"tanh", "Tanh"},
                                KindName{"Sigmoid", "Sigmoid"},
                                KindName{"sigmoid", "Sigmoid"},
                                KindName{"MaxPool2d", "MaxPool"},
                                KindName{"AvgPool2d", "AveragePool"},
                                KindName{"add", "Add"},
                                KindName{"iadd", "Add"},
                                KindName{"add_", "Add"},
                                KindName{"mul", "Mul"},
                                KindName{"imul", "Mul"},
                                KindName{"cat", "Concat"},
                                KindName{"matmul", "MatMul"},
                                KindName{"bmm", "MatMul"},
                                KindName{"baddbmm", "MatMul"},
                                KindName{"scaled_dot_product_attention", "Attention"},
                                KindName{"MultiheadAttention", "MultiheadAttention"},
                                KindName{"LSTM", "LSTM"},
                                KindName{"GRU", "GRU"},
                                KindName{"RNN", "RNN"},
                                KindName{"Dropout", "Dropout"},
                                KindName{"Dropout2d", "Dropout"},
                                KindName{"dropout", "Dropout"},
                                KindName{"Identity", "Identity"},
                                KindName{"contiguous", "Contiguous"},
                                KindName{"to", "Cast"},
                                KindName{"float", "Cast"},
                                KindName{"view", "Reshape"},
                                KindName{"reshape", "Reshape"},
                                KindName{"flatten", "Flatten"},
                                KindName{"Flatten", "Flatten"},
                                KindName{"squeeze", "Squeeze"},
                                KindName{"unsqueeze", "Unsqueeze"},
                                KindName{"chunk", "Split"},
                                KindName{"split", "Split"},
                                KindName{"unbind", "Split"},
                                KindName{"narrow", "Slice"},
                                KindName{"select", "Slice"},
                                KindName{"getitem", "GetItem"},
                                KindName{"size", "Size"},
                                KindName{"getattr", "Shape"},
                                KindName{"arange", "Range"}};

std::string kind_of_torch(const std::string& name) {
  const auto found = std::ranges::find(kKindNames, name, &KindName::torch);
  return found == kKindNames.end() ? name.substr(0, 80) : std::string(found->kind);
}

struct AttributeName {
  const char *torch, *onnx;
};
constexpr std::array kAttributeNames{
    AttributeName{"stride", "strides"}, AttributeName{"padding", "pads"},
    AttributeName{"groups", "group"}, AttributeName{"kernel_size", "kernel_shape"},
    AttributeName{"dilation", "dilations"}};

class FxReader {
 public:
  FxReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

  Expected<OperatorGraph> read() {
    const FxJson json = FxJson::parse(text_, nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
      error("", "the file is no JSON object", "the lines in the docs of 'reckon model' write one");
    } else if (json.value("format", FxJson()) != kFormat) {
      error("format", "the file is no graph of PyTorch FX for reckon",
            fmt::format("it begins with {{\"format\": \"{}\"", kFormat));
    } else {
      const auto nodes = json.find("nodes");
      const FxJson name = json.value("name", FxJson());
      graph_.name = name.is_string() ? name.get<std::string>().substr(0, 80) : "fx";
      if (nodes == json.end() || !nodes->is_array())
        error("nodes", "the graph has no list 'nodes'");
      else
        for (const FxJson& node : *nodes) read_node(node);
    }
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    return std::move(graph_);
  }

 private:
  void error(const std::string& at, std::string what, std::string hint = {}) {
    constexpr std::size_t kMost = 20;
    if (errors_.size() >= kMost) return;
    errors_.push_back({.at = place_of(at), .what = std::move(what), .hint = std::move(hint)});
  }
  /// Where the quoted word stands first.
  SourcePlace place_of(const std::string& word) const {
    const std::size_t at =
        word.empty() ? std::string_view::npos : text_.find(fmt::format("\"{}\"", word));
    if (at == std::string_view::npos) return {file_, 0, 0};
    const std::string_view before = text_.substr(0, at);
    const std::size_t line = before.rfind('\n');
    const std::size_t column = line == std::string_view::npos ? at : at - line - 1;
    return {file_, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
            1 + static_cast<int>(column)};
  }

  std::string text_of(const FxJson& node, const char* key) const {
    const auto it = node.find(key);
    return it != node.end() && it->is_string() ? it->get<std::string>() : std::string();
  }
  std::vector<std::string> texts_of_list(const std::string& name, const FxJson& node,
                                         const char* key) {
    std::vector<std::string> texts;
    const auto it = node.find(key);
    if (it == node.end()) return texts;
    if (!it->is_array()) error(name, fmt::format("'{}' of node '{}' is no list", key, name));
    for (const FxJson& item : *it) {
      if (item.is_string())
        texts.push_back(item.get<std::string>());
      else
        error(name, fmt::format("'{}' of node '{}' has an item that is no name", key, name));
    }
    return texts;
  }
  /// nullopt: it is wrong, and said so.
  std::optional<Shape> shape_of(const std::string& name, const FxJson& list) {
    Shape shape;
    bool right = list.is_array() && list.size() <= kMostAxes;
    for (const FxJson& n : right ? list : FxJson::array()) {
      right = right && n.is_number_integer() && n >= 0 && n <= kLargestAxis;
      if (right) shape.push_back(n.get<std::int64_t>());
    }
    if (right) return shape;
    error(name, fmt::format("a shape of node '{}' is wrong", name),
          "a list of up to 16 whole numbers, such as [1, 3, 224, 224]");
    return std::nullopt;
  }

  void read_node(const FxJson& node) {
    const std::string name = node.is_object() ? text_of(node, "name") : "";
    if (name.empty()) return error("nodes", "a node has no name");
    if (!names_.insert(name).second)
      return error(name, fmt::format("two nodes are called '{}'", name));
    const std::string op = text_of(node, "op");
    GraphNode made{.name = name, .kind = kind_of_torch(text_of(node, "kind"))};
    made.inputs = texts_of_list(name, node, "inputs");
    for (const std::string& input : made.inputs)
      if (!names_.contains(input) || input == name)
        error(name, fmt::format("node '{}' takes '{}', which no earlier node makes", name, input));
    if (op == "output") {
      graph_.outputs = made.inputs;
      return;
    }
    read_value(name, node);
    const std::vector<std::string> held = read_weights(name, node);
    if (op == "placeholder") {
      graph_.inputs.push_back(name);
    } else if (op == "get_attr") {
      read_attribute(name, held);
    } else if (op == "call_module" || op == "call_function" || op == "call_method") {
      made.inputs.insert(made.inputs.end(), held.begin(), held.end());
      made.outputs = {name};
      read_attributes(node, made);
      graph_.nodes.push_back(std::move(made));
    } else {
      error(name, fmt::format("node '{}' has no op that is known", name),
            "placeholder, get_attr, call_module, call_function, call_method or output");
    }
  }

  void read_value(const std::string& name, const FxJson& node) {
    if (const auto it = node.find("shape"); it != node.end() && !it->is_null() && !it->empty())
      if (auto shape = shape_of(name, *it)) graph_.values[name] = *shape;
    const std::string dtype = text_of(node, "dtype");
    if (dtype.find("int") != std::string::npos || dtype.find("bool") != std::string::npos)
      graph_.integers.insert(name);
  }

  std::vector<std::string> read_weights(const std::string& name, const FxJson& node) {
    std::vector<std::string> held;
    const auto it = node.find("weights");
    if (it == node.end()) return held;
    if (!it->is_object()) {
      error(name, fmt::format("'weights' of node '{}' is no object", name));
      return held;
    }
    for (const auto& [key, list] : it->items()) {
      const auto shape = shape_of(name, list);
      if (!shape) continue;
      held.push_back("weight:" + key);
      graph_.weights[held.back()] = *shape;
    }
    // A bias stands behind its matrix, whatever their names.
    std::ranges::stable_sort(held, std::greater<>(),
                             [&](const std::string& key) { return graph_.weights.at(key).size(); });
    return held;
  }

  /// A parameter that a function takes is this one; another attribute is a constant.
  void read_attribute(const std::string& name, const std::vector<std::string>& held) {
    if (held.empty()) {
      graph_.constants.insert(name);
      return;
    }
    // An identity of the weight.
    graph_.nodes.push_back(
        {.name = name, .kind = "Identity", .inputs = {held.front()}, .outputs = {name}});
  }

  static void read_attributes(const FxJson& node, GraphNode& made) {
    const auto it = node.find("attributes");
    if (it == node.end() || !it->is_object()) return;
    for (const AttributeName& known : kAttributeNames) {
      const auto value = it->find(known.torch);
      if (value == it->end()) continue;
      std::vector<std::int64_t> numbers;
      const auto take = [&](const FxJson& n) {
        if (n.is_number_integer() && n >= 0 && n <= kLargestAxis)
          numbers.push_back(n.get<std::int64_t>());
      };
      if (value->is_array())
        for (const FxJson& n : *value) take(n);
      else
        take(*value);
      if (!numbers.empty()) made.attributes[known.onnx] = std::move(numbers);
    }
  }

  std::string_view text_;
  std::string file_;
  OperatorGraph graph_;
  std::set<std::string> names_;
  Diagnostics errors_;
};

}  // namespace

bool is_fx_graph(std::string_view text) {
  constexpr std::size_t kHead = 4096;
  return text.substr(0, kHead).find(fmt::format("\"{}\"", kFormat)) != std::string_view::npos;
}

Expected<OperatorGraph> read_fx_graph(std::string_view text, const std::string& file) {
  return FxReader(text, file).read();
}

}  // namespace reckon
