#include "kernels/squared_error.h"

#include "gpu/device.h"

using namespace reckon;

TEMPLATE_TEST_CASE("squared errors and their gradients agree with the formula", "", float, Bf16,
                   Half) {
  require_device();
  using E = TestType;
  const std::int64_t batch = 3, size = GENERATE(1, 33, 1000);
  const auto n = static_cast<std::size_t>(batch * size);
  const Draw<E> x(n, 1), before(n, 3);
  const Draw<float> t(n, 2);
  const DeviceArray d_x(x.elements), d_t(t.elements), dx(before.elements);
  const DeviceArray slopes(std::vector<float>{0.5f, 1.0f, 2.0f});
  const DeviceArray<float> losses(3);
  finish(gpu::squared_error_forward(batch, size, d_x.data, d_t.data, losses.data, nullptr));
  finish(gpu::squared_error_backward(batch, size, d_x.data, d_t.data, slopes.data, dx.data, true,
                                     nullptr));
  std::vector<double> e_losses(3), e_dx = before.values;
  for (std::size_t i = 0; i < n; ++i) {
    const auto b = i / static_cast<std::size_t>(size);
    const double error = x.values[i] - t.values[i];
    e_losses[b] += error * error / static_cast<double>(size);
    e_dx[i] += 0.5 * std::pow(2, static_cast<double>(b)) * 2 * error / static_cast<double>(size);
  }
  // Squares up to 4, each of a rounded difference; sums of size / 256 + 16 roundings.
  check_near(losses.values(), e_losses,
             [&](double e) { return kSumRoundoff * (8 + (double(size) / 256 + 16) * e); });
  check_near(dx.values(), e_dx, [&](double e) {
    return kRoundoff<E> * std::abs(e) + 8 * kSumRoundoff * 8 / static_cast<double>(size) + 1e-7;
  });
}
