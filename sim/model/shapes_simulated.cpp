#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/model/shapes.h"

// Shapes of the layers that are simulated and not trained here.
namespace reckon {
namespace {

using Result = tl::expected<Shape, ShapeError>;
using Inputs = std::span<const Shape* const>;

tl::unexpected<ShapeError> wrong_shape(std::string what, std::string hint = {}) {
  return tl::unexpected<ShapeError>(ShapeError{std::move(what), std::move(hint)});
}

Result not_taken(std::string_view taken, const Shape& in) {
  return wrong_shape(fmt::format("takes {}, its input is {}", taken, to_text(in)));
}

Result channels_wrong(std::int64_t channels, const Shape& in) {
  return wrong_shape(
      fmt::format("is built for {} channels, its input is {}", channels, to_text(in)));
}

Result shape_of(const ExtraInput& x, Inputs) {
  return x.width == 0 ? Shape{x.rows} : Shape{x.rows, x.width};
}

Result shape_of(const Conv3d& c, Inputs in) {
  if (in[0]->size() != 4) return not_taken("a volume (C, D, H, W)", *in[0]);
  if (in[0]->front() != c.in) return channels_wrong(c.in, *in[0]);
  Shape out{c.out};
  for (const std::int64_t n : std::span(*in[0]).subspan(1)) {
    const std::int64_t steps = n + 2 * c.padding - c.kernel;
    if (steps < 0) {
      return wrong_shape(fmt::format("a kernel of {} does not fit into {} with padding {}",
                                     c.kernel, to_text(*in[0]), c.padding));
    }
    out.push_back(steps / c.stride + 1);
  }
  return out;
}

Result shape_of(const TransposedConv& c, Inputs in) {
  if (static_cast<std::int64_t>(in[0]->size()) != c.dimensions + 1)
    return not_taken(c.dimensions == 2 ? "an image (C, H, W)" : "a volume (C, D, H, W)", *in[0]);
  if (in[0]->front() != c.in) return channels_wrong(c.in, *in[0]);
  Shape out{c.out};
  for (const std::int64_t n : std::span(*in[0]).subspan(1))
    out.push_back((n - 1) * c.stride + c.kernel);
  return out;
}

Result shape_of(const GroupNorm& n, Inputs in) {
  if (in[0]->front() != n.channels) return channels_wrong(n.channels, *in[0]);
  return *in[0];
}

Result shape_of(const Upsample& u, Inputs in) {
  if (in[0]->size() != 3) return not_taken("an image (C, H, W)", *in[0]);
  return Shape{in[0]->front(), (*in[0])[1] * u.factor, (*in[0])[2] * u.factor};
}

Result shape_of(const RoiAlign& r, Inputs in) {
  for (const Shape* map : in) {
    if (map->size() != 3) return not_taken("feature maps (C, H, W)", *map);
    if (map->front() != in[0]->front()) return channels_wrong(in[0]->front(), *map);
  }
  return Shape{in[0]->front(), r.regions * r.size, r.size};
}

Result shape_of(const RegionTokens& r, Inputs in) {
  const Shape& s = *in[0];
  if (s.size() != 3 || s[1] != r.regions * s[2])
    return not_taken(fmt::format("{} regions (C, {} S, S)", r.regions, r.regions), s);
  return Shape{r.regions, s[0] * s[2] * s[2]};
}

Result shape_of(const RegroupTokens& r, Inputs in) {
  const Shape& s = *in[0];
  if (s.size() != 2) return not_taken("tokens (T, D)", s);
  if (s[1] * r.join % r.split != 0) {
    return wrong_shape(
        fmt::format("cannot split {} features into {} tokens", s[1] * r.join, r.split));
  }
  return Shape{(s[0] + r.join - 1) / r.join * r.split, s[1] * r.join / r.split};
}

Result shape_of(const PairSums&, Inputs in) {
  const Shape &a = *in[0], &b = *in[1];
  if (a.size() != 2 || b.size() != 2 || a[1] != b[1]) {
    return wrong_shape(
        fmt::format("takes (T, D) and (U, D), its inputs are {} and {}", to_text(a), to_text(b)));
  }
  return Shape{a[0] * b[0], a[1]};
}

Result shape_of(const ConcatToHeads& c, Inputs in) {
  const Shape &own = *in[0], &shared = *in[1];
  if (own.size() != 2 || shared.size() != 2 || own[0] != shared[0] || own[1] % c.heads != 0) {
    return wrong_shape(fmt::format("takes (T, {} w) and (T, D), its inputs are {} and {}", c.heads,
                                   to_text(own), to_text(shared)));
  }
  return Shape{own[0], own[1] + c.heads * shared[1]};
}

Result shape_of(const Recurrence& r, Inputs in) {
  const Shape& s = *in[0];
  if (s.size() != 2 || s[1] != r.gates * r.hidden) {
    return not_taken(fmt::format("the gates of each step (T, {})", r.gates * r.hidden), s);
  }
  return Shape{s[0], r.hidden};
}

}  // namespace

Result simulated_shape(const LayerOp& op, Inputs inputs) {
  return std::visit(
      [&](const auto& layer) -> Result {
        if constexpr (requires { shape_of(layer, inputs); }) {
          return shape_of(layer, inputs);
        } else {
          RECKON_CHECK(only_simulated(op));
          return Shape{};
        }
      },
      op);
}

}  // namespace reckon
