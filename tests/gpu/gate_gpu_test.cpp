#include "kernels/gate.h"

#include "gpu/device.h"

using namespace reckon;

TEMPLATE_TEST_CASE("gates by channel and by row, and their gradients", "", float, Bf16, Half) {
  require_device();
  using E = TestType;
  const gpu::GateShape s = GENERATE(gpu::GateShape{2, 7, 40, false}, gpu::GateShape{3, 1, 5, false},
                                    gpu::GateShape{1, 30, 3, false}, gpu::GateShape{2, 9, 70, true},
                                    gpu::GateShape{1, 1, 1, true});
  const auto n = std::size_t(s.batch * s.rows * s.channels);
  const auto gates = std::size_t(s.batch * (s.by_row ? s.rows : s.channels));
  const auto gate_of = [&](std::size_t i) {
    const auto row = i / std::size_t(s.channels);
    return s.by_row
               ? row
               : row / std::size_t(s.rows) * std::size_t(s.channels) + i % std::size_t(s.channels);
  };
  const Draw<E> x(n, 1), gate(gates, 2), dy(n, 3);
  const DeviceArray d_x(x.elements), d_gate(gate.elements), d_dy(dy.elements);
  const DeviceArray<E> y(n), dgate(gates);
  finish(gpu::gate(s, d_x.data, d_gate.data, y.data, false, nullptr));
  const std::vector<double> got = y.values();
  std::vector<double> sum(gates), size(gates);
  for (std::size_t i = 0; i < n; ++i) {
    const float product =
        static_cast<float>(x.values[i]) * static_cast<float>(gate.values[gate_of(i)]);
    REQUIRE(got[i] == double{to_float(from_float<E>(product))});
    sum[gate_of(i)] += dy.values[i] * x.values[i];
    size[gate_of(i)] += std::abs(dy.values[i] * x.values[i]);
  }
  finish(gpu::gate_gradient(s, d_x.data, d_dy.data, dgate.data, false, nullptr));
  const std::vector<double> once = dgate.values();
  for (std::size_t k = 0; k < gates; ++k)
    REQUIRE(std::abs(once[k] - sum[k]) <=
            2 * kRoundoff<E> * std::abs(sum[k]) + double(n) * kSumRoundoff * size[k] + 1e-12);
  finish(gpu::gate_gradient(s, d_x.data, d_dy.data, dgate.data, true, nullptr));
  const std::vector<double> twice = dgate.values();
  for (std::size_t k = 0; k < gates; ++k)
    REQUIRE(std::abs(twice[k] - 2 * once[k]) <= 4 * kRoundoff<E> * std::abs(once[k]) + 1e-6);
}
