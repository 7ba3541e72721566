#pragma once
#include "executor/cuda/layers/runner.h"
#include "kernels/elementwise.h"

// The gradient of a bias, of linear layers and convolutions.
namespace reckon::cuda::run {

/// dbias of a layer, through scratch memory of float.
template <class E>
void add_bias_gradient(const DeviceLayerMemory<E>& m, const DevicePass& pass, std::int64_t rows,
                       std::int64_t columns) {
  if (m.bias_gradient == nullptr) return;
  check(gpu::bias_gradient(m.output_gradient, rows, columns, m.bias_gradient,
                           reinterpret_cast<float*>(m.scratch), pass.stream),
        "bias gradient");
}
inline std::int64_t bias_scratch(std::int64_t rows, std::int64_t columns) {
  return gpu::bias_gradient_scratch(rows, columns) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace reckon::cuda::run
