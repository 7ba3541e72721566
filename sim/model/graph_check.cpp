#include "sim/model/graph_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <unordered_set>

#include "sim/model/counts.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

// Ten thousand times the largest network of 2026; below it, counts are exact in a double.
constexpr double kLargestCount = 1e15;

/// One pass for each kind of mistake. What follows from a mistake that has been named is not
/// reported again: a layer whose inputs' shapes are unknown is passed over, and unused layers are
/// looked for only where all inputs are right.
class GraphChecker {
 public:
  GraphChecker(const Shape& input, std::vector<Layer>& layers, const LayerGraph& graph)
      : input_(input), layers_(layers), graph_(graph), unplaced_(layers.size(), false) {}

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
    if (cycles_.empty()) cycles_ = graph_.cycles();
    if (cycles_[input] != cycles_[i]) {
      error(i, fmt::format("takes '{}', which stands later", layers_[input].name),
            "layers stand in the order in which they run: move it before");
      return;
    }
    std::vector<std::string_view> names{layers_[i].name};
    for (std::size_t j = 0; j < layers_.size(); ++j)
      if (j != i && cycles_[j] == cycles_[i]) names.push_back(layers_[j].name);
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
    const std::vector<bool> used = graph_.ancestors(*last);
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
  const LayerGraph& graph_;
  std::vector<std::size_t> cycles_;  // LayerGraph::cycles(), once somebody asked
  std::vector<bool> unplaced_;       // some input is not an earlier layer
  bool disordered_ = false;
  std::vector<const Shape*> shapes_;
  Diagnostics errors_;
};

}  // namespace

Diagnostics check_graph(const Shape& input, std::vector<Layer>& layers, const LayerGraph& graph) {
  return GraphChecker(input, layers, graph).run();
}

}  // namespace reckon
