#include "kernels/element_loss.h"

#include "gpu/device.h"

using namespace reckon;

TEMPLATE_TEST_CASE("losses of elements and their gradients agree with the formula", "", float, Bf16,
                   Half) {
  require_device();
  using E = TestType;
  const auto kind = GENERATE(gpu::ElementLoss::squared, gpu::ElementLoss::logistic);
  const bool squared = kind == gpu::ElementLoss::squared;
  const std::int64_t batch = 3, size = GENERATE(1, 33, 1000);
  const auto n = static_cast<std::size_t>(batch * size);
  const Draw<E> x(n, 1), before(n, 3);
  const Draw<float> t(n, 2);
  const DeviceArray d_x(x.elements), d_t(t.elements), dx(before.elements);
  const DeviceArray slopes(std::vector<float>{0.5f, 1.0f, 2.0f});
  const DeviceArray<float> losses(3);
  finish(gpu::element_loss_forward(kind, batch, size, d_x.data, d_t.data, losses.data, nullptr));
  finish(gpu::element_loss_backward(kind, batch, size, d_x.data, d_t.data, slopes.data, dx.data,
                                    true, nullptr));
  std::vector<double> e_losses(3), e_dx = before.values;
  for (std::size_t i = 0; i < n; ++i) {
    const auto b = i / static_cast<std::size_t>(size);
    const double a = x.values[i], target = t.values[i];
    const double loss = squared
                            ? (a - target) * (a - target)
                            : std::max(a, 0.0) - a * target + std::log1p(std::exp(-std::abs(a)));
    const double slope = squared ? 2 * (a - target) : 1 / (1 + std::exp(-a)) - target;
    e_losses[b] += loss / static_cast<double>(size);
    e_dx[i] += 0.5 * std::pow(2, static_cast<double>(b)) * slope / static_cast<double>(size);
  }
  // Losses up to 4, each of a rounded difference or the device's exp; sums of size / 256 + 16
  // roundings.
  check_near(losses.values(), e_losses,
             [&](double e) { return kSumRoundoff * (16 + (double(size) / 256 + 16) * e); });
  check_near(dx.values(), e_dx, [&](double e) {
    return kRoundoff<E> * std::abs(e) + 8 * kSumRoundoff * 8 / static_cast<double>(size) + 1e-7;
  });
}

TEST_CASE("a logistic loss of a large number does not overflow") {
  require_device();
  const DeviceArray x(std::vector<float>{200, -200}), t(std::vector<float>{0, 1});
  const DeviceArray<float> losses(1);
  finish(gpu::element_loss_forward(gpu::ElementLoss::logistic, 1, 2, x.data, t.data, losses.data,
                                   nullptr));
  CHECK(losses.values()[0] == Approx(200));
}
