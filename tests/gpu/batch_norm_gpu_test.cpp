#include "kernels/batch_norm.h"

#include "gpu/device.h"
#include "kernels/reference/backward.h"

using namespace reckon;

TEMPLATE_TEST_CASE("batch norm, its statistics and its gradients agree with the reference", "",
                   float, Bf16, Half) {
  require_device();
  using E = TestType;
  const auto [rows, channels] =
      GENERATE(table<std::int64_t, std::int64_t>({{2, 1}, {31, 33}, {700, 8}, {129, 64}}));
  const gpu::BatchNormShape s{.rows = rows, .channels = channels};
  const auto n = static_cast<std::size_t>(rows * channels), c = static_cast<std::size_t>(channels);
  const Draw<E> x(n, 1), weight(c, 2), bias(c, 3), dy(n, 4);
  const DeviceArray d_x(x.elements), d_weight(weight.elements), d_bias(bias.elements);
  const DeviceArray d_dy(dy.elements);
  std::vector<float> before(2 * c, 0.0f);
  std::fill(before.begin() + channels, before.end(), 1.0f);
  const DeviceArray running(before);
  const DeviceArray<float> mean(c), inverse(c), sums(2 * c);
  const DeviceArray<float> scratch(static_cast<std::size_t>(gpu::batch_norm_scratch(s)));
  const DeviceArray<E> y(n), dx(n);
  finish(gpu::batch_norm_measure(s, d_x.data, mean.data, inverse.data, running.data, scratch.data,
                                 nullptr));
  finish(gpu::batch_norm_apply(s, d_x.data, mean.data, inverse.data, d_weight.data, d_bias.data,
                               y.data, nullptr));
  const DeviceArray dweight(std::vector<float>(c, 0.0f)), dbias(std::vector<float>(c, 0.0f));
  finish(gpu::batch_norm_backward(s, d_x.data, mean.data, inverse.data, d_weight.data, d_dy.data,
                                  sums.data, dweight.data, dbias.data, dx.data, false, scratch.data,
                                  nullptr));

  // The reference has channels in front: a batch of `rows` images of one point.
  std::vector<double> e_y(n), e_dx(n), e_dweight(c), e_dbias(c);
  reference::batch_norm<double>(rows, channels, 1, x.values, weight.values, bias.values,
                                double{s.epsilon}, e_y);
  reference::batch_norm_backward(rows, channels, double{s.epsilon}, x.values, weight.values,
                                 dy.values, e_dx, e_dweight, e_dbias);
  // Sums of `rows` terms that are at most sqrt(rows) after normalising, times 1 / deviation.
  double steep = 0;
  for (const double i : inverse.values()) steep = std::max(steep, i);
  const double count = static_cast<double>(rows);
  const double size = (std::sqrt(count) + 1) * (count + 32);
  const auto bound = [&](double e) {
    return kRoundoff<E> * std::abs(e) + kSumRoundoff * size * std::max(1.0, steep);
  };
  check_near(y.values(), e_y, bound);
  check_near(dx.values(), e_dx, bound);
  const auto sum_bound = [&](double) { return 4 * kSumRoundoff * size * std::max(1.0, steep); };
  check_near(dweight.values(), e_dweight, sum_bound);
  check_near(dbias.values(), e_dbias, sum_bound);

  std::vector<double> moved;
  for (std::size_t k = 0; k < 2 * c; ++k) {
    double m = 0, v = 0;
    for (std::size_t r = 0; r < n / c; ++r) m += x.values[r * c + k % c] / count;
    for (std::size_t r = 0; r < n / c; ++r)
      v += (x.values[r * c + k % c] - m) * (x.values[r * c + k % c] - m) / (count - 1);
    moved.push_back(k < c ? 0.1 * m : 0.9 + 0.1 * v);
  }
  check_near(running.values(), moved, [&](double) { return kSumRoundoff * (count + 8); });
  finish(gpu::batch_norm_use_running(s, running.data, mean.data, inverse.data, nullptr));
  for (std::size_t k = 0; k < c; ++k)
    CHECK(inverse.values()[k] == Approx(1 / std::sqrt(moved[c + k] + 1e-5)).epsilon(1e-5));
}
