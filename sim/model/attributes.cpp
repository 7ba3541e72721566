#include <fmt/format.h>

#include <array>
#include <cmath>
#include <initializer_list>

#include "sim/model/shapes.h"

// What each kind of layer is called, and what its attributes may be.
namespace reckon {
namespace {

// No dimension of a real network comes near, and three products of two stay inside 64 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;

struct PositiveSize {
  std::string_view name;
  std::int64_t value;
  std::int64_t least = 1;
};

std::optional<ShapeError> check_sizes(std::initializer_list<PositiveSize> sizes) {
  for (const PositiveSize& s : sizes) {
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

std::optional<ShapeError> check_attention(const Attention& a) {
  if (auto e = check_sizes({{"heads", a.heads},
                            {"kv_heads", a.kv_heads},
                            {"head_width", a.head_width},
                            {"window", a.window, 0},
                            {"value_width", a.value_width, 0}}))
    return e;
  if (a.heads % a.kv_heads != 0) {
    return ShapeError{fmt::format("{} key-value heads do not divide {} heads", a.kv_heads, a.heads),
                      {}};
  }
  return check_rate(a.dropout);
}

std::optional<ShapeError> check_experts(std::int64_t experts, std::int64_t top_k) {
  if (auto e = check_sizes({{"experts", experts}, {"top_k", top_k}})) return e;
  if (top_k <= experts) return std::nullopt;
  return ShapeError{fmt::format("sends each token to {} of {} experts", top_k, experts), {}};
}

}  // namespace

std::string_view kind_name(const LayerOp& op) {
  constexpr std::array<std::string_view, std::variant_size_v<LayerOp>> kNames{"InputLayer",
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
                                                                              "SoftmaxCrossEntropy",
                                                                              "SinusoidalPositions",
                                                                              "ClassToken",
                                                                              "ImageTokens",
                                                                              "EmbeddingBag",
                                                                              "SelectFeatures",
                                                                              "PairwiseDots",
                                                                              "ExpertDispatch",
                                                                              "ExpertLinear",
                                                                              "ExpertCombine",
                                                                              "Concat",
                                                                              "ScaleBy",
                                                                              "SigmoidCrossEntropy",
                                                                              "MeanSquaredError",
                                                                              "ExtraInput",
                                                                              "Conv3d",
                                                                              "TransposedConv",
                                                                              "GroupNorm",
                                                                              "Upsample",
                                                                              "RoiAlign",
                                                                              "RegionTokens",
                                                                              "RegroupTokens",
                                                                              "PairSums",
                                                                              "ConcatToHeads",
                                                                              "Recurrence"};
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
            return check_sizes({{"width", n.width}, {"heads", n.heads}});
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
            if (auto e = check_sizes({{"head_width", r.head_width}, {"rotated", r.rotated, 0}}))
              return e;
            if (r.rotated > r.head_width || r.rotated % 2 != 0) {
              return ShapeError{
                  fmt::format("rotates {} of {} features of a head", r.rotated, r.head_width),
                  "an even number of them, 0 for all"};
            }
            if (r.head_width % 2 == 0 && r.theta > 0) return std::nullopt;
            return ShapeError{fmt::format("head_width is {} and theta {}", r.head_width, r.theta),
                              "head_width must be even, theta positive"};
          },
          [](const Attention& a) { return check_attention(a); },
          [](const SinusoidalPositions& p) {
            return check_sizes({{"width", p.width}});
          },
          [](const ClassToken& c) {
            return check_sizes({{"width", c.width}});
          },
          [](const EmbeddingBag& e) {
            return check_sizes({{"rows", e.rows}, {"width", e.width}, {"ids", e.ids}});
          },
          [](const SelectFeatures& s) {
            return check_sizes({{"first", s.first, 0}, {"count", s.count}});
          },
          [](const PairwiseDots& p) {
            return check_sizes({{"vectors", p.vectors, 2}, {"width", p.width}});
          },
          [](const ExpertDispatch& e) { return check_experts(e.experts, e.top_k); },
          [](const ExpertCombine& e) { return check_experts(e.experts, e.top_k); },
          [](const ExpertLinear& e) {
            auto bad = check_experts(e.experts, e.top_k);
            return bad ? bad : check_sizes({{"in", e.in}, {"out", e.out}});
          },
          [](const ScaleBy& x) -> Checked {
            if (std::isfinite(x.factor)) return std::nullopt;
            return ShapeError{fmt::format("the factor is {}", x.factor), {}};
          },
          [](const SelectTokens& s) {
            return check_sizes({{"count", s.count}});
          },
          [](const ExtraInput& x) {
            return check_sizes({{"rows", x.rows}, {"width", x.width, 0}});
          },
          [](const Conv3d& c) {
            return check_sizes({{"in", c.in},
                                {"out", c.out},
                                {"kernel", c.kernel},
                                {"stride", c.stride},
                                {"padding", c.padding, 0}});
          },
          [](const TransposedConv& c) -> Checked {
            if (auto e = check_sizes(
                    {{"in", c.in}, {"out", c.out}, {"kernel", c.kernel}, {"stride", c.stride}}))
              return e;
            if (c.dimensions == 2 || c.dimensions == 3) return std::nullopt;
            return ShapeError{fmt::format("has {} dimensions", c.dimensions), "it is 2 or 3"};
          },
          [](const GroupNorm& n) -> Checked {
            if (auto e = check_sizes({{"channels", n.channels}, {"groups", n.groups}})) return e;
            if (n.channels % n.groups == 0) return std::nullopt;
            return ShapeError{
                fmt::format("{} groups do not divide {} channels", n.groups, n.channels), {}};
          },
          [](const Upsample& u) {
            return check_sizes({{"factor", u.factor}});
          },
          [](const RoiAlign& r) {
            return check_sizes({{"regions", r.regions}, {"size", r.size}});
          },
          [](const RegionTokens& r) {
            return check_sizes({{"regions", r.regions}});
          },
          [](const RegroupTokens& r) {
            return check_sizes({{"join", r.join}, {"split", r.split}});
          },
          [](const ConcatToHeads& c) {
            return check_sizes({{"heads", c.heads}});
          },
          [](const Recurrence& r) -> Checked {
            if (auto e = check_sizes({{"hidden", r.hidden}})) return e;
            if (r.gates == 1 || r.gates == 3 || r.gates == 4) return std::nullopt;
            return ShapeError{fmt::format("has {} gates", r.gates),
                              "4: LSTM, 3: GRU, 1: a plain recurrent layer"};
          },
          [](const SoftmaxCrossEntropy& s) {
            return check_sizes({{"classes", s.classes}});
          },
          [](const auto&) -> Checked { return std::nullopt; }},
      op);
}

}  // namespace reckon
