#include "exchange/graphs/operator_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "exchange/graphs/operator_check.h"
#include "exchange/graphs/operator_layers.h"
#include "exchange/graphs/operator_order.h"
#include "sim/model/layer_graph.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

/// Without the batch of one.
Shape of_sample(const Shape& shape) {
  if (shape.size() < 2 || shape.front() != 1) return shape;
  return Shape(shape.begin() + 1, shape.end());
}

class Importer {
 public:
  explicit Importer(const OperatorGraph& graph) : graph_(graph) {}

  Expected<ImportedGraph> run() {
    if (auto errors = check_operators(graph_); !errors.empty())
      return tl::unexpected<Diagnostics>(std::move(errors));
    const auto order = needed_operators(graph_);
    if (!order) return tl::unexpected<Diagnostics>(order.error());
    find_needed(*order);
    for (const std::string& input : graph_.inputs) add_input(input);
    for (const std::size_t i : *order) add_node(graph_.nodes[i]);
    add_losses();
    if (!errors_.empty()) return tl::unexpected<Diagnostics>(std::move(errors_));
    leave_out_unused();
    auto model = ModelGraph::make(graph_.name.empty() ? "graph" : graph_.name, unit(),
                                  sample_shape_, std::move(layers_));
    if (!model) return tl::unexpected<Diagnostics>(std::move(model.error()));
    ImportedGraph imported{std::move(*model), {}, std::move(notes_)};
    list_unmapped(imported);
    return imported;
  }

 private:
  void error(std::string what, std::string hint = {}) {
    constexpr std::size_t kMost = 20;
    if (errors_.size() < kMost)
      errors_.push_back({.what = std::move(what), .hint = std::move(hint)});
  }

  /// The values that the needed operators take, and the outputs.
  void find_needed(std::span<const std::size_t> operators) {
    needed_.insert(graph_.outputs.begin(), graph_.outputs.end());
    for (const std::size_t i : operators) {
      const GraphNode& node = graph_.nodes[i];
      if (!is_shape_kind(node.kind)) needed_.insert(node.inputs.begin(), node.inputs.end());
    }
  }

  LayerId add(const std::string& wanted, LayerOp op, std::vector<LayerId> inputs) {
    std::string name = wanted.empty() ? std::string(kind_name(op)) : wanted;
    if (const int again = ++names_[name]; again > 1) name += fmt::format(".{}", again);
    while (!taken_.insert(name).second) name += "_";
    const LayerId id{static_cast<std::uint32_t>(layers_.size())};
    layers_.push_back({.id = id,
                       .name = name,
                       .group = group_of(name),
                       .op = std::move(op),
                       .inputs = std::move(inputs)});
    return id;
  }
  /// "/layer1/layer1.0/conv1/Conv" and "layer1.0.conv1": up to the number of a block.
  static std::string group_of(const std::string& name) {
    for (std::size_t i = 1; i + 1 < name.size(); ++i) {
      const bool ends = name[i + 1] == '.' || name[i + 1] == '/' || name[i + 1] == '_';
      const bool digit = name[i] >= '0' && name[i] <= '9';
      const bool separated = name[i - 1] == '.' || name[i - 1] == '/' || name[i - 1] == '_' ||
                             (name[i - 1] >= '0' && name[i - 1] <= '9');
      if (digit && ends && separated) return name.substr(0, i + 1);
    }
    return {};
  }

  void add_input(const std::string& input) {
    if (!needed_.contains(input)) return;
    const Shape shape = of_sample(graph_.values.at(input));
    LayerOp op = InputLayer{};
    if (sample_shape_.empty()) {
      sample_shape_ = shape;
      integer_sample_ = graph_.integers.contains(input);
    } else if (shape != sample_shape_) {
      if (shape.size() == 1)
        op = ExtraInput{shape[0], 0};
      else if (shape.size() == 2)
        op = ExtraInput{shape[0], shape[1]};
      else
        op = Operator{.output = shape};
    }
    made_[input] = add(input, std::move(op), {});
    shapes_[input] = shape;
  }

  /// The weight that a value is, perhaps in another shape.
  std::optional<std::string> weight_of(const std::string& value) const {
    if (graph_.weights.contains(value)) return value;
    const auto it = weight_alias_.find(value);
    return it == weight_alias_.end() ? std::nullopt : std::optional(it->second);
  }
  Shape weight_shape(const std::string& value) const {
    const auto own = graph_.values.find(value);
    if (own != graph_.values.end()) return own->second;
    return graph_.weights.at(*weight_of(value));
  }

  struct Taken {
    std::vector<LayerId> layers;
    std::vector<Shape> shapes, weights;
    std::vector<std::string> roots;  // of the weights
    bool integer = false;
  };
  Taken taken_by(const GraphNode& node) const {
    Taken t;
    for (const std::string& input : node.inputs) {
      if (const auto it = made_.find(input); it != made_.end()) {
        t.layers.push_back(it->second);
        t.shapes.push_back(shapes_.at(input));
        t.integer = t.integer || graph_.integers.contains(input);
      } else if (const auto root = weight_of(input)) {
        t.weights.push_back(weight_shape(input));
        t.roots.push_back(*root);
      }
    }
    return t;
  }

  /// Of weights alone: another view of one, or a constant.
  bool without_sample(const GraphNode& node, const Taken& t) {
    if (!t.layers.empty() && !is_shape_kind(node.kind)) return false;
    const bool same_weight = t.roots.size() == 1 && !is_shape_kind(node.kind);
    if (same_weight) {
      weight_alias_[node.outputs[0]] = t.roots[0];
      if (is_table_kind(node.kind)) return free_weight(node, t);
    }
    return true;
  }
  /// Rows of a table at constant places (positions): used as it is.
  bool free_weight(const GraphNode& node, const Taken& t) {
    const auto out = graph_.values.find(node.outputs[0]);
    if (out == graph_.values.end()) return true;
    weight_alias_.erase(node.outputs[0]);
    const Operator op{
        .output = of_sample(out->second), .parameters = count(t.roots), .table = true};
    put(node, node.outputs[0], op, {});
    return true;
  }

  /// Parameters of weights that no layer before has counted.
  std::int64_t count(const std::vector<std::string>& roots) {
    double sum = 0;
    for (const std::string& root : roots) {
      if (!counted_.insert(root).second) continue;
      double n = 1;
      for (const std::int64_t d : graph_.weights.at(root)) n *= static_cast<double>(d);
      sum += n;
    }
    constexpr double kMost = 1 << 30;
    if (sum > kMost * kMost / 1024)
      error("the graph has more parameters than any machine can hold");
    return sum > kMost * kMost / 1024 ? 0 : static_cast<std::int64_t>(sum);
  }
  bool uncounted(const std::vector<std::string>& roots) const {
    return std::ranges::none_of(roots, [&](const auto& root) { return counted_.contains(root); });
  }

  void put(const GraphNode& node, const std::string& output, LayerOp op,
           std::vector<LayerId> inputs) {
    const auto shape = graph_.values.find(output);
    shapes_[output] = shape == graph_.values.end() ? Shape{1} : of_sample(shape->second);
    const bool rest = [&] {
      const auto* plain = std::get_if<Operator>(&op);
      return plain != nullptr && !plain->view && !plain->table && !(plain->multiply_adds > 0);
    }();
    const LayerId id = add(node.name, std::move(op), std::move(inputs));
    made_[output] = id;
    if (rest) unmapped_.emplace_back(id, node.kind);
  }

  void add_node(const GraphNode& node) {
    if (node.outputs.empty()) return;
    const Taken t = taken_by(node);
    if (without_sample(node, t)) return;
    if (is_identity_kind(node.kind) && t.weights.empty()) {
      made_[node.outputs[0]] = t.layers[0];
      shapes_[node.outputs[0]] = t.shapes[0];
      return;
    }
    for (const std::string& output : node.outputs)
      if (!output.empty() && (output == node.outputs[0] || needed_.contains(output)))
        add_output(node, output, t);
  }

  void add_output(const GraphNode& node, const std::string& output, const Taken& t) {
    const auto known = graph_.values.find(output);
    if (known == graph_.values.end()) {
      // A tuple of views: its parts have shapes.
      if (is_view_kind(node.kind)) {
        made_[output] = t.layers[0];
        shapes_[output] = t.shapes[0];
        return;
      }
      return error(fmt::format("the shape of '{}' ({}) is not known", output, node.kind),
                   "shapes of all values are needed: export for one sample of fixed size");
    }
    const Shape shape = of_sample(known->second);
    if (shape.empty() || std::ranges::any_of(shape, [](std::int64_t n) { return n < 1; }))
      return put(node, output, Operator{.output = {1}}, t.layers);
    if (is_view_kind(node.kind) && !t.layers.empty()) {
      if (shape == t.shapes[0] && node.kind == "GetItem") {
        made_[output] = t.layers[0];
        shapes_[output] = shape;
        return;
      }
      if (fits_view(shape, t.shapes[0]))
        return put(node, output, Operator{.output = shape, .view = true}, {t.layers[0]});
    }
    const OperatorAt at{node, t.shapes, t.weights, shape, t.integer};
    if (uncounted(t.roots))
      if (auto op = layer_of(at)) {
        count(t.roots);
        return put(node, output, std::move(*op), t.layers);
      }
    Operator op{.output = shape, .parameters = count(t.roots)};
    op.table = is_table_kind(node.kind) && !t.weights.empty();
    op.multiply_adds = multiply_adds_of(at);
    op.convolution = is_convolution(node.kind);
    put(node, output, op, t.layers);
  }
  static bool fits_view(const Shape& part, const Shape& whole) {
    double a = 1, b = 1;
    for (const std::int64_t n : part) a *= static_cast<double>(n);
    for (const std::int64_t n : whole) b *= static_cast<double>(n);
    return a <= b;
  }

  void add_losses() {
    std::vector<LayerId> losses;
    for (const std::string& output : graph_.outputs) {
      const auto made = made_.find(output);
      if (made == made_.end() || graph_.integers.contains(output)) continue;
      losses.push_back(loss_of(output, made->second, shapes_.at(output)));
    }
    if (losses.empty())
      return error("no output of the graph depends on its input", "the outputs are the logits");
    if (losses.size() > 1) add("loss", Add{}, losses);
    notes_.push_back(fmt::format("the file has no loss: {} stands behind its output{}",
                                 layers_.size() > 1 && std::holds_alternative<SoftmaxCrossEntropy>(
                                                           layers_[index(losses[0])].op)
                                     ? "a cross-entropy over the last axis"
                                     : "a squared error",
                                 losses.size() > 1 ? "s" : ""));
  }
  LayerId loss_of(const std::string& output, LayerId from, const Shape& shape) {
    if (shape.size() <= 2) return add(output + ".loss", SoftmaxCrossEntropy{shape.back()}, {from});
    std::int64_t all = 1;
    double size = 1;
    for (const std::int64_t n : shape) size *= static_cast<double>(n);
    constexpr double kMost = 1 << 30;
    if (size > kMost) {
      error(fmt::format("output '{}' is {}", output, to_text(shape)));
    } else {
      all = static_cast<std::int64_t>(size);
    }
    const LayerId flat = add(output + ".flat", Operator{.output = {all}, .view = true}, {from});
    return add(output + ".loss", MeanSquaredError{}, {flat});
  }

  /// What only shapes were asked of, or what an alias goes around.
  void leave_out_unused() {
    const std::vector<bool> used = LayerGraph(layers_).ancestors(layers_.size() - 1);  // the loss
    std::vector<LayerId> now(layers_.size());
    std::vector<Layer> kept;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (!used[i]) continue;
      now[i] = LayerId{static_cast<std::uint32_t>(kept.size())};
      for (LayerId& id : layers_[i].inputs) id = now[index(id)];
      kept.push_back(std::move(layers_[i]));
    }
    std::erase_if(unmapped_, [&](const auto& entry) { return !used[index(entry.first)]; });
    for (auto& [id, kind] : unmapped_) id = now[index(id)];
    layers_ = std::move(kept);
  }

  SampleUnit unit() const {
    constexpr std::size_t kImage = 3;
    if (sample_shape_.size() >= kImage) return SampleUnit::image;
    return sample_shape_.size() == 2 || integer_sample_ ? SampleUnit::sequence : SampleUnit::record;
  }

  void list_unmapped(ImportedGraph& imported) const {
    double all = 0;
    for (const LayerCount& c : imported.model.counts()) all += c.elements_in + c.elements_out;
    std::map<std::string, UnmappedKind> by_kind;
    for (const auto& [id, kind] : unmapped_) {
      const LayerCount& c = imported.model.counts()[index(id)];
      UnmappedKind& u = by_kind[kind];
      u.kind = kind;
      ++u.nodes;
      u.share += all > 0 ? (c.elements_in + c.elements_out) / all : 0;
    }
    for (auto& [name, kind] : by_kind) imported.unmapped.push_back(std::move(kind));
    std::ranges::stable_sort(imported.unmapped, std::greater<>(), &UnmappedKind::share);
  }

  const OperatorGraph& graph_;
  Diagnostics errors_;
  std::vector<std::string> notes_;
  std::set<std::string> needed_, counted_, taken_;
  std::map<std::string, int> names_;
  std::map<std::string, LayerId> made_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, std::string> weight_alias_;
  std::vector<std::pair<LayerId, std::string>> unmapped_;
  std::vector<Layer> layers_;
  Shape sample_shape_;
  bool integer_sample_ = false;
};

}  // namespace

Expected<ImportedGraph> make_graph_model(const OperatorGraph& graph) {
  return Importer(graph).run();
}

std::vector<std::string> notes_of(const ImportedGraph& imported) {
  std::vector<std::string> notes;
  for (const UnmappedKind& u : imported.unmapped)
    notes.push_back(
        fmt::format("{} x {}: no layer kind of ours, bound by memory, {:.1f} % of what "
                    "a forward pass moves",
                    u.kind, u.nodes, 100 * u.share));
  notes.insert(notes.end(), imported.notes.begin(), imported.notes.end());
  return notes;
}

}  // namespace reckon
