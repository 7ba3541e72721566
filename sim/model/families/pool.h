#pragma once
#include "sim/model/families/convolution.h"

// Windows over images without weights: pooling, sampling of regions, upsampling.
namespace reckon::family {

// An element of the output: four points a bin, each between four of the map.
constexpr double kRoiReads = 4 * 4;
constexpr double kRoiFlops = 2 * kRoiReads;  // a multiply and an add each

/// Forward: kernel^2 n. Maxima keep the index of each, 8 bytes.
template <>
struct Rules<Pool2d> : OneInput, NoWeights, SavesInputs, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "Pool2d";
  static LayerOp read(A& a) {
    const PoolKind kind = a.main_word<PoolKind>();
    const std::int64_t kernel = a.number("kernel", 2);
    return Pool2d{kind, kernel, a.number("stride", kernel), a.number("padding", 0)};
  }
  static constexpr Kind kind{{"pool2d", "{pool2d: max, kernel: 3, stride: 2, padding: 1}"}, read};

  static Checked check(const Pool2d& p) {
    if (auto e =
            check_sizes({{"kernel", p.kernel}, {"stride", p.stride}, {"padding", p.padding, 0}}))
      return e;
    // torch.nn.MaxPool2d has the same rule: else a window could lie in the padding alone.
    if (2 * p.padding <= p.kernel) return std::nullopt;
    return ShapeError{fmt::format("padding {} is more than half of kernel {}", p.padding, p.kernel),
                      {}};
  }
  static Result shape(const Pool2d& p, Inputs in, const Shape&) {
    if (in[0]->size() != 3) return image_expected(*in[0]);
    return windowed(*in[0], in[0]->front(), {p.kernel, p.kernel, p.stride, p.padding, p.padding});
  }
  static LayerCount count(const Pool2d& p, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, d(p.kernel) * d(p.kernel));
    if (p.kind == PoolKind::max) c.saved_fixed = kIndex * size(out);
    return c;
  }
};

/// Forward: elements of the input.
template <>
struct Rules<GlobalAveragePool>
    : OneInput, NoAttributes, NoWeights, SavesNothing, NeedsAllFeatures, Trained {
  static constexpr std::string_view name = "GlobalAveragePool";
  static constexpr Kind kind{{"global_average_pool", "{global_average_pool: true}"},
                             plain<GlobalAveragePool>};

  static Result shape(const GlobalAveragePool&, Inputs in, const Shape&) {
    if (in[0]->size() != 3) return image_expected(*in[0]);
    return Shape{in[0]->front()};
  }
  static LayerCount count(const GlobalAveragePool&, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, 0);
    c.forward = c.backward = Flops{c.elements_in};
    return c;
  }
};

/// Forward: 32 n, four points a bin, each interpolated between four of the map.
template <>
struct Rules<RoiAlign> : NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "RoiAlign";
  static LayerOp read(A& a) { return RoiAlign{a.main_number(), a.number("size", 7)}; }
  static constexpr Kind kind{{"roi_align", "{roi_align: 512, size: 7, from: \"p2, p3\"}"}, read};
  static constexpr Arity arity{1, kManyInputs, "the feature maps of an image"};

  static Checked check(const RoiAlign& r) {
    return check_sizes({{"regions", r.regions}, {"size", r.size}});
  }
  static Result shape(const RoiAlign& r, Inputs in, const Shape&) {
    for (const Shape* map : in) {
      if (map->size() != 3) return not_taken("feature maps (C, H, W)", *map);
      if (map->front() != in[0]->front()) return channels_wrong(in[0]->front(), *map);
    }
    return Shape{in[0]->front(), r.regions * r.size, r.size};
  }
  static LayerCount count(const RoiAlign&, Inputs, const Shape& out, Where) {
    LayerCount c = element_wise({}, out, kRoiFlops);
    c.elements_in = kRoiReads * size(out);
    return c;
  }
};

/// Forward: nothing; backward: n additions.
template <>
struct Rules<Upsample> : OneInput, NoWeights, SavesNothing, NeedsAllFeatures, OnlySimulated {
  static constexpr std::string_view name = "Upsample";
  static LayerOp read(A& a) { return Upsample{a.main_number()}; }
  static constexpr Kind kind{{"upsample", "{upsample: 2}"}, read};

  static Checked check(const Upsample& u) { return check_sizes({{"factor", u.factor}}); }
  static Result shape(const Upsample& u, Inputs in, const Shape&) {
    if (in[0]->size() != 3) return image_expected(*in[0]);
    return Shape{in[0]->front(), (*in[0])[1] * u.factor, (*in[0])[2] * u.factor};
  }
  static LayerCount count(const Upsample&, Inputs in, const Shape& out, Where) {
    LayerCount c = element_wise(in, out, 0);
    c.backward = Flops{size(out)};
    return c;
  }
};

}  // namespace reckon::family
