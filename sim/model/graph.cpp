#include "sim/model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <numeric>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/model/graph_check.h"
#include "sim/model/layer_graph.h"

namespace reckon {
namespace {

/// Marks, for each tensor that some backward pass needs, the layer that made it.
void count_saved(std::span<const Layer> layers, const std::vector<bool>& gradient,
                 std::span<LayerCount> counts) {
  std::vector<std::size_t> maker(layers.size());  // of the tensor that the layer hands on
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    maker[i] = is_view(layer.op) ? maker[index(layer.inputs[0])] : i;
    const auto keep = [&](std::size_t tensor) {
      counts[maker[tensor]].saved_elements =
          static_cast<double>(elements(layers[maker[tensor]].output));
    };
    if (!gradient[i]) continue;  // it has no backward pass
    if (keeps_output(layer.op)) keep(i);
    if (keeps_inputs(layer.op, layer.frozen)) {
      for (LayerId id : layer.inputs) keep(index(id));
    }
  }
}

std::vector<LayerCount> count_all(std::span<const Layer> layers) {
  std::vector<LayerCount> counts(layers.size());
  std::vector<bool> gradient(layers.size());
  std::vector<const Shape*> shapes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bool input_has_gradient = false;
    shapes.clear();
    for (LayerId id : layers[i].inputs) {
      shapes.push_back(&layers[index(id)].output);
      input_has_gradient = input_has_gradient || gradient[index(id)];
    }
    counts[i] = count_layer(layers[i], shapes, input_has_gradient);
    gradient[i] = input_has_gradient || (weight_elements(layers[i].op) > 0 && !layers[i].frozen);
  }
  count_saved(layers, gradient, counts);
  return counts;
}

}  // namespace

std::int64_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string to_text(const Shape& shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

Expected<ModelGraph> ModelGraph::make(std::string name, SampleUnit unit, Shape input,
                                      std::vector<Layer> layers) {
  for (std::size_t i = 0; i < layers.size(); ++i)
    layers[i].id = LayerId{static_cast<std::uint32_t>(i)};
  auto edges = std::make_shared<const LayerGraph>(layers);
  Diagnostics errors = check_graph(input, layers, *edges);
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  ModelGraph graph;
  graph.name_ = std::move(name);
  graph.unit_ = unit;
  // Tokens (T) or (T, D), or frames of sound (C, H, T).
  const std::int64_t steps = input.size() == 3 ? input.back() : input[0];
  graph.sequence_length_ = unit == SampleUnit::sequence ? steps : 1;
  graph.layers_ = std::move(layers);
  graph.counts_ = count_all(graph.layers_);
  graph.graph_ = std::move(edges);
  return graph;
}

const LayerGraph& ModelGraph::graph() const {
  RECKON_CHECK(graph_ != nullptr);  // a network that make() has made
  return *graph_;
}

std::int64_t ModelGraph::parameters() const {
  std::int64_t sum = 0;
  for (const LayerCount& c : counts_) sum += c.parameters;
  return sum;
}

std::int64_t ModelGraph::active_parameters() const {
  std::int64_t sum = 0;
  for (const LayerCount& c : counts_) sum += c.active_parameters;
  return sum;
}

std::int64_t ModelGraph::trainable_parameters() const {
  std::int64_t sum = 0;
  for (const LayerCount& c : counts_) sum += c.trainable_parameters;
  return sum;
}

Flops ModelGraph::forward_flops() const {
  Flops sum{};
  for (const LayerCount& c : counts_) sum += c.forward;
  return sum;
}

Flops ModelGraph::backward_flops() const {
  Flops sum{};
  for (const LayerCount& c : counts_) sum += c.backward;
  return sum;
}

double ModelGraph::forward_macs() const {
  double sum = 0;
  for (const LayerCount& c : counts_) {
    if (c.work == WorkKind::convolution || c.work == WorkKind::matmul) sum += c.matrix.v / 2;
  }
  return sum;
}

Flops ModelGraph::model_flops() const {
  Flops sum{};
  for (const LayerCount& c : counts_) sum += c.model;
  return sum;
}

double ModelGraph::saved_elements() const {
  double sum = 0;
  for (const LayerCount& c : counts_) sum += c.saved_elements;
  return sum;
}

Bytes ModelGraph::saved_bytes(Bytes per_element) const {
  Bytes sum = per_element * saved_elements();
  for (const LayerCount& c : counts_) sum += c.saved_fixed;
  return sum;
}

}  // namespace reckon
