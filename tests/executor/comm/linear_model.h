#pragma once
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "executor/comm/gradient_exchange.h"
#include "kernels/optimizer/optimizer.h"

// The smallest model that trains: y = w . x, squared error, in "layers" of unequal size. A sample
// is a function of its number, so any cut into workers and steps sees the same data.
namespace reckon {

struct LinearModel {
  explicit LinearModel(std::vector<std::size_t> layers_) : layers(std::move(layers_)) {
    for (const std::size_t n : layers) count += n;
    values.resize(count);
    gradients.resize(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = 0.01F * float(i % 7);
  }
  ParameterView view() { return {values, gradients}; }
  std::vector<TrainedRange> all_trained() const { return {{0, count, true}}; }

  static float input(std::int64_t sample, std::size_t i) {
    const std::int64_t at[] = {sample, std::int64_t(i)};
    return float(XXH3_64bits(at, sizeof at) % 2001) / 1000 - 1;
  }
  float target(std::int64_t sample) const {
    double y = 0;
    for (std::size_t i = 0; i < count; ++i) y += std::cos(double(i)) * input(sample, i);
    return float(y);
  }

  /// This rank's part of the mean loss over `global_batch` samples, and of its gradient.
  double forward_backward(std::int64_t first_sample, int batch, int global_batch) {
    gradients.assign(count, 0);
    double loss = 0;
    for (std::int64_t s = first_sample; s < first_sample + batch; ++s) {
      double y = 0;
      for (std::size_t i = 0; i < count; ++i) y += double(values[i]) * input(s, i);
      const double error = y - target(s);
      loss += error * error / global_batch;
      for (std::size_t i = 0; i < count; ++i)
        gradients[i] += float(2 * error / global_batch) * input(s, i);
    }
    return loss;
  }
  /// Tells the exchange of all layers, last first.
  void announce(GradientExchange& exchange) const {
    std::size_t end = count;
    for (auto n = layers.rbegin(); n != layers.rend(); ++n) {
      exchange.gradient_ready({end - *n, *n});
      end -= *n;
    }
  }
  std::string digest() const {
    return fmt::format("{:016x}", XXH3_64bits(values.data(), values.size() * sizeof(float)));
  }

  std::vector<std::size_t> layers;
  std::size_t count = 0;
  std::vector<float> values, gradients;
};

/// Trains `steps` steps of `batch` samples a rank; the ranks' samples of a step follow each other.
inline void train(LinearModel& model, GradientExchange& exchange, int rank, int ranks, int batch,
                  int steps, double learning_rate) {
  exchange.start(model.view());
  for (std::int64_t step = 0; step < steps; ++step) {
    model.forward_backward((step * ranks + rank) * batch, batch, batch * ranks);
    model.announce(exchange);
    exchange.finish_step(step, learning_rate);
  }
}

}  // namespace reckon
