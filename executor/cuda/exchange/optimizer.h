#pragma once
#include <cuda_runtime.h>

#include "executor/cuda/memory/buffers.h"
#include "kernels/optimizer/gradient_norm.h"
#include "kernels/optimizer/optimizer.h"

// An optimizer's update in a device's memory, as exchanges there call it.
namespace reckon::cuda {

/// Weights side by side, all decaying or none; (count) each, `second` of AdamW alone.
struct UpdatedRange {
  float* values = nullptr;
  const float* gradients = nullptr;
  float *first = nullptr, *second = nullptr;  // velocities, none; or moments
  std::int64_t count = 0;
  bool decays = true;
};
struct OptimizerStep {
  std::int64_t step = 0;  // updates before
  double learning_rate = 0, gradient_scale = 1;
};
/// Queued on the stream.
inline void update_on_device(const OptimizerRule& rule, const UpdatedRange& range,
                             const OptimizerStep& step, cudaStream_t stream) {
  const auto prepare = [&](auto r) {
    r.learning_rate = static_cast<float>(step.learning_rate);
    r.gradient_scale = static_cast<float>(step.gradient_scale);
    if (!range.decays) r.weight_decay = 0;
    return r;
  };
  if (const auto* sgd = std::get_if<SgdMomentum>(&rule))
    check(sgd_momentum(prepare(*sgd), range.values, range.first, range.gradients, range.count,
                       stream),
          "optimizer");
  else
    check(adamw(prepare(std::get<AdamW>(rule)), step.step, range.values, range.first, range.second,
                range.gradients, range.count, stream),
          "optimizer");
}

/// gpu::squared_norm() on the host; `scratch`: gpu::kNormScratch + 1 numbers.
inline double squared_norm_on_device(const float* values, std::size_t count,
                                     DeviceBuffer<double>& scratch, cudaStream_t stream) {
  double* sum = scratch.data() + gpu::kNormScratch;
  check(gpu::squared_norm(values, static_cast<std::int64_t>(count), scratch.data(), sum, stream),
        "gradient norm");
  double squares = 0;
  check(cudaMemcpyAsync(&squares, sum, sizeof(squares), cudaMemcpyDeviceToHost, stream),
        "gradient norm");
  check(cudaStreamSynchronize(stream), "gradient norm");
  return squares;
}

}  // namespace reckon::cuda
