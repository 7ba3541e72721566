#include "kernels/norm.h"

#include "gpu/device.h"
#include "kernels/reference/backward.h"

using namespace reckon;

namespace {

/// One roundoff of E, and of the sums: `n` numbers of at most `size` in 32 lanes, then 5 more.
template <class E>
auto bound_of(double n, double size) {
  return [=](double expected) {
    return kRoundoff<E> * std::abs(expected) + kSumRoundoff * (n / 32 + 16) * size;
  };
}

template <class E>
void compare(const gpu::NormShape& s, std::uint32_t seed) {
  const auto n = static_cast<std::size_t>(s.rows * s.width), w = static_cast<std::size_t>(s.width);
  const Draw<E> x(n, seed), weight(w, seed + 1), bias(w, seed + 2), dy(n, seed + 3);
  const DeviceArray dx_in(x.elements), dx_weight(weight.elements), d_bias(bias.elements);
  const DeviceArray d_dy(dy.elements);
  const DeviceArray<E> y(n), dx(n);
  const auto rows = static_cast<std::size_t>(s.rows);
  const DeviceArray<float> mean(rows), inverse(rows);
  finish(gpu::norm_forward(s, dx_in.data, dx_weight.data, s.centred ? d_bias.data : nullptr, y.data,
                           mean.data, inverse.data, nullptr));
  std::vector<double> expected(n);
  if (s.centred)
    reference::layer_norm<double>(s.rows, s.width, x.values, weight.values, bias.values,
                                  double{s.epsilon}, expected);
  else
    reference::rms_norm<double>(s.rows, s.width, x.values, weight.values, double{s.epsilon},
                                expected);
  // Normalised values are at most sqrt(width), so terms are; a width of one is all epsilon.
  const double size = std::sqrt(static_cast<double>(s.width)) + 1;
  const auto width = static_cast<double>(s.width);
  check_near(y.values(), expected, bound_of<E>(width, size));

  finish(gpu::norm_backward_input(s, dx_in.data, dx_weight.data, mean.data, inverse.data, d_dy.data,
                                  dx.data, false, nullptr));
  const DeviceArray dweight(std::vector<float>(w, 1.0f)), dbias(std::vector<float>(w, 2.0f));
  const DeviceArray<float> scratch(static_cast<std::size_t>(gpu::norm_scratch(s)));
  finish(gpu::norm_backward_weight(s, dx_in.data, mean.data, inverse.data, d_dy.data, dweight.data,
                                   dbias.data, scratch.data, nullptr));
  std::vector<double> e_dx(n), e_dweight(w), e_dbias(w);
  reference::norm_backward(s.rows, s.width, s.centred, double{s.epsilon}, x.values, weight.values,
                           dy.values, e_dx, e_dweight, e_dbias);
  double largest_inverse = 0;
  for (const double i : inverse.values()) largest_inverse = std::max(largest_inverse, i);
  check_near(dx.values(), e_dx, bound_of<E>(width, size * size * largest_inverse));
  for (double& v : e_dweight) v += 1;
  for (double& v : e_dbias) v += 2;
  // Sums over rows in float: as many roundings as there are rows, of terms of at most `size`.
  const auto sum_bound = [&](double) {
    return kSumRoundoff * (static_cast<double>(s.rows) + 4 * width + 16) * size *
           std::sqrt(static_cast<double>(s.rows));
  };
  check_near(dweight.values(), e_dweight, sum_bound);
  check_near(dbias.values(), e_dbias, sum_bound);

  // Added to what is there.
  const DeviceArray twice(dx.host(n));
  finish(gpu::norm_backward_input(s, dx_in.data, dx_weight.data, mean.data, inverse.data, d_dy.data,
                                  twice.data, true, nullptr));
  for (double& v : e_dx) v *= 2;
  check_near(twice.values(), e_dx, bound_of<E>(2 * width, 4 * size * size * largest_inverse));
}

}  // namespace

TEMPLATE_TEST_CASE("norms and their gradients agree with the reference at odd widths", "", float,
                   Bf16, Half) {
  require_device();
  const auto [rows, width] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 2}, {9, 31}, {8, 32}, {300, 33}, {7, 768}}));
  compare<TestType>({.rows = rows, .width = width}, 5);
  compare<TestType>({.rows = rows, .width = width, .centred = false}, 6);
}
