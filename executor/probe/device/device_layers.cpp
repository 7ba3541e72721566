#include <algorithm>

#include "executor/cuda/layers/runner.h"
#include "executor/probe/device/device_probe.h"
#include "executor/probe/model_layers.h"
#include "executor/train/device/layers.h"

namespace reckon {
namespace {

void measure(const DeviceBench& bench, const ModelGraph& model, ProbedLayer& probed) {
  const LayerGeometry& g = probed.geometry;
  const auto runner = cuda::make_device_runner<Bf16>(*probed.layer, g);
  std::vector<cuda::DeviceBuffer<Bf16>> inputs;
  cuda::DeviceLayerMemory<Bf16> memory;
  for (const Shape& shape : g.inputs) {
    inputs.push_back(device_numbers<Bf16>(g.batch * elements(shape)));
    memory.inputs.push_back(inputs.back().data());
  }
  cuda::DeviceBuffer<Bf16> weights = device_numbers<Bf16>(weights_of(model, probed));
  cuda::DeviceBuffer<Bf16> output(g.batch * elements(g.output));
  cuda::DeviceBuffer<std::byte> scratch(runner->scratch_bytes());
  memory.output = output.data();
  memory.weight = weights.data();
  memory.bias = has_bias(*probed.layer) ? weights.data() : nullptr;
  memory.scratch = scratch.data();
  cuda::DevicePass pass;
  pass.products = &bench.products;
  pass.stream = bench.stream;
  probed.record.device = bench.device;
  probed.record.precision = "bf16";
  measure_queued(
      bench, [&] { runner->forward(memory, pass); }, probed.record);
}

}  // namespace

std::vector<ProbeRecord> probe_device_model(const DeviceBench& bench, const ModelGraph& model,
                                            std::int64_t batch, int most) {
  constexpr double kMostElements = 2e9;  // 4 GB
  constexpr Flops kMost{2e14};           // a second or so of a device
  std::vector<ProbeRecord> out;
  for (ProbedLayer& layer :
       layers_to_probe(model, batch, {.flops = kMost, .elements = kMostElements, .most = most})) {
    if (!reason_not_on_device(*layer.layer, model.layers()).empty()) continue;
    measure(bench, model, layer);
    out.push_back(std::move(layer.record));
  }
  return out;
}

}  // namespace reckon
