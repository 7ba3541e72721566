#include <fmt/format.h>

#include <algorithm>

#include "executor/probe/numbers.h"
#include "executor/probe/probe.h"
#include "executor/train/layer_runner.h"
#include "executor/train/parameters.h"
#include "sim/catalog/model_shapes.h"

namespace reckon {
namespace {

constexpr Bytes kLargest{2e9};  // of its tensors

/// A layer to measure, for all of its shape.
struct Candidate {
  ProbeRecord record;
  const Layer* layer = nullptr;
  Flops share{};  // of all layers alike
};

LayerGeometry geometry_of(const ModelGraph& model, const Layer& layer, std::int64_t batch) {
  LayerGeometry g{.batch = batch, .inputs = {}, .output = layer.output};
  for (const LayerId input : layer.inputs) g.inputs.push_back(model.layers()[index(input)].output);
  return g;
}

/// Empty kind: not of those that are measured.
ProbeRecord record_of(const Layer& layer, const LayerGeometry& g) {
  ProbeRecord r;
  r.precision = "fp32";
  r.samples = g.batch;
  const std::int64_t rows = g.batch * rows_of(layer.output);
  if (const auto* conv = std::get_if<Conv2d>(&layer.op)) {
    r.kind = "convolution";
    r.m = rows;
    r.n = conv->out;
    r.k = conv->in / conv->groups * conv->kernel_h * conv->kernel_w;
  } else if (std::holds_alternative<Attention>(layer.op)) {
    r.kind = "attention";
  } else if (const auto* linear = std::get_if<Linear>(&layer.op)) {
    r.kind = "matrix_product";
    r.m = rows;
    r.n = linear->out;
    r.k = linear->in;
  }
  return r;
}

bool alike(const Candidate& a, const Candidate& b, const ModelGraph& model, std::int64_t batch) {
  const LayerGeometry x = geometry_of(model, *a.layer, batch),
                      y = geometry_of(model, *b.layer, batch);
  return a.record.kind == b.record.kind && a.record.m == b.record.m && a.record.n == b.record.n &&
         a.record.k == b.record.k && a.record.flops == b.record.flops && x.inputs == y.inputs &&
         x.output == y.output;
}

std::vector<Candidate> candidates_of(const ModelGraph& model, std::int64_t batch) {
  std::vector<Candidate> all;
  const auto counts = model.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Layer& layer = model.layers()[i];
    Candidate c{record_of(layer, geometry_of(model, layer, batch)), &layer, {}};
    if (c.record.kind.empty()) continue;
    c.record.item = fmt::format("{} of {}", layer.name, model.name());
    c.record.flops = counts[i].forward * double(batch);
    c.share = c.record.flops;
    const auto same = std::ranges::find_if(
        all, [&](const Candidate& other) { return alike(c, other, model, batch); });
    if (same == all.end())
      all.push_back(std::move(c));
    else
      same->share += c.share;
  }
  std::ranges::stable_sort(
      all, [](const Candidate& a, const Candidate& b) { return a.share > b.share; });
  return all;
}

Bytes tensors(const ModelGraph& model, const Candidate& c, std::int64_t batch) {
  const LayerCount& count = model.counts()[index(c.layer->id)];
  const double activations = count.elements_in + count.elements_out;
  return Bytes{sizeof(float) * (double(count.weights_read) + double(batch) * activations)};
}

void measure(const ProbeBench& bench, const ModelGraph& model, std::int64_t batch, Candidate& c) {
  const LayerGeometry g = geometry_of(model, *c.layer, batch);
  const auto runner = make_runner<float>(*c.layer, g);
  std::vector<AlignedBuffer<float>> inputs;
  LayerMemory<float> memory;
  for (const Shape& shape : g.inputs) {
    inputs.push_back(numbers<float>(batch * elements(shape)));
    memory.inputs.push_back(inputs.back().data());
  }
  const LayerCount& count = model.counts()[index(c.layer->id)];
  const AlignedBuffer<float> weights =
      numbers<float>(std::max(count.parameters, count.weights_read));
  AlignedBuffer<float> output(std::size_t(batch * elements(g.output)));
  AlignedBuffer<float> scratch(std::size_t(runner->scratch_elements(bench.workers.count())));
  const bool bias = std::visit(
      overloaded{[](const Linear& op) { return op.bias; }, [](const Conv2d& op) { return op.bias; },
                 [](const auto&) { return false; }},
      c.layer->op);
  memory.output = output.data();
  memory.weight = weights.data();
  memory.bias = bias ? weights.data() : nullptr;  // any numbers; there are as many and more
  memory.scratch = scratch.data();
  const PassState pass{.workers = &bench.workers};
  c.record.threads = bench.workers.count();
  summarize(repeat_timed(bench.rule, 1, [&] { runner->forward(memory, pass); }), c.record);
}

}  // namespace

std::vector<ProbeRecord> probe_model(const ProbeBench& bench, const ModelGraph& model,
                                     std::int64_t batch, int most) {
  const ProbeRecord product = probe_reference_product(bench);
  const FlopsPerSecond rate = product.flops / product.min;
  std::vector<Candidate> all = candidates_of(model, batch);
  std::vector<ProbeRecord> out;
  for (const char* kind : {"convolution", "attention", "matrix_product"}) {
    int measured = 0;
    for (Candidate& c : all) {
      if (c.record.kind != kind || measured == most) continue;
      if (c.record.flops / rate > kLongestInBudgets * bench.rule.budget ||
          tensors(model, c, batch) > kLargest)
        continue;
      measure(bench, model, batch, c);
      out.push_back(c.record);
      ++measured;
    }
  }
  return out;
}

}  // namespace reckon
