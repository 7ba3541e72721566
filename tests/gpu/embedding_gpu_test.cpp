#include "kernels/embedding.h"

#include "gpu/device.h"
#include "kernels/id_groups.h"
#include "kernels/record_id.h"
#include "kernels/reference/layers.h"

using namespace reckon;

TEST_CASE("ids in groups: every row once, rows of an id in their order") {
  const std::vector<std::int64_t> ids{4, 0, 4, 2, 0, 4};
  const std::int64_t table_rows = GENERATE(6, 1'000'000'000);  // counted, sorted
  const GroupedIds g = group_ids(ids, table_rows);
  CHECK(g.ids == std::vector<std::int32_t>{0, 2, 4});
  CHECK(g.starts == std::vector<std::int32_t>{0, 2, 3, 6});
  CHECK(g.order == std::vector<std::int32_t>{1, 4, 3, 0, 2, 5});
}

TEST_CASE("an id is the same number in a record, in double, and back") {
  for (const std::int64_t id :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{16'777'215}, std::int64_t{16'777'216},
        std::int64_t{16'777'217}, std::int64_t{48'937'456}, std::int64_t{2'139'095'039}}) {
    const float number = record_number(id);
    CHECK(std::isfinite(number));
    CHECK(record_id(number) == id);
    CHECK(record_id(static_cast<float>(static_cast<double>(number))) == id);
  }
}

TEMPLATE_TEST_CASE("embeddings are looked up and their gradients added up in one order", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  // Of one id a row, and of three, behind two numbers of a sample that are none; of a table that
  // begins here, and of the end of one whose ids a float does not hold.
  const std::int64_t width = GENERATE(1, 31, 64, 300), rows = 41, table_rows = 9;
  const std::int64_t first = GENERATE(0, 40'000'001);
  const bool bag = GENERATE(false, true);
  const gpu::IdPlaces places = bag ? gpu::IdPlaces{.each = 3, .first = 2, .stride = 6}
                                   : gpu::IdPlaces{.rows = rows, .stride = rows};
  const gpu::TableRows part{.first = first, .count = table_rows};
  const auto n = static_cast<std::size_t>(rows * width);
  const Draw<E> table(static_cast<std::size_t>(table_rows * width), 1), dy(n, 2);
  std::vector<float> numbers(static_cast<std::size_t>(bag ? rows * places.stride : rows), -0.5f);
  std::vector<std::int64_t> ids;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t k = 0; k < places.each; ++k) {
      ids.push_back((r * r + 2 * k) % table_rows);
      numbers[static_cast<std::size_t>(places.at(r) + k)] = record_number(first + ids.back());
    }
  const DeviceArray d_table(table.elements), d_dy(dy.elements), d_numbers(numbers);
  const DeviceArray<E> y(n);
  finish(gpu::embedding_forward(rows, width, d_numbers.data, places, d_table.data, y.data, nullptr,
                                part));
  GroupedIds g = group_ids(ids, table_rows);
  for (std::int32_t& place : g.order) place /= static_cast<std::int32_t>(places.each);
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
    float sum = 0;
    for (std::size_t k = 0; k < std::size_t(places.each); ++k) {
      const auto id = static_cast<std::size_t>(ids[row * std::size_t(places.each) + k]);
      sum += static_cast<float>(table.values[id * std::size_t(width) + column]);
      expected[id * std::size_t(width) + column] += static_cast<float>(dy.values[i]);
    }
    // The same order: the same bits.
    REQUIRE(looked_up[i] == double{to_float(from_float<E>(sum))});
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
