#include "kernels/embedding.h"

#include "gpu/device.h"
#include "kernels/id_groups.h"
#include "kernels/reference/layers.h"

using namespace reckon;

TEST_CASE("ids in groups: every row once, rows of an id in their order") {
  const std::vector<float> ids{4, 0, 4, 2, 0, 4};
  const GroupedIds g = group_ids(ids, 6);
  CHECK(g.ids == std::vector<std::int32_t>{0, 2, 4});
  CHECK(g.starts == std::vector<std::int32_t>{0, 2, 3, 6});
  CHECK(g.order == std::vector<std::int32_t>{1, 4, 3, 0, 2, 5});
}

TEMPLATE_TEST_CASE("embeddings are looked up and their gradients added up in one order", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t width = GENERATE(1, 31, 64, 300), rows = 41, table_rows = 9;
  const auto n = static_cast<std::size_t>(rows * width);
  const Draw<E> table(static_cast<std::size_t>(table_rows * width), 1), dy(n, 2);
  std::vector<float> ids;
  for (std::int64_t r = 0; r < rows; ++r) ids.push_back(static_cast<float>(r * r % table_rows));
  const DeviceArray d_table(table.elements), d_dy(dy.elements), d_ids(ids);
  const DeviceArray<E> y(n);
  finish(gpu::embedding_forward(rows, width, d_ids.data, d_table.data, y.data, nullptr));
  const GroupedIds g = group_ids(ids, table_rows);
  const DeviceArray d_group(g.ids), d_starts(g.starts), d_order(g.order);
  const DeviceArray gradient(std::vector<float>(table.values.size(), 0.5f));
  finish(gpu::embedding_backward(width,
                                 {.groups = static_cast<std::int64_t>(g.ids.size()),
                                  .ids = d_group.data,
                                  .starts = d_starts.data,
                                  .order = d_order.data},
                                 d_dy.data, gradient.data, nullptr));
  const std::vector<double> looked_up = y.values();
  std::vector<float> expected(table.values.size());
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = i / static_cast<std::size_t>(width), column = i % std::size_t(width);
    const std::size_t at = static_cast<std::size_t>(ids[row]) * std::size_t(width) + column;
    REQUIRE(looked_up[i] == table.values[at]);
    expected[at] += static_cast<float>(dy.values[i]);  // the same order: the same bits
  }
  for (float& value : expected) value = 0.5f + value;
  CHECK(gradient.host(expected.size()) == expected);
}

TEMPLATE_TEST_CASE("positions are added, and turned, and back again", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t batch = 3, tokens = 5, heads = 2, width = 12;
  const std::int64_t size = tokens * heads * width, n = batch * size;
  const Draw<E> x(std::size_t(n), 1), table(std::size_t(size), 2);
  const DeviceArray d_x(x.elements), d_table(table.elements);
  const DeviceArray<E> y(x.values.size()), back(x.values.size());
  finish(gpu::position_forward(batch, size, d_x.data, d_table.data, y.data, nullptr));
  const DeviceArray gradient(std::vector<float>(std::size_t(size), 1.0f));
  finish(gpu::position_backward(batch, size, d_x.data, gradient.data, nullptr));
  for (std::size_t i = 0; i < std::size_t(n); ++i) {
    const auto sum =
        static_cast<float>(x.values[i]) + static_cast<float>(table.values[i % std::size_t(size)]);
    REQUIRE(y.values()[i] == double{to_float(from_float<E>(sum))});
  }
  for (std::size_t i = 0; i < std::size_t(size); ++i) {
    double sum = 1;
    for (std::size_t b = 0; b < 3; ++b) sum += x.values[b * std::size_t(size) + i];
    CHECK(gradient.values()[i] == Approx(sum).margin(8 * kSumRoundoff));
  }

  const gpu::RotaryShape s{.batch = batch,
                           .tokens = tokens,
                           .heads = heads,
                           .head_width = width,
                           .rotated = GENERATE(12, 8)};
  finish(gpu::rotary(s, 1, d_x.data, y.data, false, nullptr));
  std::vector<double> expected(x.values.size());
  reference::rotary<double>(batch, tokens, heads, width, s.rotated, s.theta, x.values, expected);
  // Angles are at most `tokens`, good to 2^-22 of that; then one rounding of E.
  const auto bound = [&](double e) { return kRoundoff<E> * std::abs(e) + 64 * kSumRoundoff; };
  check_near(y.values(), expected, bound);
  finish(gpu::rotary(s, -1, y.data, back.data, false, nullptr));
  check_near(back.values(), x.values, [&](double) { return 3 * kRoundoff<E> + 64 * kSumRoundoff; });
}
