#include "sim/step/compute.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/step/element_sizes.h"
#include "sim/step/measured_compute.h"

namespace reckon {
namespace {

struct Pass {
  Flops flops{};
  Bytes bytes{};
  int kernels = 1;    // that the host issues
  double serial = 1;  // of the device: a recurrence has one a step
};

double flop_efficiency(const Efficiency& e, const LayerWork& layer) {
  switch (layer.work) {
    case WorkKind::convolution:
      return e.convolution.value * (layer.small_square ? e.winograd.value : 1);
    case WorkKind::matmul:
      return e.matmul.value;
    case WorkKind::attention:
      return e.attention.value;
    case WorkKind::memory:
      return 0;
  }
  return 0;
}

Seconds pass_time(const Pass& pass, const Processor& core, double efficiency, bool& by_memory) {
  const Seconds memory = pass.bytes / (core.memory_bandwidth * core.efficiency.memory.value);
  Seconds arithmetic{};
  if (efficiency > 0 && pass.flops.v > 0) {
    const Flops saturated = pass.flops + pass.serial * core.efficiency.half_size.value;
    arithmetic = saturated / (core.peak * efficiency);
  }
  by_memory = memory > arithmetic;
  return std::max(memory, arithmetic) + pass.serial * core.efficiency.launch.value;
}

struct LayerPasses {
  Pass forward, backward;
};

LayerPasses passes_of(const LayerWork& work, const ElementSizes& size, double batch) {
  constexpr Bytes kWide{4};
  const bool converts = work.in_fp32 && size.activation < kWide;
  const Bytes element = converts ? kWide : size.activation;
  const Bytes in = work.elements_in * batch * element;
  const Bytes out = work.elements_out * batch * element;
  // What goes in, and its gradient, read in one width and written in the other.
  const Bytes conversion =
      converts ? work.elements_in * batch * (size.activation + kWide) : Bytes{};
  const double weights = work.weights_read;
  // Of four bits: read, written wide, read again by the product.
  const Bytes weight = work.four_bit ? kFourBitWeight + 2 * size.activation : size.weight;
  LayerPasses p;
  p.forward.flops = work.forward * batch;
  p.forward.bytes = in + out + conversion + weights * weight;
  p.backward.flops = work.backward * batch;
  p.forward.serial = work.steps;
  if (!work.has_backward) {
    p.backward.kernels = 0;
    p.backward.serial = 0;
    return p;
  }
  p.backward.bytes = 2 * in + out + conversion + weights * size.gradient;
  if (work.frozen && weights > 0 && work.work != WorkKind::memory) {
    // Gradient of the input alone: output gradient and weights in, input gradient out.
    p.backward.bytes = in + out + weights * weight;
  } else if (weights > 0 && work.work != WorkKind::memory) {
    // Two kernels: gradient of the input (output gradient and weights in, input gradient out),
    // gradient of the weights (output gradient and saved input in, weight gradient out).
    p.backward.kernels = 2;
    p.backward.bytes += out + weights * size.weight;
  }
  p.backward.serial = p.backward.kernels + work.steps - 1;
  return p;
}

}  // namespace

Seconds host_time(double dispatches, const Processor& processor) {
  return dispatches * processor.efficiency.host.value;
}

Processor one_core(const Processor& p) {
  Processor core = p;
  core.peak = p.peak / double(p.cores);
  core.memory_bandwidth = p.memory_bandwidth / double(p.cores);
  core.cores = 1;
  return core;
}

LayerWork work_of(const LayerCount& c) {
  return {.forward = c.forward,
          .backward = c.backward,
          .elements_in = c.elements_in,
          .elements_out = c.elements_out,
          .weights_read = double(c.weights_read),
          .work = c.work,
          .has_backward = c.has_backward,
          .frozen = c.frozen,
          .four_bit = c.four_bit,
          .depthwise = c.depthwise,
          .small_square = c.small_square,
          .in_fp32 = c.in_fp32,
          .steps = double(c.steps)};
}

namespace {

/// CPUs imitate 16 bits: outputs, and backward the gradients of inputs, are rounded in place.
LayerCost rounded(LayerCost cost, const LayerWork& work, const Processor& core, double batch) {
  constexpr Bytes kReadAndWritten{8};
  const auto time = [&](double elements) {
    const Bytes bytes = elements * batch * kReadAndWritten;
    return core.measured != nullptr
               ? core.measured->network * core.measured->streams.time(bytes)
               : bytes / (core.memory_bandwidth * core.efficiency.memory.value);
  };
  cost.forward += time(work.elements_out);
  if (work.has_backward) cost.backward += time(work.elements_in);
  return cost;
}

LayerCost cost_in_one_precision(const LayerWork& work, const ElementSizes& size,
                                const Processor& core, double batch) {
  if (core.measured != nullptr) return measured_cost(work, batch, *core.measured);
  const auto passes = passes_of(work, size, batch);
  const double efficiency = work.depthwise ? 0 : flop_efficiency(core.efficiency, work);
  LayerCost cost;
  cost.forward = pass_time(passes.forward, core, efficiency, cost.forward_by_memory);
  cost.backward = pass_time(passes.backward, core, efficiency, cost.backward_by_memory);
  cost.forward_kernels = passes.forward.kernels;
  cost.backward_kernels = passes.backward.kernels;
  return cost;
}

}  // namespace

LayerCost cost_of(const LayerWork& work, const ElementSizes& size, const Processor& core,
                  double batch) {
  const LayerCost cost = cost_in_one_precision(work, size, core, batch);
  return size.rounds ? rounded(cost, work, core, batch) : cost;
}

bool recomputed(const Layer& layer, WorkKind work, Recompute mode) {
  return mode == Recompute::full ? !layer.group.empty()
                                 : mode == Recompute::selective && work == WorkKind::attention;
}

Seconds update_time(double parameters, const ElementSizes& size, const Processor& core) {
  // Muon's products, behind the pass over the parameters.
  const double rate = core.efficiency.matmul.value;
  const Seconds products = size.update_flops.v > 0 && rate > 0
                               ? parameters * size.update_flops / (core.peak * rate)
                               : Seconds{};
  if (core.measured != nullptr)
    return core.measured->streams.time(parameters * size.update_traffic()) + products;
  return parameters * size.update_traffic() /
             (core.memory_bandwidth * core.efficiency.memory.value) +
         core.efficiency.launch.value + products;
}

Processor processor_of(const PlannedPool& pool, Precision precision) {
  Processor p;
  p.efficiency = pool.efficiency;
  if (!pool.accelerator) {
    // A worker on CPUs: cpu_flops_per_vcpu is an achieved rate, not a peak.
    const double vcpus = pool.machine.vcpus;
    p.peak = FlopsPerSecond{pool.cpu_flops_per_vcpu.value * vcpus};
    p.memory_bandwidth = pool.cpu_memory_bandwidth_per_vcpu.value * vcpus;
    p.efficiency.convolution = p.efficiency.matmul = p.efficiency.attention = p.efficiency.memory =
        Fact<double>{1.0};
    p.efficiency.half_size = Fact<Flops>{};
    p.measured = pool.measured_rates.get();
    return p;
  }
  const Accelerator& a = *pool.accelerator;
  auto peak = a.peak_for(precision);
  if (!peak) peak = a.peak_for(Precision::fp32);
  RECKON_CHECK(peak.has_value());
  p.peak = peak->value;
  p.memory_bandwidth = a.memory_bandwidth.value;
  p.cores = std::max(1, a.cores_per_device);
  return p;
}

namespace {

void wait_for_host(ComputeTimes& times, Seconds host) {
  const Seconds device = times.total();
  if (device >= host || device.count() <= 0) return;
  const double longer = host / device;
  for (LayerTime& t : times.layers) {
    t.forward *= longer;
    t.backward *= longer;
  }
  times.forward *= longer;
  times.backward *= longer;
  times.waiting_for_host = host - device;
}

}  // namespace

ComputeTimes compute_times(const PlannedWorkload& job, const Processor& processor, double batch) {
  const ElementSizes size = element_sizes(job);
  const Processor core = one_core(processor);
  const double core_batch = batch / processor.cores;
  const auto layers = job.model.layers();
  const auto counts = job.model.counts();
  ComputeTimes times;
  times.layers.reserve(layers.size());
  int dispatches = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerCount& count = counts[l];
    if (count.forward.v == 0 && count.elements_out == 0) continue;  // input, view
    const LayerCost cost = cost_of(work_of(count), size, core, core_batch);
    LayerTime t;
    t.layer = layers[l].id;
    t.forward = cost.forward;
    t.backward = cost.backward;
    t.bound_by_memory = cost.backward_by_memory;
    if (cost.forward_by_memory) times.bound_by_memory += t.forward;
    if (cost.backward_by_memory) times.bound_by_memory += t.backward;
    dispatches += cost.forward_kernels + cost.backward_kernels;
    const bool of_head =
        layers[l].group == layers.back().group;  // no block: nothing of it is dropped
    if (!of_head && recomputed(layers[l], count.work, job.strategy.layout.recompute)) {
      dispatches += cost.forward_kernels;
      t.backward += t.forward;
      if (cost.forward_by_memory) times.bound_by_memory += t.forward;
    }
    times.forward += t.forward;
    times.backward += t.backward;
    times.layers.push_back(t);
  }
  wait_for_host(times, host_time(dispatches, processor));
  // Every core updates its own copy of the parameters.
  times.update = update_time(double(job.model.trainable_parameters()), size, core);
  return times;
}

Seconds forward_time(const ModelGraph& model, Precision precision, const Processor& processor,
                     double batch) {
  const ElementSizes size = forward_sizes(precision);
  const Processor core = one_core(processor);
  const double core_batch = batch / processor.cores;
  Seconds device{};
  int dispatches = 0;
  for (const LayerCount& count : model.counts()) {
    if (count.forward.v == 0 && count.elements_out == 0) continue;  // input, view
    const LayerCost cost = cost_of(work_of(count), size, core, core_batch);
    device += cost.forward;
    dispatches += cost.forward_kernels;
  }
  return std::max(device, host_time(dispatches, processor));
}

}  // namespace reckon
