#include "sim/step/measured_compute.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace reckon {
namespace {

constexpr Bytes kElement{4};
/// Of what one task of a convolution keeps in the second cache
/// (executor/train/layers/convolution.cpp).
constexpr Bytes kInCache{1 << 20};
constexpr double kHeadWidth = 64;  // of an attention head, of most transformers

Seconds pass_over(double elements, const WorkerRates& rates) {
  return elements > 0 ? rates.streams.time(elements * kElement) : Seconds{};
}

struct ProductShape {
  double m = 0, n = 0, k = 0;
};

/// By all threads together, or as tasks of one thread each.
Seconds product(const ProductShape& s, bool in_tasks, const WorkerRates& rates) {
  if (!in_tasks) return rates.products.time(s.m, s.n, s.k);
  return rates.each.time(s.m, s.n, s.k) / double(rates.threads);
}

/// A layer with weights; a recurrence has `steps` products, one after the other.
LayerCost product_cost(const LayerWork& work, double batch, const WorkerRates& rates) {
  const double rows_each = work.forward.v / (2 * work.weights_read);
  const double n = std::max(1.0, work.elements_out / rows_each);
  const double k = std::max(1.0, work.weights_read / n);
  const double rows = std::max(1.0, rows_each * batch / work.steps);
  const bool convolves = work.work == WorkKind::convolution;
  // Of a product alone, where there are no other points under an output.
  const bool patches = convolves && rows_each * k > 1.01 * work.elements_in;
  const Seconds gather =
      patches ? 2 * rows * k * kElement / rates.streams.rate(kInCache) : Seconds{};
  LayerCost cost;
  cost.forward = work.steps * (product({rows, n, k}, convolves, rates) + gather) +
                 pass_over(2 * work.elements_out * batch, rates);
  cost.forward_kernels = 1;
  const double products = std::round(work.backward.v / work.forward.v);
  if (!work.has_backward || products < 1) return cost;
  const Seconds of_weights = product({n, k, rows}, false, rates) + gather;
  const Seconds of_input = product({rows, k, n}, convolves, rates) + gather;
  if (products >= 2)
    cost.backward = work.steps * (of_weights + of_input);
  else
    cost.backward = work.steps * (work.frozen ? of_input : of_weights);
  cost.backward_kernels = products >= 2 ? 2 : 1;
  return cost;
}

LayerCost attention_cost(const LayerWork& work, double batch, const WorkerRates& rates) {
  // F = 4 s^2 h forward, s h outputs: two products of each query with each key.
  const double length = std::max(1.0, work.forward.v / (4 * work.elements_out));
  const double scores = length * work.elements_out / kHeadWidth * batch;
  const FlopsPerSecond rate = double(rates.threads) * rates.each.rate(length, length, kHeadWidth);
  const Seconds softmax = 6 * scores * kElement / rates.streams.rate(kInCache);
  LayerCost cost;
  cost.forward = work.forward * batch / rate + softmax;
  cost.forward_kernels = 1;
  if (!work.has_backward) return cost;
  cost.backward = work.backward * batch / rate + softmax;
  cost.backward_kernels = 1;
  return cost;
}

LayerCost memory_cost(const LayerWork& work, double batch, const WorkerRates& rates) {
  LayerCost cost;
  cost.forward =
      pass_over((work.elements_in + work.elements_out) * batch + work.weights_read, rates);
  cost.forward_by_memory = cost.backward_by_memory = true;
  cost.forward_kernels = 1;
  if (!work.has_backward) return cost;
  cost.backward =
      pass_over((2 * work.elements_in + work.elements_out) * batch + work.weights_read, rates);
  cost.backward_kernels = 1;
  return cost;
}

}  // namespace

namespace {

LayerCost layer_cost(const LayerWork& work, double batch, const WorkerRates& rates) {
  const bool multiplies = work.forward.v > 0 && !work.depthwise;
  if (work.work == WorkKind::attention && multiplies) return attention_cost(work, batch, rates);
  if (work.work != WorkKind::memory && multiplies && work.weights_read > 0)
    return product_cost(work, batch, rates);
  return memory_cost(work, batch, rates);
}

}  // namespace

LayerCost measured_cost(const LayerWork& work, double batch, const WorkerRates& rates) {
  LayerCost cost = layer_cost(work, batch, rates);
  cost.forward *= rates.network;
  cost.backward *= rates.network;
  return cost;
}

void set_measured_passes(Plan& plan, Seconds passes) {
  const PlannedWorkload& job = plan.only_job();
  for (PlannedPool& pool : plan.pools) {
    if (!pool.measured_rates) continue;
    const Seconds modelled = passes_time(pool, job);
    WorkerRates rates = *pool.measured_rates;
    rates.network *= passes / modelled;
    pool.measured_rates = std::make_shared<const WorkerRates>(std::move(rates));
  }
}

Seconds passes_time(const PlannedPool& pool, const PlannedWorkload& job) {
  return compute_times(job, processor_of(pool, job.precision), job.strategy.layout.micro_batch)
      .total();
}

}  // namespace reckon
