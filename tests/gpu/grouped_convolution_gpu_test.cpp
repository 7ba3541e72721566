#include "kernels/window/grouped_convolution.h"

#include "gpu/device.h"

using namespace reckon;

namespace {

gpu::GroupedShape grouped_shape() {
  return GENERATE(
      gpu::GroupedShape{{2, 6, 7, 5, 3, 3, 1, 1, 1}, 6, 6},     // depthwise
      gpu::GroupedShape{{1, 40, 6, 6, 5, 5, 2, 2, 2}, 40, 40},  // more channels than a block's
      gpu::GroupedShape{{3, 4, 5, 9, 3, 3, 2, 1, 0}, 6, 2},     // more filters than channels
      gpu::GroupedShape{{1, 8, 4, 4, 1, 1, 1, 0, 0}, 4, 4},     // 1 x 1
      gpu::GroupedShape{{2, 6, 5, 4, 3, 2, 1, 2, 2}, 9, 3});    // windows that lie outside
}

std::size_t size_of_weights(const gpu::GroupedShape& s) {
  return static_cast<std::size_t>(s.out * s.group_in() * s.points());
}

/// body(x's element, weight's element, y's element), for every product of the definition.
template <class Body>
void for_products(const gpu::GroupedShape& s, Body body) {
  const gpu::WindowShape& w = s.window;
  for (std::int64_t b = 0; b < w.batch; ++b)
    for (std::int64_t i = 0; i < w.out_height(); ++i)
      for (std::int64_t j = 0; j < w.out_width(); ++j)
        for (std::int64_t o = 0; o < s.out; ++o)
          for (std::int64_t c = 0; c < s.group_in(); ++c)
            for (std::int64_t u = 0; u < w.kernel_h; ++u)
              for (std::int64_t v = 0; v < w.kernel_w; ++v) {
                const std::int64_t h = i * w.stride + u - w.padding_h;
                const std::int64_t k = j * w.stride + v - w.padding_w;
                if (h < 0 || h >= w.height || k < 0 || k >= w.width) continue;
                const std::int64_t channel = o / s.group_out() * s.group_in() + c;
                body(std::size_t(((b * w.height + h) * w.width + k) * w.channels + channel),
                     std::size_t((o * s.group_in() + c) * s.points() + u * w.kernel_w + v),
                     std::size_t(((b * w.out_height() + i) * w.out_width() + j) * s.out + o));
              }
}

/// A sum, and that of its products' sizes, which bounds its rounding.
struct Sums {
  std::vector<double> sum, size;
  explicit Sums(std::size_t n) : sum(n), size(n) {}
  void add(std::size_t at, double product) {
    sum[at] += product;
    size[at] += std::abs(product);
  }
};

void check_sums(const std::vector<double>& got, const Sums& expected, double result_roundoff) {
  constexpr double kTerms = 4096;  // more than any sum here has
  REQUIRE(got.size() == expected.sum.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(i);
    REQUIRE(std::abs(got[i] - expected.sum[i]) <= 2 * result_roundoff * std::abs(expected.sum[i]) +
                                                      kTerms * kSumRoundoff * expected.size[i] +
                                                      1e-12);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("grouped convolutions and their gradients are their definition", "", float, Bf16,
                   Half) {
  require_device();
  using E = TestType;
  const gpu::GroupedShape s = grouped_shape();
  const auto in =
      std::size_t(s.window.batch * s.window.height * s.window.width * s.window.channels);
  const auto out =
      std::size_t(s.window.batch * s.window.out_height() * s.window.out_width() * s.out);
  const Draw<E> x(in, 1), weight(size_of_weights(s), 2), bias(std::size_t(s.out), 3), dy(out, 4);
  Sums y(out), dx(in), dw(weight.values.size());
  for (std::size_t i = 0; i < out; ++i) y.add(i, bias.values[i % std::size_t(s.out)]);
  for_products(s, [&](std::size_t a, std::size_t w, std::size_t b) {
    y.add(b, x.values[a] * weight.values[w]);
    dx.add(a, dy.values[b] * weight.values[w]);
    dw.add(w, dy.values[b] * x.values[a]);
  });

  const DeviceArray d_x(x.elements), d_w(weight.elements), d_bias(bias.elements), d_dy(dy.elements);
  const DeviceArray<E> d_y(out), d_dx(in);
  finish(gpu::grouped_convolution_forward(s, d_x.data, d_w.data, d_bias.data, d_y.data, nullptr));
  check_sums(d_y.values(), y, kRoundoff<E>);
  finish(
      gpu::grouped_convolution_input_gradient(s, d_dy.data, d_w.data, d_dx.data, false, nullptr));
  check_sums(d_dx.values(), dx, kRoundoff<E>);

  const DeviceArray<float> scratch(std::size_t(gpu::grouped_convolution_scratch(s)));
  const DeviceArray gradient(std::vector<float>(dw.sum.size(), 0.5f));  // added to
  finish(gpu::grouped_convolution_weight_gradient(s, d_x.data, d_dy.data, gradient.data,
                                                  scratch.data, nullptr));
  for (double& sum : dw.sum) sum += 0.5;
  check_sums(gradient.values(), dw, kRoundoff<float>);
}

TEST_CASE("a grouped convolution adds to an input gradient that is there, and needs no bias") {
  require_device();
  const gpu::GroupedShape s{{1, 2, 3, 3, 3, 3, 1, 1, 1}, 2, 2};
  const Draw<float> x(18, 1), weight(18, 2), dy(18, 3);
  const DeviceArray d_x(x.elements), d_w(weight.elements), d_dy(dy.elements);
  const DeviceArray<float> y(18), once(18);
  finish(gpu::grouped_convolution_forward<float>(s, d_x.data, d_w.data, nullptr, y.data, nullptr));
  CHECK(std::isfinite(y.values()[0]));
  finish(
      gpu::grouped_convolution_input_gradient(s, d_dy.data, d_w.data, once.data, false, nullptr));
  const DeviceArray twice(once.host(18));
  finish(
      gpu::grouped_convolution_input_gradient(s, d_dy.data, d_w.data, twice.data, true, nullptr));
  for (std::size_t i = 0; i < 18; ++i)
    CHECK(twice.values()[i] == Approx(2 * once.values()[i]).margin(1e-6));
}
