#include "kernels/window/pool.h"

#include "gpu/device.h"
#include "kernels/reference/layers.h"

using namespace reckon;

namespace {

gpu::WindowShape window_shape() {
  return GENERATE(
      gpu::WindowShape{2, 3, 7, 5, 3, 3, 2, 1, 1}, gpu::WindowShape{1, 8, 6, 6, 2, 2, 2},
      gpu::WindowShape{2, 16, 5, 9, 3, 1, 1, 1, 0}, gpu::WindowShape{3, 1, 4, 4, 1, 1, 2},
      gpu::WindowShape{1, 3, 11, 11, 7, 7, 2, 3, 3});
}
std::size_t in_count(const gpu::WindowShape& s) {
  return static_cast<std::size_t>(s.batch * s.height * s.width * s.channels);
}
std::size_t out_points(const gpu::WindowShape& s) {
  return static_cast<std::size_t>(s.batch * s.out_height() * s.out_width());
}
/// Channels last -> channels in front, and back.
std::vector<double> turned(const std::vector<double>& x, std::size_t batch, std::size_t inner) {
  std::vector<double> out(x.size());
  const std::size_t outer = x.size() / batch / inner;
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t o = 0; o < outer; ++o)
      for (std::size_t i = 0; i < inner; ++i)
        out[(b * inner + i) * outer + o] = x[(b * outer + o) * inner + i];
  return out;
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
/// Whole numbers up to 3: sums of them are exact, in bf16 too.
template <class E>
std::vector<E> small_numbers(std::size_t n, std::uint32_t seed) {
  std::vector<E> out;
  for (const double x : Draw<float>(n, seed).values)
    out.push_back(from_float<E>(static_cast<float>(std::floor(x * 3.5))));
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("pooling agrees with the reference, and its gradient is its transpose", "",
                   float, Bf16, Half) {
  require_device();
  using E = TestType;
  const gpu::WindowShape s = window_shape();
  if (s.kernel_h != s.kernel_w) return;  // pooling windows are square
  const std::size_t n = in_count(s), out = out_points(s) * std::size_t(s.channels);
  const DeviceArray x(small_numbers<E>(n, 1)), dy(small_numbers<E>(out, 2));
  const DeviceArray<E> y(out), dx(n);
  const DeviceArray<std::int32_t> points(out);
  reference::PoolShape plain{.batch = s.batch,
                             .channels = s.channels,
                             .height = s.height,
                             .width = s.width,
                             .kernel = s.kernel_h,
                             .stride = s.stride,
                             .padding = s.padding_h};
  const auto batch = static_cast<std::size_t>(s.batch);
  const std::vector<double> front = turned(x.values(), batch, std::size_t(s.channels));
  std::vector<double> expected(out);
  const auto check_forward = [&](double bound) {
    reference::pool<double>(plain, front, expected);
    check_near(y.values(), turned(expected, batch, out_points(s) / batch),
               [&](double e) { return bound * std::abs(e) + 1e-12; });
  };
  finish(gpu::max_pool_forward(s, x.data, y.data, points.data, nullptr));
  check_forward(0);
  finish(gpu::max_pool_backward(s, points.data, dy.data, dx.data, false, nullptr));
  // Each output's gradient goes to one input whose value it is: <dx, x> = <dy, y>, exactly.
  CHECK(dot(dx.values(), x.values()) == dot(dy.values(), y.values()));

  plain.largest = false;
  finish(gpu::average_pool_forward(s, x.data, y.data, nullptr));
  check_forward(2 * kRoundoff<E>);
  finish(gpu::average_pool_backward(s, dy.data, dx.data, false, nullptr));
  const double scale = dot(std::vector<double>(n, 3.0), std::vector<double>(n, 3.0));
  CHECK(dot(dx.values(), x.values()) ==
        Approx(dot(dy.values(), y.values())).margin(4 * kRoundoff<E> * scale));
}

TEMPLATE_TEST_CASE("patches times permuted weights are a convolution, gradients its transposes", "",
                   float, Bf16, Half) {
  require_device();
  using E = TestType;
  const gpu::WindowShape s = window_shape();
  const std::int64_t filters = 5, taps = s.kernel_h * s.kernel_w;
  const std::int64_t stride = GENERATE_COPY(taps * s.channels, taps * s.channels / 8 * 8 + 8);
  const std::size_t n = in_count(s), rows = out_points(s);
  const auto size = rows * static_cast<std::size_t>(stride);
  const DeviceArray x(small_numbers<E>(n, 1));
  const DeviceArray w(small_numbers<E>(std::size_t(filters * s.channels * taps), 2));
  const DeviceArray<E> columns(size), weight(std::size_t(filters * stride)), dx(n);
  finish(gpu::gather_patches(s, stride, x.data, columns.data, nullptr));
  finish(gpu::permute_weight(filters, s.channels, taps, stride, w.data, weight.data, nullptr));

  const std::vector<double> a = columns.values(), b = weight.values();
  std::vector<double> y(rows * std::size_t(filters));  // (out points, filters), small whole numbers
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < std::size_t(stride); ++j)
      y[i] += a[i / 5 * std::size_t(stride) + j] * b[i % 5 * std::size_t(stride) + j];
  std::vector<double> expected(y.size());
  reference::convolution<double>({.batch = s.batch,
                                  .in = s.channels,
                                  .height = s.height,
                                  .width = s.width,
                                  .out = filters,
                                  .kernel_h = s.kernel_h,
                                  .kernel_w = s.kernel_w,
                                  .stride = s.stride,
                                  .padding_h = s.padding_h,
                                  .padding_w = s.padding_w},
                                 turned(x.values(), std::size_t(s.batch), std::size_t(s.channels)),
                                 w.values(), {}, expected);
  const auto batch = static_cast<std::size_t>(s.batch);
  CHECK(y == turned(expected, batch, rows / batch));

  // scatter is the transpose of gather: <scatter(c), x> = <c, gather(x)> for every c, exactly.
  const DeviceArray c(small_numbers<E>(size, 3));
  finish(gpu::scatter_patches(s, stride, c.data, dx.data, false, nullptr));
  CHECK(dot(dx.values(), x.values()) == dot(c.values(), columns.values()));

  const DeviceArray permuted(small_numbers<float>(std::size_t(filters * stride), 4));
  const DeviceArray gradient(std::vector<float>(w.count, 0.0f));
  finish(gpu::add_permuted_gradient(filters, s.channels, taps, stride, permuted.data, gradient.data,
                                    nullptr));
  CHECK(dot(gradient.values(), w.values()) == dot(permuted.values(), weight.values()));
}
