#include "exchange/graphs/operator_layers.h"

#include <algorithm>
#include <array>

#include "sim/model/shapes.h"

namespace reckon {
namespace {

double as_double(std::int64_t n) { return static_cast<double>(n); }
double size_of(const Shape& shape) {
  double n = 1;
  for (const std::int64_t d : shape) n *= as_double(d);
  return n;
}
bool one_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

/// All numbers of an attribute are one; `otherwise` where it has none.
std::optional<std::int64_t> uniform(const GraphNode& node, const char* name,
                                    std::int64_t otherwise) {
  const auto it = node.attributes.find(name);
  if (it == node.attributes.end() || it->second.empty()) return otherwise;
  const std::int64_t first = it->second.front();
  const bool same = std::ranges::all_of(it->second, [&](std::int64_t n) { return n == first; });
  return same ? std::optional(first) : std::nullopt;
}

std::optional<LayerOp> convolution(const OperatorAt& at) {
  if (at.inputs.size() != 1 || at.weights.empty() || at.weights[0].size() != 4) return {};
  const Shape& w = at.weights[0];
  const auto stride = uniform(at.node, "strides", 1), padding = uniform(at.node, "pads", 0);
  const auto groups = uniform(at.node, "group", 1), dilation = uniform(at.node, "dilations", 1);
  if (!stride || !padding || !groups || dilation != 1) return {};
  return Conv2d{.in = w[1] * *groups,
                .out = w[0],
                .kernel_h = w[2],
                .kernel_w = w[3],
                .stride = *stride,
                .padding = *padding,
                .groups = *groups,
                .bias = at.weights.size() > 1};
}

/// Of a weight (in, out), or (out, in) where it is turned.
std::optional<LayerOp> linear(const OperatorAt& at) {
  if (at.inputs.size() != 1 || at.weights.empty() || at.weights[0].size() != 2) return {};
  const Shape& w = at.weights[0];
  const bool turned =
      at.node.kind == "Linear" || (at.node.kind == "Gemm" && uniform(at.node, "transB", 0) == 1);
  return Linear{turned ? w[1] : w[0], turned ? w[0] : w[1], at.weights.size() > 1};
}

std::optional<LayerOp> pool(const OperatorAt& at, PoolKind kind) {
  const auto kernel = uniform(at.node, "kernel_shape", 0), padding = uniform(at.node, "pads", 0);
  const auto stride = uniform(at.node, "strides", kernel.value_or(0));
  if (!kernel || *kernel < 1 || !padding || !stride) return {};
  return Pool2d{kind, *kernel, *stride, *padding};
}

std::optional<LayerOp> activation(const OperatorAt& at, ActivationKind kind) {
  if (at.inputs.size() != 1 || !at.weights.empty()) return {};
  return Activation{kind};
}

std::optional<LayerOp> candidate(const OperatorAt& at) {
  const std::string_view kind = at.node.kind;
  if (is_convolution(kind) && kind != "ConvTranspose") return convolution(at);
  if (one_of(kind, {"Gemm", "MatMul", "Linear"})) return linear(at);
  if (kind == "Relu") return activation(at, ActivationKind::relu);
  if (kind == "Gelu") return activation(at, ActivationKind::gelu);
  if (kind == "Silu") return activation(at, ActivationKind::silu);
  if (kind == "Tanh") return activation(at, ActivationKind::tanh);
  if (kind == "Sigmoid") return activation(at, ActivationKind::sigmoid);
  if (kind == "MaxPool") return pool(at, PoolKind::max);
  if (kind == "AveragePool") return pool(at, PoolKind::average);
  if (kind == "Add" && at.inputs.size() > 1 && at.weights.empty()) return Add{};
  if (kind == "Mul" && at.inputs.size() == 2 && at.weights.empty()) return Multiply{};
  if (kind == "Concat" && at.inputs.size() > 1 && at.weights.empty()) return Concat{};
  if (kind == "BatchNormalization" && at.inputs.size() == 1 && at.weights.size() == 2)
    return BatchNorm{at.weights[0].front()};
  if (kind == "LayerNormalization" && at.inputs.size() == 1 && !at.weights.empty() &&
      at.weights[0].size() == 1)
    return LayerNorm{at.weights[0].front(), at.weights.size() > 1};
  if (is_table_kind(kind) && at.integer_input && at.weights.size() == 1 &&
      at.weights[0].size() == 2)
    return Embedding{at.weights[0][0], at.weights[0][1]};
  return {};
}

/// q, k, v (heads, T, width): scores of each query with each key, and with the values.
double attention_products(const OperatorAt& at) {
  if (at.inputs.size() < 3) return 0;
  const Shape &q = at.inputs[0], &k = at.inputs[1], &v = at.inputs[2];
  if (q.size() < 2 || k.size() < 2 || v.empty()) return 0;
  return size_of(q) * as_double(k[k.size() - 2]) +
         size_of(q) / as_double(q.back()) * as_double(k[k.size() - 2]) * as_double(v.back());
}

/// torch.nn.MultiheadAttention: its projections of q, k and v and of what comes out, and the
/// attention between them.
double module_attention_products(const OperatorAt& at) {
  if (at.inputs.empty() || at.inputs[0].empty()) return 0;
  const Shape& q = at.inputs[0];
  const double width = as_double(q.back()), tokens = size_of(q) / width;
  const Shape& k = at.inputs.size() > 1 ? at.inputs[1] : q;
  const double others = size_of(k) / std::max(1.0, as_double(k.back()));
  double products = 0;
  for (const Shape& w : at.weights)
    if (w.size() == 2) products += size_of(w) * tokens;
  return products + 2 * tokens * others * width;
}

double by_weights(const OperatorAt& at, double rows) {
  double sum = 0;
  for (const Shape& w : at.weights)
    if (w.size() >= 2) sum += size_of(w);
  return sum * rows;
}

}  // namespace

bool is_convolution(std::string_view kind) { return one_of(kind, {"Conv", "ConvTranspose"}); }
bool is_view_kind(std::string_view kind) {
  return one_of(kind, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Split", "Slice", "GetItem"});
}
bool is_identity_kind(std::string_view kind) {
  return one_of(kind, {"Identity", "Cast", "Dropout", "Contiguous"});
}
bool is_table_kind(std::string_view kind) { return one_of(kind, {"Gather", "Embedding"}); }
bool is_shape_kind(std::string_view kind) {
  return one_of(kind, {"Shape", "Size", "Constant", "ConstantOfShape", "Range"});
}

std::optional<LayerOp> layer_of(const OperatorAt& at) {
  auto op = candidate(at);
  if (!op || check_attributes(*op)) return {};
  std::vector<const Shape*> inputs;
  for (const Shape& shape : at.inputs) inputs.push_back(&shape);
  if (std::ranges::any_of(at.inputs, &Shape::empty)) return {};
  const auto shape = infer_shape(*op, inputs, at.inputs.empty() ? at.output : at.inputs[0]);
  return shape && *shape == at.output ? op : std::nullopt;
}

double multiply_adds_of(const OperatorAt& at) {
  const std::string_view kind = at.node.kind;
  const double out = size_of(at.output);
  if (kind == "Conv" && !at.weights.empty() && !at.weights[0].empty())
    return out * size_of(at.weights[0]) / as_double(at.weights[0].front());
  if (kind == "ConvTranspose" && !at.weights.empty() && !at.inputs.empty())
    return size_of(at.inputs[0]) * size_of(at.weights[0]) / as_double(at.weights[0].front());
  if (one_of(kind, {"MatMul", "Gemm", "Linear"})) {
    // Each number that comes out is a sum over the inner axis.
    const Shape* first = !at.inputs.empty() ? &at.inputs[0] : nullptr;
    if (first != nullptr && !first->empty()) return out * as_double(first->back());
    return by_weights(at, 1);
  }
  if (kind == "Attention") return attention_products(at);
  if (kind == "MultiheadAttention") return module_attention_products(at);
  if (one_of(kind, {"LSTM", "GRU", "RNN"})) {
    const Shape* first = !at.inputs.empty() ? &at.inputs[0] : nullptr;
    if (first == nullptr || first->empty()) return 0;
    return by_weights(at, size_of(*first) / as_double(first->back()));
  }
  return 0;
}

}  // namespace reckon
