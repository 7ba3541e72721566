#include "gpu/device.h"
#include "kernels/copy_columns.h"
#include "kernels/pairwise_dots.h"

using namespace reckon;

TEMPLATE_TEST_CASE("columns of one matrix are copied to columns of another, or added", "", float,
                   Bf16, Half) {
  require_device();
  using E = TestType;
  const bool accumulate = GENERATE(true, false);
  const std::size_t rows = 37, count = 5, from_stride = 9, to_stride = 12;
  const Draw<E> from(rows * from_stride, 1), before(rows * to_stride, 2);
  const DeviceArray d_from(from.elements), to(before.elements);
  finish(gpu::copy_columns<E>(rows, count, {d_from.data, 3, from_stride}, {to.data, 7, to_stride},
                              accumulate, nullptr));
  std::vector<double> expected = before.values;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < count; ++j) {
      double& there = expected[r * to_stride + 7 + j];
      const double sum = (accumulate ? there : 0) + from.values[r * from_stride + 3 + j];
      there = double{to_float(from_float<E>(static_cast<float>(sum)))};
    }
  CHECK(to.values() == expected);
}

TEMPLATE_TEST_CASE("products of all pairs of vectors and their gradients agree with the formula",
                   "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const std::int64_t vectors = GENERATE(2, 27, 64), width = GENERATE(1, 64, 130), batch = 3;
  const auto pairs = vectors * (vectors - 1) / 2;
  const auto count = std::size_t(vectors), size = std::size_t(width);
  std::vector<Draw<E>> x, before;
  std::vector<std::unique_ptr<DeviceArray<E>>> d_x, d_dx;
  gpu::VectorsOfPairs<const E> inputs;
  gpu::VectorsOfPairs<E> gradients;
  std::uint64_t accumulate = 0;
  for (std::size_t k = 0; k < count; ++k) {
    x.emplace_back(std::size_t(batch) * size, std::uint32_t(k + 1));
    before.emplace_back(std::size_t(batch) * size, std::uint32_t(k + 100));
    d_x.push_back(std::make_unique<DeviceArray<E>>(x[k].elements));
    d_dx.push_back(std::make_unique<DeviceArray<E>>(before[k].elements));
    inputs.at[k] = d_x[k]->data;
    gradients.at[k] = k == 1 ? nullptr : d_dx[k]->data;  // nobody wants that one
    if (k % 2 == 0) accumulate |= std::uint64_t{1} << k;
  }
  const Draw<E> dy(std::size_t(batch * pairs), 7);
  const DeviceArray d_dy(dy.elements);
  const DeviceArray<E> y(dy.values.size());
  const gpu::PairShape s{.batch = batch, .vectors = vectors, .width = width};
  finish(gpu::pairwise_dots(s, inputs, y.data, nullptr));
  finish(gpu::pairwise_dots_gradient(s, inputs, d_dy.data, gradients, accumulate, nullptr));

  std::vector<double> dots;
  std::vector<std::vector<double>> slopes(count, std::vector<double>(std::size_t(batch) * size));
  for (std::size_t b = 0; b < std::size_t(batch); ++b)
    for (std::size_t i = 1; i < count; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const double slope = dy.values[dots.size()];
        double dot = 0;
        for (std::size_t c = b * size; c < (b + 1) * size; ++c) {
          dot += x[i].values[c] * x[j].values[c];
          slopes[i][c] += slope * x[j].values[c];
          slopes[j][c] += slope * x[i].values[c];
        }
        dots.push_back(dot);
      }
  // Summands below 1, as many as the vectors are wide or many.
  check_near(y.values(), dots, [&](double e) {
    return kRoundoff<E> * std::abs(e) + kSumRoundoff * double(width * width);
  });
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> expected = before[k].values;
    for (std::size_t c = 0; k != 1 && c < expected.size(); ++c)
      expected[c] = (k % 2 == 0 ? expected[c] : 0) + slopes[k][c];
    check_near(d_dx[k]->values(), expected, [&](double e) {
      return kRoundoff<E> * std::abs(e) + kSumRoundoff * double(vectors * vectors);
    });
  }
}
