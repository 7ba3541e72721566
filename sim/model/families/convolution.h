#pragma once
#include <cmath>

#include "sim/model/families/rules.h"

// Convolutions of images and volumes, and their transposes.
namespace reckon::family {

struct Window {
  std::int64_t kernel_h, kernel_w, stride, padding_h, padding_w;
};
/// (size + 2 padding - kernel) / stride + 1, rounded down, as torch.nn.Conv2d.
inline Result windowed(const Shape& in, std::int64_t channels, const Window& x) {
  const std::int64_t h = in[1] + 2 * x.padding_h - x.kernel_h;
  const std::int64_t w = in[2] + 2 * x.padding_w - x.kernel_w;
  if (h < 0 || w < 0) {
    return error(fmt::format("a kernel of {}x{} does not fit into {} with padding {}", x.kernel_h,
                             x.kernel_w, to_text(in), h < 0 ? x.padding_h : x.padding_w));
  }
  return Shape{channels, h / x.stride + 1, w / x.stride + 1};
}

/// Forward: 2 kh kw (in/groups) n; half of it is torchvision's "GFLOPS" (MACs).
template <>
struct Rules<Conv2d> : OneInput, SavesInputsToLearn, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "Conv2d";
  static LayerOp read(A& a) {
    const auto kernel = a.pair("kernel", 1);
    const auto padding = a.pair("padding", 0);
    Conv2d op{.in = a.number("in", a.channels()),
              .out = a.main_number(),
              .kernel_h = kernel.first,
              .kernel_w = kernel.second,
              .stride = a.number("stride", 1),
              .padding = padding.first,
              .groups = a.number("groups", 1),
              .bias = a.flag("bias", true)};
    if (padding.second != padding.first) op.padding_w = padding.second;
    return op;
  }
  static constexpr Kind kind{
      {"conv2d", "{conv2d: 64, kernel: 1x7, stride: 2, padding: 0x3, groups: 1, bias: false}"},
      read};

  static Checked check(const Conv2d& c) {
    if (auto e = check_sizes({{"in", c.in},
                              {"out", c.out},
                              {"kernel_h", c.kernel_h},
                              {"kernel_w", c.kernel_w},
                              {"stride", c.stride},
                              {"padding", c.padding, 0},
                              {"padding_w", c.columns_padded(), 0},
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
  static Result shape(const Conv2d& c, Inputs in, const Shape&) {
    if (in[0]->size() != 3) return image_expected(*in[0]);
    if (in[0]->front() != c.in) {
      return error(
          fmt::format("is built for {} input channels, its input is {}", c.in, to_text(*in[0])));
    }
    return windowed(*in[0], c.out,
                    {c.kernel_h, c.kernel_w, c.stride, c.padding, c.columns_padded()});
  }
  static LayerCount count(const Conv2d& c, Inputs in, const Shape& out, Where where) {
    const double per_output = 2 * d(c.kernel_h) * d(c.kernel_w) * d(c.in / c.groups);
    LayerCount result = product(in, out, WorkKind::convolution, Flops{per_output * size(out)},
                                where.input_has_gradient);
    result.depthwise = c.groups > 1 && c.groups == c.in;
    result.small_square = c.kernel_h == 3 && c.kernel_w == 3 && c.stride == 1 && c.groups == 1;
    return result;
  }
  static LayerWeights weights(const Conv2d& c) {
    return {.weight = {c.out, c.in / c.groups, c.kernel_h, c.kernel_w},
            .bias = c.bias ? Shape{c.out} : Shape{},
            .shares_bias = true};
  }
};

/// Forward: 2 kernel^3 in n.
template <>
struct Rules<Conv3d> : OneInput, SavesInputsToLearn, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "Conv3d";
  static LayerOp read(A& a) {
    return Conv3d{.in = a.number("in", a.channels()),
                  .out = a.main_number(),
                  .kernel = a.number("kernel", 3),
                  .stride = a.number("stride", 1),
                  .padding = a.number("padding", 1),
                  .bias = a.flag("bias", true)};
  }
  static constexpr Kind kind{
      {"conv3d", "{conv3d: 64, kernel: 3, stride: 1, padding: 1, bias: false}"}, read};

  static Checked check(const Conv3d& c) {
    return check_sizes({{"in", c.in},
                        {"out", c.out},
                        {"kernel", c.kernel},
                        {"stride", c.stride},
                        {"padding", c.padding, 0}});
  }
  static Result shape(const Conv3d& c, Inputs in, const Shape&) {
    if (in[0]->size() != 4) return not_taken("a volume (C, D, H, W)", *in[0]);
    if (in[0]->front() != c.in) return channels_wrong(c.in, *in[0]);
    Shape out{c.out};
    for (const std::int64_t n : std::span(*in[0]).subspan(1)) {
      const std::int64_t steps = n + 2 * c.padding - c.kernel;
      if (steps < 0) {
        return error(fmt::format("a kernel of {} does not fit into {} with padding {}", c.kernel,
                                 to_text(*in[0]), c.padding));
      }
      out.push_back(steps / c.stride + 1);
    }
    return out;
  }
  static LayerCount count(const Conv3d& c, Inputs in, const Shape& out, Where where) {
    const double per_output = 2 * d(c.kernel) * d(c.kernel) * d(c.kernel) * d(c.in);
    return product(in, out, WorkKind::convolution, Flops{per_output * size(out)},
                   where.input_has_gradient);
  }
  static LayerWeights weights(const Conv3d& c) {
    return {.weight = {c.out, c.in, c.kernel, c.kernel, c.kernel},
            .bias = c.bias ? Shape{c.out} : Shape{}};
  }
};

/// Forward: 2 kernel^dimensions out, for each element of the input.
template <>
struct Rules<TransposedConv> : OneInput, SavesInputsToLearn, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "TransposedConv";
  static LayerOp read(A& a) {
    const bool volume = a.inputs() > 0 && a.input(0).size() == 4;
    return TransposedConv{.in = a.number("in", a.channels()),
                          .out = a.main_number(),
                          .kernel = a.number("kernel", 2),
                          .stride = a.number("stride", 2),
                          .dimensions = volume ? 3 : 2,
                          .bias = a.flag("bias", true)};
  }
  static constexpr Kind kind{{"transposed_conv", "{transposed_conv: 32, kernel: 2, stride: 2}"},
                             read};

  static Checked check(const TransposedConv& c) {
    if (auto e =
            check_sizes({{"in", c.in}, {"out", c.out}, {"kernel", c.kernel}, {"stride", c.stride}}))
      return e;
    if (c.dimensions == 2 || c.dimensions == 3) return std::nullopt;
    return ShapeError{fmt::format("has {} dimensions", c.dimensions), "it is 2 or 3"};
  }
  static Result shape(const TransposedConv& c, Inputs in, const Shape&) {
    if (static_cast<std::int64_t>(in[0]->size()) != c.dimensions + 1)
      return not_taken(c.dimensions == 2 ? "an image (C, H, W)" : "a volume (C, D, H, W)", *in[0]);
    if (in[0]->front() != c.in) return channels_wrong(c.in, *in[0]);
    Shape out{c.out};
    for (const std::int64_t n : std::span(*in[0]).subspan(1))
      out.push_back((n - 1) * c.stride + c.kernel);
    return out;
  }
  static LayerCount count(const TransposedConv& c, Inputs in, const Shape& out, Where where) {
    const double per_input = 2 * std::pow(d(c.kernel), d(c.dimensions)) * d(c.out);
    return product(in, out, WorkKind::convolution, Flops{per_input * size(*in[0])},
                   where.input_has_gradient);
  }
  static LayerWeights weights(const TransposedConv& c) {
    LayerWeights w{.weight = {c.in, c.out}, .bias = c.bias ? Shape{c.out} : Shape{}};
    w.weight.resize(2 + static_cast<std::size_t>(c.dimensions), c.kernel);
    return w;
  }
};

}  // namespace reckon::family
