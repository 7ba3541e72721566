#include "sim/model/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/model/graph_check.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

// Ten thousand times the largest network of 2026; below it, counts are exact in a double.
constexpr double kLargestCount = 1e15;

/// One pass for each kind of mistake. What follows from a mistake that has been named is not
/// reported again: a layer whose inputs' shapes are unknown is passed over, and unused layers are
/// looked for only where all inputs are right.
class Checker {
 public:
  Checker(const Shape& input, std::vector<Layer>& layers)
      : input_(input), layers_(layers), unplaced_(layers.size(), false) {}

  Diagnostics run() {
    if (layers_.empty()) {
      errors_.push_back({.what = "the network has no layers"});
      return std::move(errors_);
    }
    check_input();
    check_names();
    check_order();
    for (std::size_t i = 0; i < layers_.size(); ++i) check_shape(i);
    check_parameters();
    for (std::size_t i = 0; i < layers_.size(); ++i) check_tie(i);
    check_loss();
    return std::move(errors_);
  }

 private:
  void error(std::size_t i, std::string_view what, std::string hint = {}) {
    errors_.push_back({.what = fmt::format("layer '{}' ({}): {}", layers_[i].name,
                                           kind_name(layers_[i].op), what),
                       .hint = std::move(hint)});
  }

  void check_input() {
    double size = 1;
    for (std::int64_t n : input_) size *= static_cast<double>(n);
    bool positive = !input_.empty();
    for (std::int64_t n : input_) positive = positive && n > 0;
    if (!positive || size > kLargestCount) {
      errors_.push_back({.what = fmt::format("the input of one sample is {}", to_text(input_)),
                         .hint = "images are (C, H, W), sequences (T), records (features)"});
      unplaced_.assign(layers_.size(), true);
    }
  }

  void check_names() {
    std::unordered_set<std::string_view> seen;  // only asked, never walked
    seen.reserve(layers_.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const std::string& name = layers_[i].name;
      if (name.empty()) {
        errors_.push_back(
            {.what = fmt::format("layer {} ({}) has no name", i, kind_name(layers_[i].op))});
      } else if (!seen.insert(name).second) {
        error(i, "the name is taken by an earlier layer", "names are unique in a network");
      }
    }
  }

  void check_order() {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (LayerId id : layers_[i].inputs) {
        if (index(id) < i) continue;
        unplaced_[i] = disordered_ = true;
        if (index(id) >= layers_.size()) {
          error(i, fmt::format("takes layer {}, which does not exist", index(id)),
                fmt::format("there are {} layers, counted from 0", layers_.size()));
        } else {
          report_later_input(i, index(id));
        }
      }
    }
  }

  void report_later_input(std::size_t i, std::size_t input) {
    std::vector<std::size_t> cycle = cycle_of(layers_, i);
    const bool around = std::find(cycle.begin(), cycle.end(), input) != cycle.end();
    if (!around) {
      error(i, fmt::format("takes '{}', which stands later", layers_[input].name),
            "layers stand in the order in which they run: move it before");
      return;
    }
    std::vector<std::string_view> names;
    for (std::size_t j : cycle) names.push_back(layers_[j].name);
    error(i, fmt::format("takes '{}', which depends on it", layers_[input].name),
          fmt::format("a network has no cycles; on this one: {}", fmt::join(names, ", ")));
  }

  void check_shape(std::size_t i) {
    Layer& layer = layers_[i];
    layer.output.clear();
    if (auto e = check_attributes(layer.op)) {
      error(i, e->what, e->hint);
      return;
    }
    if (weight_elements(layer.op) > kLargestCount) {
      error(i, fmt::format("has {:.3g} parameters", weight_elements(layer.op)),
            "more than any machine can hold");
      return;
    }
    if (unplaced_[i]) return;
    shapes_.clear();
    for (LayerId id : layer.inputs) {
      if (layers_[index(id)].output.empty()) return;
      shapes_.push_back(&layers_[index(id)].output);
    }
    auto shape = infer_shape(layer.op, shapes_, input_);
    if (!shape) {
      error(i, shape.error().what, shape.error().hint);
      return;
    }
    double size = 1;
    for (std::int64_t n : *shape) size *= static_cast<double>(n);
    if (size > kLargestCount) {
      error(i, fmt::format("its output {} has {:.3g} elements", to_text(*shape), size));
      return;
    }
    layer.output = std::move(*shape);
  }

  /// Of all layers together, as of each: their sum is an integer of 64 bits.
  void check_parameters() {
    if (!errors_.empty()) return;  // of wrong attributes there is no count
    double sum = 0;
    for (const Layer& layer : layers_) sum += weight_elements(layer.op);
    if (sum > kLargestCount)
      errors_.push_back({.what = fmt::format("the network has {:.3g} parameters", sum),
                         .hint = "more than any machine can hold"});
  }

  /// (rows, columns) of the matrix that a tie shares; nullopt: nothing to share.
  static std::optional<std::pair<std::int64_t, std::int64_t>> matrix(const LayerOp& op) {
    if (const Linear* l = std::get_if<Linear>(&op)) return std::pair{l->out, l->in};
    if (const Embedding* e = std::get_if<Embedding>(&op)) return std::pair{e->rows, e->width};
    if (const Conv2d* c = std::get_if<Conv2d>(&op))
      return std::pair{c->out, c->in / c->groups * c->kernel_h * c->kernel_w};
    return std::nullopt;
  }

  void check_tie(std::size_t i) {
    if (!layers_[i].tied_to) return;
    const std::size_t owner = index(*layers_[i].tied_to);
    if (owner >= i) {
      error(i, fmt::format("is tied to layer {}, which is not an earlier layer", owner));
      return;
    }
    const auto own = matrix(layers_[i].op), other = matrix(layers_[owner].op);
    if (!own || !other || layers_[owner].tied_to) {
      error(i,
            fmt::format("cannot share the weights of '{}' ({})", layers_[owner].name,
                        kind_name(layers_[owner].op)),
            "Linear, Embedding and Conv2d can be tied, to a layer that owns its weights");
    } else if (*own != *other) {
      error(i, fmt::format("has weights of ({}, {}), those of '{}' are ({}, {})", own->first,
                           own->second, layers_[owner].name, other->first, other->second));
    }
  }

  static bool is_loss(const LayerOp& op) {
    return std::holds_alternative<SoftmaxCrossEntropy>(op) ||
           std::holds_alternative<SigmoidCrossEntropy>(op) ||
           std::holds_alternative<MeanSquaredError>(op);
  }

  /// The one layer that all others serve: the last loss. Others' losses must be summed into it.
  void check_loss() {
    std::vector<bool> loss(layers_.size());
    std::optional<std::size_t> last;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      loss[i] = is_loss(layers_[i].op);
      const bool passes_on = std::holds_alternative<Add>(layers_[i].op) ||
                             std::holds_alternative<ScaleBy>(layers_[i].op);
      if (passes_on && !layers_[i].inputs.empty()) {
        loss[i] = true;
        for (LayerId id : layers_[i].inputs) loss[i] = loss[i] && index(id) < i && loss[index(id)];
      }
      if (loss[i]) last = i;
    }
    if (!last) {
      errors_.push_back(
          {.what = "the network has no loss", .hint = "end it with SoftmaxCrossEntropy"});
      return;
    }
    if (disordered_) return;
    const std::vector<bool> used = leads_to(layers_, *last);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (used[i]) continue;
      if (loss[i]) {
        error(i, fmt::format("is a second loss beside '{}'", layers_[*last].name),
              "add the losses up");
      } else {
        error(
            i,
            fmt::format("is not used: no path leads from it to the loss '{}'", layers_[*last].name),
            "remove it or take it as an input");
      }
    }
  }

  const Shape& input_;
  std::vector<Layer>& layers_;
  std::vector<bool> unplaced_;  // some input is not an earlier layer
  bool disordered_ = false;
  std::vector<const Shape*> shapes_;
  Diagnostics errors_;
};

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
  Diagnostics errors = Checker(input, layers).run();
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  ModelGraph graph;
  graph.name_ = std::move(name);
  graph.unit_ = unit;
  // Tokens (T) or (T, D), or frames of sound (C, H, T).
  const std::int64_t steps = input.size() == 3 ? input.back() : input[0];
  graph.sequence_length_ = unit == SampleUnit::sequence ? steps : 1;
  graph.layers_ = std::move(layers);
  graph.counts_ = count_all(graph.layers_);
  return graph;
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
