#include "kernels/select_rows.h"

#include "gpu/device.h"

using namespace reckon;

TEMPLATE_TEST_CASE("some rows of each sample, and their gradients back to where they were", "",
                   float, Bf16, Half) {
  require_device();
  using E = TestType;
  const bool named = GENERATE(true, false), accumulate = GENERATE(true, false);
  gpu::RowSelection s{.batch = 3, .rows = 7, .count = 4, .width = GENERATE(1, 33, 300)};
  const std::vector<std::int32_t> at{6, 0, 3, 3, 1, 2, 4, 5, 0, 0, 0, 0};  // some of them twice
  const DeviceArray d_at(at);
  if (named) s.at = d_at.data;
  const auto n = static_cast<std::size_t>(s.batch * s.rows * s.width);
  const auto selected = static_cast<std::size_t>(s.batch * s.count * s.width);
  const Draw<E> x(n, 1), dy(selected, 2);
  const DeviceArray d_x(x.elements), d_dy(dy.elements), dx(x.elements);
  const DeviceArray<E> y(selected);
  finish(gpu::select_rows(s, d_x.data, y.data, nullptr));
  finish(gpu::select_rows_gradient(s, d_dy.data, dx.data, accumulate, nullptr));
  std::vector<double> e_y(selected), e_dx = accumulate ? x.values : std::vector<double>(n);
  for (std::size_t i = 0; i < selected; ++i) {
    const auto width = static_cast<std::size_t>(s.width), row = i / width, b = row / 4;
    const std::size_t from = named ? static_cast<std::size_t>(at[row]) : row % 4;
    const std::size_t place = (b * 7 + from) * width + i % width;
    e_y[i] = x.values[place];
    e_dx[place] += dy.values[i];
  }
  CHECK(y.values() == e_y);
  // Up to five summands below 1, rounded after each.
  check_near(dx.values(), e_dx, [](double) { return 5 * 5 * kRoundoff<E>; });
}
