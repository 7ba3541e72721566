#include "executor/probe/model_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/probe/numbers.h"
#include "executor/probe/probe.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// Where the shares of layers alike are gathered.
struct Candidate {
  ProbedLayer probed;
  Flops share{};
};

/// Empty kind: not of those that are measured.
ProbeRecord record_of_layer(const Layer& layer, const LayerGeometry& g) {
  ProbeRecord r;
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

bool alike(const ProbedLayer& a, const ProbedLayer& b) {
  const ProbeRecord &x = a.record, &y = b.record;
  return x.kind == y.kind && x.m == y.m && x.n == y.n && x.k == y.k && x.flops == y.flops &&
         a.geometry.inputs == b.geometry.inputs && a.geometry.output == b.geometry.output;
}

std::vector<Candidate> candidates_of(const ModelGraph& model, std::int64_t batch) {
  std::vector<Candidate> all;
  const auto counts = model.counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Layer& layer = model.layers()[i];
    LayerGeometry geometry = geometry_of(model, layer, batch);
    Candidate c{{record_of_layer(layer, geometry), &layer, std::move(geometry)}, {}};
    ProbeRecord& record = c.probed.record;
    if (record.kind.empty()) continue;
    record.item = fmt::format("{} of {}", layer.name, model.name());
    record.flops = counts[i].forward * double(batch);
    c.share = record.flops;
    const auto same = std::ranges::find_if(
        all, [&](const Candidate& other) { return alike(c.probed, other.probed); });
    if (same == all.end())
      all.push_back(std::move(c));
    else
      same->share += c.share;
  }
  std::ranges::stable_sort(
      all, [](const Candidate& a, const Candidate& b) { return a.share > b.share; });
  return all;
}

double elements_of(const ModelGraph& model, const ProbedLayer& layer) {
  const LayerCount& count = model.counts()[index(layer.layer->id)];
  return double(count.weights_read) +
         double(layer.geometry.batch) * (count.elements_in + count.elements_out);
}

void measure(const ProbeBench& bench, const ModelGraph& model, ProbedLayer& probed) {
  const LayerGeometry& g = probed.geometry;
  const auto runner = make_runner<float>(*probed.layer, g);
  std::vector<AlignedBuffer<float>> inputs;
  LayerMemory<float> memory;
  for (const Shape& shape : g.inputs) {
    inputs.push_back(numbers<float>(g.batch * elements(shape)));
    memory.inputs.push_back(inputs.back().data());
  }
  const AlignedBuffer<float> weights = numbers<float>(weights_of(model, probed));
  AlignedBuffer<float> output(std::size_t(g.batch * elements(g.output)));
  AlignedBuffer<float> scratch(std::size_t(runner->scratch_elements(bench.workers.count())));
  memory.output = output.data();
  memory.weight = weights.data();
  // Any numbers; there are as many and more.
  memory.bias = has_bias(*probed.layer) ? weights.data() : nullptr;
  memory.scratch = scratch.data();
  const PassState pass{.workers = &bench.workers};
  probed.record.precision = "fp32";
  probed.record.threads = bench.workers.count();
  summarize(repeat_timed(bench.rule, 1, [&] { runner->forward(memory, pass); }), probed.record);
}

}  // namespace

bool has_bias(const Layer& layer) {
  return std::visit(
      overloaded{[](const Linear& op) { return op.bias; }, [](const Conv2d& op) { return op.bias; },
                 [](const auto&) { return false; }},
      layer.op);
}

std::int64_t weights_of(const ModelGraph& model, const ProbedLayer& layer) {
  const LayerCount& count = model.counts()[index(layer.layer->id)];
  return std::max(count.parameters, count.weights_read);
}

std::vector<ProbedLayer> layers_to_probe(const ModelGraph& model, std::int64_t batch,
                                         const LayerLimits& limits) {
  std::vector<Candidate> all = candidates_of(model, batch);
  std::vector<ProbedLayer> out;
  for (const char* kind : {"convolution", "attention", "matrix_product"}) {
    int taken = 0;
    for (Candidate& c : all) {
      if (c.probed.record.kind != kind || taken == limits.most) continue;
      if (c.probed.record.flops > limits.flops || elements_of(model, c.probed) > limits.elements)
        continue;
      out.push_back(std::move(c.probed));
      ++taken;
    }
  }
  return out;
}

std::vector<ProbeRecord> probe_model(const ProbeBench& bench, const ModelGraph& model,
                                     std::int64_t batch, int most) {
  constexpr double kMostElements = 5e8;  // 2 GB of floats
  const ProbeRecord product = probe_reference_product(bench);
  const FlopsPerSecond rate = product.flops / product.min;
  std::vector<ProbeRecord> out;
  for (ProbedLayer& layer :
       layers_to_probe(model, batch,
                       {.flops = rate * (kLongestInBudgets * bench.rule.budget),
                       .elements = kMostElements,
                       .most = most})) {
    measure(bench, model, layer);
    out.push_back(std::move(layer.record));
  }
  return out;
}

}  // namespace reckon
