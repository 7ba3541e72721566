#include "kernels/cross_entropy.h"

#include "gpu/device.h"
#include "kernels/reference/backward.h"

using namespace reckon;

TEMPLATE_TEST_CASE("softmax cross entropy and its gradient agree with the reference", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const auto [samples, rows_of_sample, classes] =
      GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
          {{1, 1, 1}, {2, 3, 7}, {3, 1, 10}, {2, 2, 257}, {1, 3, 50257}}));
  const std::int64_t rows = samples * rows_of_sample;
  const auto n = static_cast<std::size_t>(rows * classes), r = static_cast<std::size_t>(rows);
  Draw<E> x(n, 1);
  for (std::size_t i = 0; i < n; ++i) {  // wider logits; E holds eight times a number too
    x.values[i] *= 8;
    x.elements[i] = from_float<E>(static_cast<float>(x.values[i]));
  }
  std::vector<float> targets;
  std::vector<std::int32_t> target;
  for (std::int64_t i = 0; i < rows; ++i) {
    target.push_back(static_cast<std::int32_t>(i * 7919 % classes));
    targets.push_back(static_cast<float>(target.back()));
  }
  const DeviceArray d_x(x.elements), d_targets(targets);
  const DeviceArray slopes(std::vector<float>(static_cast<std::size_t>(samples), 0.5f));
  const DeviceArray<float> log_sums(r), losses(r), means(static_cast<std::size_t>(samples));
  const DeviceArray<E> dx(n);
  finish(gpu::cross_entropy_forward(rows, classes, classes, d_x.data, d_targets.data, log_sums.data,
                                    losses.data, nullptr));
  finish(gpu::mean_losses(samples, rows_of_sample, losses.data, means.data, nullptr));
  finish(gpu::cross_entropy_backward(rows, classes, classes, d_x.data, d_targets.data,
                                     log_sums.data, slopes.data, rows_of_sample, dx.data, false,
                                     nullptr));
  std::vector<double> e_loss(r), e_dx(n), e_mean(static_cast<std::size_t>(samples));
  reference::softmax_cross_entropy<double>(rows, classes, x.values, target, e_loss);
  const double slope = 0.5 / static_cast<double>(rows_of_sample);
  reference::softmax_cross_entropy_backward(rows, classes, x.values, target, slope, e_dx);
  for (std::size_t i = 0; i < r; ++i)
    e_mean[i / static_cast<std::size_t>(rows_of_sample)] +=
        e_loss[i] / static_cast<double>(rows_of_sample);
  // The sum of positive terms: a relative error of (classes / 256 + 16) roundings, and a logarithm
  // of at most 8 + ln(classes) < 32.
  const double relative = kSumRoundoff * (static_cast<double>(classes) / 256 + 16 + 32);
  check_near(losses.values(), e_loss, [&](double) { return relative; });
  check_near(means.values(), e_mean, [&](double) { return 2 * relative; });
  check_near(dx.values(), e_dx,
             [&](double e) { return kRoundoff<E> * std::abs(e) + 2 * relative * slope; });

  // Added to what is there, from logits that begin between two 16-byte lines.
  const DeviceArray skewed(x.elements, 1), twice(dx.host(n), 1);
  finish(gpu::cross_entropy_backward(rows, classes, classes, skewed.data, d_targets.data,
                                     log_sums.data, slopes.data, rows_of_sample, twice.data, true,
                                     nullptr));
  for (double& v : e_dx) v *= 2;
  check_near(twice.values(), e_dx,
             [&](double e) { return 2 * kRoundoff<E> * std::abs(e) + 4 * relative * slope; });

  // Rows with gaps between them, which are not read and become zeros in the gradient.
  const std::int64_t stride = classes + 5;
  const E filler = from_float<E>(NAN);
  std::vector<E> spread(static_cast<std::size_t>(rows * stride), filler);
  for (std::int64_t i = 0; i < rows; ++i)
    std::copy_n(x.elements.begin() + i * classes, classes, spread.begin() + i * stride);
  const DeviceArray d_spread(spread), spread_dx(spread);
  const DeviceArray<float> spread_sums(r), spread_losses(r);
  finish(gpu::cross_entropy_forward(rows, classes, stride, d_spread.data, d_targets.data,
                                    spread_sums.data, spread_losses.data, nullptr));
  finish(gpu::cross_entropy_backward(rows, classes, stride, d_spread.data, d_targets.data,
                                     spread_sums.data, slopes.data, rows_of_sample, spread_dx.data,
                                     false, nullptr));
  check_near(spread_losses.values(), e_loss, [&](double) { return relative; });
  const std::vector<double> all = spread_dx.values();
  std::vector<double> rows_of_dx, gaps;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = all.begin() + i * stride;
    rows_of_dx.insert(rows_of_dx.end(), row, row + classes);
    gaps.insert(gaps.end(), row + classes, row + stride);
  }
  for (double& v : e_dx) v /= 2;
  check_near(rows_of_dx, e_dx,
             [&](double e) { return kRoundoff<E> * std::abs(e) + 2 * relative * slope; });
  CHECK(gaps == std::vector<double>(gaps.size(), 0));
}

TEST_CASE("a class that does not exist gives no number") {
  require_device();
  const DeviceArray x(std::vector<float>(6, 0.0f)), targets(std::vector<float>{3.0f, -1.0f});
  const DeviceArray<float> log_sums(2), losses(2);
  finish(gpu::cross_entropy_forward(2, 3, 3, x.data, targets.data, log_sums.data, losses.data,
                                    nullptr));
  CHECK(std::isnan(losses.values()[0]));
  CHECK(std::isnan(losses.values()[1]));
}
