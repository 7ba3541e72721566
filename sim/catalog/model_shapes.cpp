#include "sim/catalog/model_shapes.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>

namespace reckon {
namespace {

using Result = tl::expected<Shape, ShapeError>;
using Inputs = std::span<const Shape* const>;

// No dimension of a real network comes near, and three products of two stay inside 64 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

tl::unexpected<ShapeError> error(std::string what, std::string hint = {}) {
  return tl::unexpected<ShapeError>(ShapeError{std::move(what), std::move(hint)});
}

struct Size {
  std::string_view name;
  std::int64_t value;
  std::int64_t least = 1;
};

std::optional<ShapeError> check_sizes(std::initializer_list<Size> sizes) {
  for (const Size& s : sizes) {
    if (s.value < s.least || s.value > kLargestSize) {
      return ShapeError{fmt::format("{} is {}", s.name, s.value),
                        fmt::format("it must lie in {}..{}", s.least, kLargestSize)};
    }
  }
  return std::nullopt;
}

std::optional<ShapeError> check_rate(double rate) {
  if (rate >= 0 && rate < 1) return std::nullopt;
  return ShapeError{fmt::format("the dropout rate is {}", rate), "it must lie in [0, 1)"};
}

std::optional<ShapeError> check_conv(const Conv2d& c) {
  if (auto e = check_sizes({{"in", c.in},
                            {"out", c.out},
                            {"kernel_h", c.kernel_h},
                            {"kernel_w", c.kernel_w},
                            {"stride", c.stride},
                            {"padding", c.padding, 0},
                            {"groups", c.groups}})) {
    return e;
  }
  if (c.in % c.groups != 0 || c.out % c.groups != 0) {
    return ShapeError{fmt::format("{} groups do not divide {} input and {} output channels",
                                  c.groups, c.in, c.out),
                      {}};
  }
  return std::nullopt;
}

std::optional<ShapeError> check_attention(const Attention& a) {
  if (auto e =
          check_sizes({{"heads", a.heads}, {"kv_heads", a.kv_heads}, {"head_width", a.head_width}}))
    return e;
  if (a.heads % a.kv_heads != 0) {
    return ShapeError{fmt::format("{} key-value heads do not divide {} heads", a.kv_heads, a.heads),
                      {}};
  }
  return check_rate(a.dropout);
}

Result same_if_last_is(const Shape& in, std::int64_t width, std::string_view what) {
  if (!in.empty() && in.back() == width) return in;
  return error(fmt::format("is built for {} {}, its input is {}", width, what, to_text(in)));
}

Result windowed(const Shape& in, std::int64_t channels, std::int64_t kernel_h,
                std::int64_t kernel_w, std::int64_t stride, std::int64_t padding) {
  const std::int64_t h = in[1] + 2 * padding - kernel_h, w = in[2] + 2 * padding - kernel_w;
  if (h < 0 || w < 0) {
    return error(fmt::format("a kernel of {}x{} does not fit into {} with padding {}", kernel_h,
                             kernel_w, to_text(in), padding));
  }
  return Shape{channels, h / stride + 1, w / stride + 1};
}

Result image_expected(const Shape& in) {
  return error(fmt::format("takes an image (C, H, W), its input is {}", to_text(in)));
}

Result shape_of(const Linear& l, Inputs in) {
  if (in[0]->size() > 2) {
    return error(fmt::format("takes ({0}) or (T, {0}), its input is {1}", l.in, to_text(*in[0])),
                 "put a Flatten or GlobalAveragePool before it");
  }
  Result result = same_if_last_is(*in[0], l.in, "input features");
  if (result) result->back() = l.out;
  return result;
}

Result shape_of(const Conv2d& c, Inputs in) {
  if (in[0]->size() != 3) return image_expected(*in[0]);
  if (in[0]->front() != c.in) {
    return error(
        fmt::format("is built for {} input channels, its input is {}", c.in, to_text(*in[0])));
  }
  return windowed(*in[0], c.out, c.kernel_h, c.kernel_w, c.stride, c.padding);
}

Result shape_of(const BatchNorm& n, Inputs in) {
  if (in[0]->front() == n.channels) return *in[0];
  return error(
      fmt::format("is built for {} channels, its input is {}", n.channels, to_text(*in[0])));
}

Result shape_of(const Pool2d& p, Inputs in) {
  if (in[0]->size() != 3) return image_expected(*in[0]);
  return windowed(*in[0], in[0]->front(), p.kernel, p.kernel, p.stride, p.padding);
}

Result shape_of(const GlobalAveragePool&, Inputs in) {
  if (in[0]->size() != 3) return image_expected(*in[0]);
  return Shape{in[0]->front()};
}

Result shape_of(const Embedding& e, Inputs in) {
  if (in[0]->size() == 1) return Shape{in[0]->front(), e.width};
  return error(fmt::format("takes token ids (T), its input is {}", to_text(*in[0])));
}

Result shape_of(const PositionEmbedding& e, Inputs in) {
  if (in[0]->size() != 2)
    return error(fmt::format("takes tokens (T, D), its input is {}", to_text(*in[0])));
  if (in[0]->front() > e.rows) {
    return error(
        fmt::format("has {} positions, the sequence has {} tokens", e.rows, in[0]->front()),
        "shorten the sequence or give the table more rows");
  }
  return same_if_last_is(*in[0], e.width, "features");
}

Result shape_of(const RotaryEmbedding& r, Inputs in) {
  if (in[0]->size() == 2 && in[0]->back() % r.head_width == 0) return *in[0];
  return error(fmt::format("takes heads of {} features (T, heads * {}), its input is {}",
                           r.head_width, r.head_width, to_text(*in[0])));
}

Result shape_of(const Attention& a, Inputs in) {
  const std::int64_t q = a.heads * a.head_width, kv = a.kv_heads * a.head_width;
  const std::int64_t tokens = in[0]->front();
  const bool fused = in.size() == 1;
  const std::array<std::string_view, 3> names{fused ? "q, k and v" : "q", "k", "v"};
  const std::array<std::int64_t, 3> widths{fused ? q + 2 * kv : q, kv, kv};
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Shape wanted{tokens, widths[i]};
    if (*in[i] != wanted) {
      return error(fmt::format("takes {} of {}, its input is {}", names[i], to_text(wanted),
                               to_text(*in[i])));
    }
  }
  return Shape{tokens, q};
}

Result shape_of(const SelectTokens& s, Inputs in) {
  if (in[0]->size() != 2)
    return error(fmt::format("takes tokens (T, D), its input is {}", to_text(*in[0])));
  if (s.count > in[0]->front()) {
    return error(fmt::format("selects {} tokens, its input is {}", s.count, to_text(*in[0])));
  }
  return Shape{s.count, in[0]->back()};
}

Result all_equal(Inputs in) {
  for (const Shape* shape : in) {
    if (*shape != *in[0]) {
      return error(
          fmt::format("its inputs differ in shape: {} and {}", to_text(*in[0]), to_text(*shape)));
    }
  }
  return *in[0];
}

Result shape_of(const SoftmaxCrossEntropy& s, Inputs in) {
  if (in[0]->size() > 2 || in[0]->back() != s.classes) {
    return error(
        fmt::format("takes ({0}) or (T, {0}), its input is {1}", s.classes, to_text(*in[0])));
  }
  return Shape{1};
}

struct Arity {
  std::size_t least, most;
  std::string_view text;
};

Arity arity(const LayerOp& op) {
  constexpr std::size_t kMany = 1024;
  return std::visit(overloaded{[](const InputLayer&) {
                                 return Arity{0, 0, "no input"};
                               },
                               [](const Attention&) {
                                 return Arity{1, 3, "three inputs (q, k, v) or one of all"};
                               },
                               [](const Add&) {
                                 return Arity{2, kMany, "two inputs or more"};
                               },
                               [](const Multiply&) {
                                 return Arity{2, 2, "two inputs"};
                               },
                               [](const auto&) {
                                 return Arity{1, 1, "one input"};
                               }},
                    op);
}

}  // namespace

std::string_view kind_name(const LayerOp& op) {
  constexpr std::array<std::string_view, std::variant_size_v<LayerOp>> kNames{
      "InputLayer",
      "Linear",
      "Conv2d",
      "BatchNorm",
      "LayerNorm",
      "RmsNorm",
      "Activation",
      "Pool2d",
      "GlobalAveragePool",
      "Flatten",
      "Dropout",
      "Embedding",
      "PositionEmbedding",
      "RotaryEmbedding",
      "Attention",
      "SelectTokens",
      "Add",
      "Multiply",
      "SoftmaxCrossEntropy"};
  return kNames[op.index()];
}

std::optional<ShapeError> check_attributes(const LayerOp& op) {
  using Checked = std::optional<ShapeError>;
  return std::visit(
      overloaded{
          [](const Linear& l) {
            return check_sizes({{"in", l.in}, {"out", l.out}});
          },
          [](const Conv2d& c) { return check_conv(c); },
          [](const BatchNorm& n) {
            return check_sizes({{"channels", n.channels}});
          },
          [](const LayerNorm& n) {
            return check_sizes({{"width", n.width}});
          },
          [](const RmsNorm& n) {
            return check_sizes({{"width", n.width}});
          },
          [](const Pool2d& p) -> Checked {
            if (auto e = check_sizes(
                    {{"kernel", p.kernel}, {"stride", p.stride}, {"padding", p.padding, 0}}))
              return e;
            // torch.nn.MaxPool2d has the same rule: else a window could lie in the padding alone.
            if (2 * p.padding <= p.kernel) return std::nullopt;
            return ShapeError{
                fmt::format("padding {} is more than half of kernel {}", p.padding, p.kernel), {}};
          },
          [](const Dropout& d) { return check_rate(d.rate); },
          [](const Embedding& e) {
            return check_sizes({{"rows", e.rows}, {"width", e.width}});
          },
          [](const PositionEmbedding& e) {
            return check_sizes({{"rows", e.rows}, {"width", e.width}});
          },
          [](const RotaryEmbedding& r) -> Checked {
            if (auto e = check_sizes({{"head_width", r.head_width}})) return e;
            if (r.head_width % 2 == 0 && r.theta > 0) return std::nullopt;
            return ShapeError{fmt::format("head_width is {} and theta {}", r.head_width, r.theta),
                              "head_width must be even, theta positive"};
          },
          [](const Attention& a) { return check_attention(a); },
          [](const SelectTokens& s) {
            return check_sizes({{"count", s.count}});
          },
          [](const SoftmaxCrossEntropy& s) {
            return check_sizes({{"classes", s.classes}});
          },
          [](const auto&) -> Checked { return std::nullopt; }},
      op);
}

Result infer_shape(const LayerOp& op, Inputs inputs, const Shape& input) {
  const Arity a = arity(op);
  const bool split_pair = std::holds_alternative<Attention>(op) && inputs.size() == 2;
  if (inputs.size() < a.least || inputs.size() > a.most || split_pair) {
    return error(fmt::format("takes {}, it has {}", a.text, inputs.size()));
  }
  return std::visit(
      overloaded{
          [&](const InputLayer&) -> Result { return input; },
          [&](const LayerNorm& n) { return same_if_last_is(*inputs[0], n.width, "features"); },
          [&](const RmsNorm& n) { return same_if_last_is(*inputs[0], n.width, "features"); },
          [&](const Activation&) -> Result { return *inputs[0]; },
          [&](const Dropout&) -> Result { return *inputs[0]; },
          [&](const Flatten&) -> Result { return Shape{elements(*inputs[0])}; },
          [&](const Add&) { return all_equal(inputs); },
          [&](const Multiply&) { return all_equal(inputs); },
          [&](const auto& other) { return shape_of(other, inputs); }},
      op);
}

}  // namespace reckon
