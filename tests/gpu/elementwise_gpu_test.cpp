#include "kernels/elementwise.h"

#include <functional>

#include "gpu/device.h"
#include "kernels/optimizer/gradient_norm.h"
#include "kernels/reference/layers.h"

using namespace reckon;

namespace {

double curve_of(gpu::Curve curve, double x) {
  switch (curve) {
    case gpu::Curve::relu:
      return std::max(x, 0.0);
    case gpu::Curve::gelu:
      return reference::gelu(x);
    case gpu::Curve::silu:
      return reference::silu(x);
    case gpu::Curve::tanh:
      return std::tanh(x);
    case gpu::Curve::sigmoid:
      break;
  }
  return 1 / (1 + std::exp(-x));
}

template <class E>
std::vector<double> map2(const Draw<E>& a, const Draw<E>& b,
                         const std::function<double(double, double)>& f) {
  std::vector<double> out;
  for (std::size_t i = 0; i < a.values.size(); ++i) out.push_back(f(a.values[i], b.values[i]));
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("activations and their slopes agree with the reference at every tail", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const std::size_t n = GENERATE(1u, 7u, 8u, 31u, 33u, 2051u);
  const std::size_t skew = GENERATE(0u, 1u);
  const auto curve = GENERATE(gpu::Curve::relu, gpu::Curve::gelu, gpu::Curve::silu,
                              gpu::Curve::tanh, gpu::Curve::sigmoid);
  const Draw<E> x(n, 1), dy(n, 2);
  const DeviceArray d_x(x.elements, skew), d_dy(dy.elements, skew);
  const DeviceArray<E> y(n);
  const auto count = static_cast<std::int64_t>(n);
  finish(gpu::activation_forward(curve, d_x.data, y.data, count, nullptr));
  // One rounding of E; the device's exp and tanh are good to a few 2^-24, times |x| <= 1.
  const auto bound = [](double e) { return kRoundoff<E> * std::abs(e) + 16 * kSumRoundoff; };
  check_near(y.values(), map2(x, x, [&](double a, double) { return curve_of(curve, a); }), bound);

  const bool of_input = curve == gpu::Curve::gelu || curve == gpu::Curve::silu;
  const DeviceArray dx(dy.elements);
  finish(gpu::activation_backward(curve, of_input ? d_x.data : y.data, d_dy.data, dx.data, true,
                                  count, nullptr));
  const double h = 1e-5;  // central differences: error h^2 = 1e-10
  const auto slope = [&](double a, double g) {
    if (curve == gpu::Curve::relu) return a > 0 ? 2 * g : g;
    return g + g * (curve_of(curve, a + h) - curve_of(curve, a - h)) / (2 * h);
  };
  // The kept output is rounded to E: slopes in y change by at most 2 |y| times that.
  check_near(dx.values(), map2(x, dy, slope),
             [](double e) { return kRoundoff<E> * (std::abs(e) + 2) + 64 * kSumRoundoff; });
}

TEMPLATE_TEST_CASE("sums, products, multiples and roundings are those of one rounding", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const std::size_t n = GENERATE(1u, 9u, 1030u);
  const auto count = static_cast<std::int64_t>(n);
  const Draw<E> a(n, 1), b(n, 2);
  const DeviceArray d_a(a.elements), d_b(b.elements);
  const DeviceArray<E> out(n);
  const auto rounded = [](double x) { return double{to_float(from_float<E>(float(x)))}; };
  finish(gpu::add(d_a.data, d_b.data, out.data, count, nullptr));
  CHECK(out.values() ==
        map2(a, b, [&](double x, double y) { return rounded(float(x) + float(y)); }));
  finish(gpu::multiply(d_a.data, d_b.data, out.data, false, count, nullptr));
  CHECK(out.values() ==
        map2(a, b, [&](double x, double y) { return rounded(float(x) * float(y)); }));
  finish(gpu::scale(d_a.data, 0.5f, out.data, false, count, nullptr));
  CHECK(out.values() == map2(a, b, [&](double x, double) { return rounded(x / 2); }));
  const Draw<float> exact(n, 3);
  const DeviceArray d_exact(exact.elements);
  finish(gpu::round_to(d_exact.data, out.data, count, nullptr));
  CHECK(out.values() == map2(exact, exact, [&](double x, double) { return rounded(x); }));
}

TEMPLATE_TEST_CASE("images are turned to channels last", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t batch = 2, channels = GENERATE(1, 3, 33), points = GENERATE(1, 35, 64);
  const auto n = static_cast<std::size_t>(batch * channels * points);
  const Draw<E> x(n, 1);
  const DeviceArray d_x(x.elements);
  const DeviceArray<E> y(n);
  finish(gpu::channels_last(d_x.data, y.data, batch, channels, points, false, nullptr));
  const std::vector<double> turned = y.values();
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t p = 0; p < points; ++p)
        REQUIRE(turned[std::size_t((b * points + p) * channels + c)] ==
                x.values[std::size_t((b * channels + c) * points + p)]);
}

TEMPLATE_TEST_CASE("a bias's gradient is the sum of each column", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t rows = GENERATE(1, 9, 1000), columns = GENERATE(1, 33, 64);
  const Draw<E> x(static_cast<std::size_t>(rows * columns), 1);
  const DeviceArray d_x(x.elements);
  const DeviceArray sums(std::vector<float>(static_cast<std::size_t>(columns), 1.0f));
  const DeviceArray<float> scratch(
      static_cast<std::size_t>(gpu::bias_gradient_scratch(rows, columns)));
  finish(gpu::bias_gradient(d_x.data, rows, columns, sums.data, scratch.data, nullptr));
  std::vector<double> expected(static_cast<std::size_t>(columns), 1.0);
  for (std::size_t i = 0; i < x.values.size(); ++i) expected[i % expected.size()] += x.values[i];
  // `rows` additions of numbers below 1, each with an error of the sum's size.
  check_near(sums.values(), expected, [&](double) {
    return kSumRoundoff * static_cast<double>((rows + 8) * (rows + 8)) / 8;
  });
}

TEST_CASE("the squared norm of gradients is that of the reference, and shows a NaN") {
  require_device();
  const std::size_t n = GENERATE(1u, 255u, 257u, 300'001u);
  Draw<float> x(n, 1);
  double expected = 0;
  for (const double v : x.values) expected += v * v;
  const DeviceArray<double> scratch(gpu::kNormScratch), sum(1);
  const DeviceArray d_x(x.elements);
  const auto count = static_cast<std::int64_t>(n);
  finish(gpu::squared_norm(d_x.data, count, scratch.data, sum.data, nullptr));
  CHECK(sum.values()[0] == Approx(expected).epsilon(1e-12));
  x.elements[n / 2] = NAN;
  const DeviceArray broken(x.elements);
  finish(gpu::squared_norm(broken.data, count, scratch.data, sum.data, nullptr));
  CHECK(std::isnan(sum.values()[0]));
}
