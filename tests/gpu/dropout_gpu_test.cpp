#include "gpu/device.h"
#include "kernels/elementwise.h"

using namespace reckon;

TEMPLATE_TEST_CASE("dropout keeps what its stream says, in every sample", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t batch = 3, size = GENERATE(1, 6, 1027);
  const auto n = static_cast<std::size_t>(batch * size);
  const DropoutStream mask = dropout_stream(9, 4, 2, 0.3);
  const Draw<E> x(n, 1);
  const DeviceArray d_x(x.elements);
  const DeviceArray<E> y(n);
  const bool whole = GENERATE(false, true);
  finish(gpu::dropout(mask, 17, batch, size, whole, d_x.data, y.data, false, nullptr));
  const std::vector<double> got = y.values();
  for (std::int64_t i = 0; i < batch * size; ++i) {
    const std::int64_t at = whole ? 0 : i % size;  // a whole sample has its first element's factor
    const DropoutBlock block = dropout_block(mask, 17 + i / size, at / 4);
    const float factor = block.keeps[at % 4] ? mask.kept : 0.0f;
    const float value = factor * static_cast<float>(x.values[std::size_t(i)]);
    REQUIRE(got[std::size_t(i)] == double{to_float(from_float<E>(value))});
  }
}

TEMPLATE_TEST_CASE("dropout of some features of a row has the factors of the whole row", "", float,
                   Bf16) {
  require_device();
  using E = TestType;
  // Widths that a block of four random numbers does not divide, some that it does.
  struct Widths {
    std::int64_t columns, whole, from;
  };
  const auto [columns, whole, from] =
      GENERATE(Widths{5, 15, 10}, Widths{3, 7, 1}, Widths{64, 128, 64}, Widths{1, 2, 0});
  const std::int64_t batch = 2, rows = 37, row = 4, size = rows * columns;
  const DropoutStream mask = dropout_stream(9, 4, 2, 0.3);
  const Draw<E> x(static_cast<std::size_t>(batch * size), 1);
  const DeviceArray d_x(x.elements);
  const DeviceArray<E> y(x.elements.size());
  const bool whole_sample = GENERATE(false, true);
  finish(gpu::dropout(mask, 17, batch, size, whole_sample, d_x.data, y.data, false, nullptr,
                      {.first = row * whole + from, .columns = columns, .stride = whole}));
  const std::vector<double> got = y.values();
  for (std::int64_t i = 0; i < batch * size; ++i) {
    const std::int64_t here = i % size;
    const std::int64_t at =
        whole_sample ? 0 : (row + here / columns) * whole + from + here % columns;
    const DropoutBlock block = dropout_block(mask, 17 + i / size, at / 4);
    const float factor = block.keeps[at % 4] ? mask.kept : 0.0f;
    const float value = factor * static_cast<float>(x.values[std::size_t(i)]);
    REQUIRE(got[std::size_t(i)] == double{to_float(from_float<E>(value))});
  }
}
