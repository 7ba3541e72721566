#include "kernels/window/convolution.h"

#include <cstring>

#include "gpu/device.h"

using namespace reckon;

namespace {

struct ConvolutionCase {
  gpu::ConvolutionShape s;
  std::size_t skew = 0;  // elements that images begin behind 16 bytes
};

ConvolutionCase convolution_case() {
  return GENERATE(
      ConvolutionCase{{{2, 3, 11, 9, 7, 7, 2, 3, 3}, 64}},   // the first one of a ResNet
      ConvolutionCase{{{1, 8, 9, 9, 3, 3, 1, 1, 1}, 8}},     // several taps a step
      ConvolutionCase{{{1, 8, 9, 9, 3, 3, 1, 1, 1}, 8}, 1},  // the same, aligned to nothing
      ConvolutionCase{{{2, 16, 9, 7, 3, 3, 2, 1, 1}, 72}},   // points of four kinds
      ConvolutionCase{{{1, 20, 9, 9, 3, 3, 1, 1, 1}, 130}},  // two tiles of filters
      ConvolutionCase{{{3, 64, 7, 5, 1, 1, 2, 0, 0}, 256}},  // most points have no window
      ConvolutionCase{{{1, 64, 7, 7, 3, 3, 1, 1, 1}, 64}},   // whole steps
      ConvolutionCase{{{1, 16, 9, 9, 3, 3, 1, 1, 1}, 256}},  // more columns than a tile
      ConvolutionCase{{{2, 8, 17, 9, 5, 3, 1, 2, 1}, 16}},   // more rows than a tile
      ConvolutionCase{{{1, 16, 9, 8, 5, 3, 2, 1, 2}, 20}},   // uneven
      ConvolutionCase{{{2, 4, 7, 6, 2, 2, 3, 0, 0}, 8}},     // points that no window reads
      ConvolutionCase{{{2, 6, 5, 4, 3, 2, 1, 2, 2}, 9}},     // windows that lie outside
      ConvolutionCase{{{2, 8, 24, 23, 3, 3, 1, 1, 1}, 8}});  // rows in two parts
}

std::size_t in_size(const gpu::ConvolutionShape& s) {
  const gpu::WindowShape& w = s.window;
  return static_cast<std::size_t>(w.batch * w.height * w.width * w.channels);
}
std::size_t rows_count(const gpu::ConvolutionShape& s) {
  return static_cast<std::size_t>(s.window.batch * s.window.out_height() * s.window.out_width());
}
std::size_t weights_count(const gpu::ConvolutionShape& s) {
  return static_cast<std::size_t>(s.out * s.points() * s.window.channels);
}

/// body(first element of x's channels, tap, first element of y's channels) for every tap of every
/// window that lies in the image.
template <class Body>
void for_taps(const gpu::WindowShape& w, std::int64_t out, Body body) {
  for (std::int64_t row = 0; row < w.batch * w.out_height() * w.out_width(); ++row)
    for (std::int64_t tap = 0; tap < w.kernel_h * w.kernel_w; ++tap) {
      const std::int64_t j = row % w.out_width(), i = row / w.out_width() % w.out_height();
      const std::int64_t h = i * w.stride - w.padding_h + tap / w.kernel_w;
      const std::int64_t v = j * w.stride - w.padding_w + tap % w.kernel_w;
      if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
      const std::int64_t n = row / w.out_width() / w.out_height();
      body(((n * w.height + h) * w.width + v) * w.channels, tap, row * out);
    }
}

/// A sum, and that of its products' sizes.
struct Totals {
  std::vector<double> sum, size;
  explicit Totals(std::size_t n) : sum(n), size(n) {}
  void add(std::int64_t at, double product) {
    sum[static_cast<std::size_t>(at)] += product;
    size[static_cast<std::size_t>(at)] += std::abs(product);
  }
};

/// A sum of n products in float is wrong by at most n - 1 roundings of what it has come to, so by
/// (n - 1) u times the sum of their sizes [Higham 2002, "Accuracy and Stability of Numerical
/// Algorithms", eq. 4.4]; products of 16-bit numbers are exact. Tensor cores cut off instead of
/// rounding, which is two roundings: 2 n u. What is stored is rounded once more, to `roundoff`.
void check_totals(const std::vector<double>& got, const Totals& expected, double terms,
                  double roundoff) {
  REQUIRE(got.size() == expected.sum.size());
  double worst = 0;
  std::size_t where = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double of_sum = 2 * terms * kSumRoundoff * expected.size[i];
    const double bound = of_sum + roundoff * (std::abs(expected.sum[i]) + of_sum) + 1e-12;
    const double share = std::abs(got[i] - expected.sum[i]) / bound;
    if (share <= worst) continue;  // a NaN is the worst
    worst = share;
    where = i;
    if (std::isnan(share)) break;
  }
  INFO("element " << where << ": " << got[where] << " for " << expected.sum[where]);
  CHECK(worst <= 1);
}

template <class E>
struct Operands {
  gpu::ConvolutionShape s;
  Draw<E> x, weight, bias, dy;
  DeviceArray<E> d_x, d_dy, d_bias, d_weight;
  explicit Operands(const ConvolutionCase& c, std::vector<E> changed = {})
      : s(c.s),
        x(in_size(s), 1),
        weight(weights_count(s), 2),
        bias(static_cast<std::size_t>(s.out), 3),
        dy(rows_count(s) * static_cast<std::size_t>(s.out), 4),
        d_x(x.elements, c.skew),
        d_dy(dy.elements, c.skew),
        d_bias(bias.elements, c.skew),
        d_weight(static_cast<std::size_t>(s.out * s.patch())) {
    const DeviceArray original(changed.empty() ? weight.elements : changed);
    finish(gpu::permute_weight(s.out, s.window.channels, s.points(), s.patch(), original.data,
                               d_weight.data, nullptr));
  }
  double w(std::int64_t o, std::int64_t c, std::int64_t tap) const {
    return weight.values[static_cast<std::size_t>((o * s.window.channels + c) * s.points() + tap)];
  }
};

double at(const std::vector<double>& values, std::int64_t i) {
  return values[static_cast<std::size_t>(i)];
}

}  // namespace

TEMPLATE_TEST_CASE("convolutions without patches are their definition", "", Bf16, Half) {
  require_device();
  using E = TestType;
  const ConvolutionCase c = convolution_case();
  const Operands<E> in(c);
  const gpu::ConvolutionShape& s = in.s;
  require_device_that(gpu::implicit_convolution_takes(s));
  const std::int64_t channels = s.window.channels;
  Totals y(in.dy.values.size());
  for (std::size_t i = 0; i < in.dy.values.size(); ++i)
    y.add(static_cast<std::int64_t>(i), in.bias.values[i % static_cast<std::size_t>(s.out)]);
  for_taps(s.window, s.out, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t o = 0; o < s.out; ++o)
      for (std::int64_t k = 0; k < channels; ++k)
        y.add(to + o, at(in.x.values, from + k) * in.w(o, k, tap));
  });
  const double terms = static_cast<double>(s.patch() + 1);
  const DeviceArray<E> d_y(std::vector<E>(in.dy.values.size(), E{0x7fff}), c.skew);
  finish(gpu::convolution_forward(s, in.d_x.data, in.d_weight.data, in.d_bias.data, d_y.data,
                                  nullptr));
  check_totals(d_y.values(), y, terms, kRoundoff<E>);

  const E* none = nullptr;
  finish(gpu::convolution_forward(s, in.d_x.data, in.d_weight.data, none, d_y.data, nullptr));
  for (std::size_t i = 0; i < in.dy.values.size(); ++i)
    y.add(static_cast<std::int64_t>(i), -in.bias.values[i % static_cast<std::size_t>(s.out)]);
  check_totals(d_y.values(), y, terms, kRoundoff<E>);
}

TEMPLATE_TEST_CASE("the input's gradient of a convolution without patches is its definition", "",
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const ConvolutionCase c = convolution_case();
  const bool accumulate = GENERATE(false, true);
  const Operands<E> in(c);
  const gpu::ConvolutionShape& s = in.s;
  require_device_that(gpu::implicit_convolution_takes(s));
  Totals dx(in.x.values.size());
  if (accumulate)
    for (std::size_t i = 0; i < dx.sum.size(); ++i)
      dx.add(static_cast<std::int64_t>(i), in.x.values[i]);
  for_taps(s.window, s.out, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t o = 0; o < s.out; ++o)
      for (std::int64_t k = 0; k < s.window.channels; ++k)
        dx.add(from + k, at(in.dy.values, to + o) * in.w(o, k, tap));
  });
  const DeviceArray<E> d_dx(
      accumulate ? in.x.elements : std::vector<E>(in.x.elements.size(), E{0x7fff}), c.skew);
  finish(gpu::convolution_input_gradient(s, in.d_dy.data, in.d_weight.data, d_dx.data, accumulate,
                                         nullptr));
  check_totals(d_dx.values(), dx, static_cast<double>(s.points() * s.out + 1), kRoundoff<E>);
}

TEMPLATE_TEST_CASE("the weights' gradient of a convolution without patches is its definition", "",
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const Operands<E> in(convolution_case());
  const gpu::ConvolutionShape& s = in.s;
  require_device_that(gpu::implicit_convolution_takes(s));
  const std::int64_t channels = s.window.channels;
  Totals dw(in.weight.values.size());
  for (std::size_t i = 0; i < dw.sum.size(); ++i) dw.add(static_cast<std::int64_t>(i), 0.5);
  for_taps(s.window, s.out, [&](std::int64_t from, std::int64_t tap, std::int64_t to) {
    for (std::int64_t o = 0; o < s.out; ++o)
      for (std::int64_t k = 0; k < channels; ++k)
        dw.add((o * channels + k) * s.points() + tap,
               at(in.dy.values, to + o) * at(in.x.values, from + k));
  });
  const DeviceArray<float> scratch(static_cast<std::size_t>(gpu::convolution_scratch(s)));
  const auto gradient = [&] {
    const DeviceArray added(std::vector<float>(dw.sum.size(), 0.5f));
    finish(gpu::convolution_weight_gradient(s, in.d_x.data, in.d_dy.data, added.data, scratch.data,
                                            nullptr));
    return added.host(dw.sum.size());
  };
  const std::vector<float> once = gradient(), again = gradient();
  CHECK(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)) == 0);
  check_totals({once.begin(), once.end()}, dw, static_cast<double>(rows_count(s) + 1),
               kRoundoff<float>);
}

TEMPLATE_TEST_CASE("a weight that is no number shows where its tap lies outside the image", "",
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const ConvolutionCase c{{{1, 8, 5, 5, 3, 3, 1, 1, 1}, 8}, GENERATE(std::size_t{0}, 1)};
  std::vector<E> weight = Draw<E>(weights_count(c.s), 2).elements;
  const auto first_of_filter_1 = static_cast<std::size_t>(c.s.window.channels * c.s.points());
  weight[first_of_filter_1] = from_float<E>(NAN);  // its tap is the corner
  const Operands<E> in(c, weight);
  require_device_that(gpu::implicit_convolution_takes(c.s));
  const DeviceArray<E> d_y(in.dy.values.size());
  finish(gpu::convolution_forward(c.s, in.d_x.data, in.d_weight.data, in.d_bias.data, d_y.data,
                                  nullptr));
  const std::vector<double> y = d_y.values();
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i % 8 == 1));
}

TEST_CASE("convolutions without patches leave what is too large for places of 32 bits") {
  require_device();
  gpu::ConvolutionShape s{{1, 64, 56, 56, 3, 3, 1, 1, 1}, 64};
  require_device_that(gpu::implicit_convolution_takes(s));
  s.window.batch = 8192;  // 1.6 G elements
  CHECK_FALSE(gpu::implicit_convolution_takes(s));
  s = {{1, 1, 64, 64, 33, 33, 1, 0, 0}, 1};  // 1,089 points
  CHECK_FALSE(gpu::implicit_convolution_takes(s));
}
