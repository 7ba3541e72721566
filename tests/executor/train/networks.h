#pragma once
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/samples.h"
#include "sim/catalog/model_zoo_builder.h"

// Small networks for tests of the runtime.
namespace reckon::test {

inline ModelGraph network(SampleUnit unit, Shape input, LayerList& layers) {
  auto made = ModelGraph::make("test", unit, std::move(input), layers.take());
  if (!made) throw std::runtime_error(format(made.error()));
  return std::move(*made);
}

/// A model's double-precision runtime with random parameters and one synthetic batch.
template <class T>
struct Trial {
  Trial(const ModelGraph& model, std::int64_t batch, Recompute recompute = Recompute::none,
        int threads = 1)
      : workers(threads),
        runtime(model, {.batch = batch, .recompute = recompute, .seed = 3}, workers),
        data(sample_format(model), batch),
        values(runtime.layout().count),
        gradients(runtime.layout().count) {
    for (std::int64_t b = 0; b < batch; ++b) fill_synthetic(sample_format(model), 5, b, data, b);
    // Far from zero, so that no gradient is small by accident.
    for (std::size_t i = 0; i < values.size(); ++i)
      values.data()[i] = static_cast<T>(0.4 * std::sin(static_cast<double>(7 * i + 1)) + 0.05);
  }
  double loss() { return runtime.forward(data.view(), values.span(), {2, 0}, true); }
  void backward() { runtime.backward(values.span(), gradients.span(), 1, {}); }

  Workers workers;
  GraphRuntime<T> runtime;
  SampleBatch data;
  AlignedBuffer<T> values, gradients;
};

}  // namespace reckon::test
