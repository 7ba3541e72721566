#include "sim/model/shapes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace reckon {
namespace {

using Result = tl::expected<Shape, ShapeError>;
using Inputs = std::span<const Shape* const>;

tl::unexpected<ShapeError> error(std::string what, std::string hint = {}) {
  return tl::unexpected<ShapeError>(ShapeError{std::move(what), std::move(hint)});
}

Result same_if_last_is(const Shape& in, std::int64_t width, std::string_view what) {
  if (!in.empty() && in.back() == width) return in;
  return error(fmt::format("is built for {} {}, its input is {}", width, what, to_text(in)));
}

struct Window {
  std::int64_t kernel_h, kernel_w, stride, padding_h, padding_w;
};
Result windowed(const Shape& in, std::int64_t channels, const Window& x) {
  const std::int64_t h = in[1] + 2 * x.padding_h - x.kernel_h;
  const std::int64_t w = in[2] + 2 * x.padding_w - x.kernel_w;
  if (h < 0 || w < 0) {
    return error(fmt::format("a kernel of {}x{} does not fit into {} with padding {}", x.kernel_h,
                             x.kernel_w, to_text(in), h < 0 ? x.padding_h : x.padding_w));
  }
  return Shape{channels, h / x.stride + 1, w / x.stride + 1};
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
  return windowed(*in[0], c.out, {c.kernel_h, c.kernel_w, c.stride, c.padding, c.columns_padded()});
}

Result shape_of(const BatchNorm& n, Inputs in) {
  if (in[0]->front() == n.channels) return *in[0];
  return error(
      fmt::format("is built for {} channels, its input is {}", n.channels, to_text(*in[0])));
}

Result shape_of(const Pool2d& p, Inputs in) {
  if (in[0]->size() != 3) return image_expected(*in[0]);
  return windowed(*in[0], in[0]->front(), {p.kernel, p.kernel, p.stride, p.padding, p.padding});
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
  const std::int64_t values = a.kv_heads * a.values();
  const std::int64_t tokens = in[0]->front();
  const bool fused = in.size() == 1;
  const std::array<std::string_view, 4> names{fused ? "q, k and v" : "q", "k", "v", "distances"};
  const std::array<std::int64_t, 4> widths{fused ? q + kv + values : q, kv, values, kv};
  const std::int64_t seen = fused || a.causal ? tokens : in[1]->front();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Shape wanted{i == 0 ? tokens : seen, widths[i]};
    if (*in[i] != wanted) {
      return error(fmt::format("takes {} of {}, its input is {}", names[i], to_text(wanted),
                               to_text(*in[i])));
    }
  }
  return Shape{tokens, a.heads * a.values()};
}

Result shape_of(const SelectTokens& s, Inputs in) {
  if (in[0]->size() != 2)
    return error(fmt::format("takes tokens (T, D), its input is {}", to_text(*in[0])));
  if (s.count > in[0]->front()) {
    return error(fmt::format("selects {} tokens, its input is {}", s.count, to_text(*in[0])));
  }
  return Shape{s.count, in[0]->back()};
}

Result tokens_expected(const Shape& in) {
  return error(fmt::format("takes tokens (T, D), its input is {}", to_text(in)));
}

Result shape_of(const SinusoidalPositions& p, Inputs in) {
  if (in[0]->size() != 2) return tokens_expected(*in[0]);
  return same_if_last_is(*in[0], p.width, "features");
}

Result shape_of(const ClassToken& c, Inputs in) {
  if (in[0]->size() != 2) return tokens_expected(*in[0]);
  Result result = same_if_last_is(*in[0], c.width, "features");
  if (result) result->front() += 1;
  return result;
}

/// The side of the square image that (T, C) is.
std::optional<std::int64_t> square_side(const Shape& tokens) {
  if (tokens.size() != 2) return std::nullopt;
  const auto side = std::llround(std::sqrt(static_cast<double>(tokens[0])));
  if (side * side != tokens[0]) return std::nullopt;
  return side;
}

Result shape_of(const ImageTokens&, Inputs in) {
  if (const auto side = square_side(*in[0])) return Shape{in[0]->back(), *side, *side};
  if (in[0]->size() != 3) return image_expected(*in[0]);
  return Shape{(*in[0])[1] * (*in[0])[2], in[0]->front()};
}

Result shape_of(const EmbeddingBag& e, Inputs in) {
  if (*in[0] == Shape{e.ids}) return Shape{e.width};
  return error(fmt::format("takes {} ids, its input is {}", e.ids, to_text(*in[0])));
}

Result shape_of(const SelectFeatures& s, Inputs in) {
  if (in[0]->size() != 1)
    return error(fmt::format("takes a record (n), its input is {}", to_text(*in[0])));
  if (s.first + s.count > in[0]->front()) {
    return error(fmt::format("selects the fields {}..{} of {}", s.first, s.first + s.count - 1,
                             in[0]->front()),
                 "fields count from 0");
  }
  return Shape{s.count};
}

Result shape_of(const PairwiseDots& p, Inputs in) {
  if (static_cast<std::int64_t>(in.size()) != p.vectors)
    return error(fmt::format("is built for {} vectors, it has {}", p.vectors, in.size()));
  for (const Shape* shape : in) {
    if (*shape != Shape{p.width}) {
      return error(fmt::format("takes vectors of ({}), its input is {}", p.width, to_text(*shape)));
    }
  }
  return Shape{p.vectors * (p.vectors - 1) / 2};
}

/// The scores (T, experts) behind the first input; T.
tl::expected<std::int64_t, ShapeError> scored_tokens(std::int64_t experts, Inputs in) {
  if (in[0]->size() == 2 && in[1]->size() == 2 && in[1]->back() == experts) return in[1]->front();
  return error(fmt::format("takes (rows, D) and scores (T, {}), its inputs are {} and {}", experts,
                           to_text(*in[0]), to_text(*in[1])));
}

tl::expected<std::int64_t, ShapeError> routed_tokens(std::int64_t experts, std::int64_t top_k,
                                                     Inputs in) {
  auto tokens = scored_tokens(experts, in);
  if (tokens && in[0]->front() != *tokens * top_k) {
    return error(fmt::format("takes {} rows for each of {} tokens, its input is {}", top_k, *tokens,
                             to_text(*in[0])),
                 "an ExpertDispatch makes them");
  }
  return tokens;
}

Result shape_of(const ExpertDispatch& e, Inputs in) {
  const auto tokens = scored_tokens(e.experts, in);
  if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
  if (in[0]->front() != *tokens)
    return error(fmt::format("takes {} tokens, its input is {}", *tokens, to_text(*in[0])));
  return Shape{*tokens * e.top_k, in[0]->back()};
}

Result shape_of(const ExpertLinear& e, Inputs in) {
  const auto tokens = routed_tokens(e.experts, e.top_k, in);
  if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
  Result result = same_if_last_is(*in[0], e.in, "input features");
  if (result) result->back() = e.out;
  return result;
}

Result shape_of(const ExpertCombine& e, Inputs in) {
  const auto tokens = routed_tokens(e.experts, e.top_k, in);
  if (!tokens) return tl::unexpected<ShapeError>(tokens.error());
  return Shape{*tokens, in[0]->back()};
}

/// All dimensions agree but one: the first of images and volumes, the last of all others.
Result shape_of(const Concat&, Inputs in) {
  Result result = *in[0];
  const std::size_t axis = in[0]->size() >= 3 ? 0 : in[0]->size() - 1;
  for (const Shape* shape : in.subspan(1)) {
    Shape other = *shape;
    const bool same_rank = other.size() == result->size();
    if (same_rank) other[axis] = (*in[0])[axis];
    if (other != *in[0]) {
      return error(fmt::format("cannot put {} beside {}", to_text(*shape), to_text(*in[0])),
                   "images share height and width, sequences their tokens");
    }
    (*result)[axis] += (*shape)[axis];
  }
  return result;
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

Result shape_of(const Multiply&, Inputs in) {
  const Shape &a = *in[0], &b = *in[1];
  const bool a_channel = a.size() == 3 && b == Shape{a[0]};
  const bool a_token = a.size() == 2 && b == Shape{a[0], 1};
  if (a_channel || a_token) return a;
  return all_equal(in);
}

Result loss_of(Inputs in) {
  if (in[0]->size() <= 2) return Shape{1};
  return error(fmt::format("takes (n) or (T, n), its input is {}", to_text(*in[0])));
}

struct Arity {
  std::size_t least, most;
  std::string_view text;
};

Arity arity(const LayerOp& op) {
  constexpr std::size_t kMany = 1024;
  const Arity routed{2, 2, "two inputs, the second the scores of the experts"};
  return std::visit(overloaded{[](const InputLayer&) {
                                 return Arity{0, 0, "no input"};
                               },
                               [](const Attention&) {
                                 return Arity{1, 4, "three inputs (q, k, v) or one of all"};
                               },
                               [](const Add&) {
                                 return Arity{2, kMany, "two inputs or more"};
                               },
                               [](const ExtraInput&) {
                                 return Arity{0, 0, "no input"};
                               },
                               [](const RoiAlign&) {
                                 return Arity{1, kMany, "the feature maps of an image"};
                               },
                               [](const PairSums&) {
                                 return Arity{2, 2, "two inputs"};
                               },
                               [](const ConcatToHeads&) {
                                 return Arity{2, 2, "two inputs, the second shared by the heads"};
                               },
                               [](const Concat&) {
                                 return Arity{2, kMany, "two inputs or more"};
                               },
                               [](const PairwiseDots&) {
                                 return Arity{2, kMany, "two inputs or more"};
                               },
                               [](const Multiply&) {
                                 return Arity{2, 2, "two inputs"};
                               },
                               [&](const ExpertDispatch&) { return routed; },
                               [&](const ExpertLinear&) { return routed; },
                               [&](const ExpertCombine&) { return routed; },
                               [](const auto&) {
                                 return Arity{1, 1, "one input"};
                               }},
                    op);
}

}  // namespace

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
          [&](const RmsNorm& n) {
            return same_if_last_is(*inputs[0], n.width * n.heads, "features");
          },
          [&](const Activation&) -> Result { return *inputs[0]; },
          [&](const Dropout&) -> Result { return *inputs[0]; },
          [&](const Flatten&) -> Result { return Shape{elements(*inputs[0])}; },
          [&](const Add&) -> Result {
            const Shape &a = *inputs[0], &b = *inputs[1];
            if (inputs.size() == 2 && a.size() == 3 && b == Shape{a[0]}) return a;
            return all_equal(inputs);
          },
          [&](const ScaleBy&) -> Result { return *inputs[0]; },
          [&](const SigmoidCrossEntropy&) { return loss_of(inputs); },
          [&](const MeanSquaredError&) { return loss_of(inputs); },
          [&](const auto& other) -> Result {
            if constexpr (requires { shape_of(other, inputs); }) {
              return shape_of(other, inputs);
            } else {
              return simulated_shape(op, inputs);
            }
          }},
      op);
}

}  // namespace reckon
