#include "sim/model/layers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/model/layer_text.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

using layer_text::Attributes;
using layer_text::Kind;

constexpr double kLargestTensor = 1e15;  // elements; as ModelGraph

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  for (const Kind& kind : layer_text::kinds()) words.emplace_back(kind.text.kind);
  return words;
}

class LayerReader {
 public:
  explicit LayerReader(std::span<const LayerText> texts) : texts_(texts) {}

  tl::expected<ModelGraph, std::vector<LayerMistake>> read(std::string name) {
    for (i_ = 0; i_ < texts_.size(); ++i_) read_layer(texts_[i_]);
    if (texts_.empty()) mistakes_.push_back({{}, {}, "the network has no layers", {}});
    if (!mistakes_.empty()) return tl::unexpected<std::vector<LayerMistake>>(mistakes_);
    const SampleUnit sample = unit();
    auto graph = ModelGraph::make(std::move(name), sample, input_, std::move(layers_));
    if (graph) return std::move(*graph);
    for (const Diagnostic& d : graph.error()) mistakes_.push_back({{}, {}, d.what, d.hint});
    return tl::unexpected<std::vector<LayerMistake>>(mistakes_);
  }

 private:
  void mistake(std::string key, std::string what, std::string hint = {}) {
    mistakes_.push_back({i_, std::move(key), std::move(what), std::move(hint)});
  }

  void read_layer(const LayerText& text) {
    Layer layer{.name = fmt::format("layer_{}", i_), .op = Flatten{}};
    const Kind* kind = kind_of(text);
    if (kind) layer.name = fmt::format("{}_{}", kind->text.kind, i_);
    if (const auto it = text.find("name"); it != text.end()) layer.name = it->second;
    if (const auto it = text.find("group"); it != text.end()) layer.group = it->second;
    if (kind) {
      layer.inputs = inputs_of(*kind, text);
      if (const auto it = text.find("tied_to"); it != text.end())
        layer.tied_to = named("tied_to", it->second);
      read_op(*kind, text, layer);
    }
    if (!by_name_.emplace(layer.name, LayerId{static_cast<std::uint32_t>(i_)}).second)
      mistake("name", fmt::format("the name '{}' is taken by an earlier layer", layer.name));
    layers_.push_back(std::move(layer));
  }

  /// The one key that is a kind.
  const Kind* kind_of(const LayerText& text) {
    const Kind* found = nullptr;
    for (const Kind& kind : layer_text::kinds()) {
      if (!text.contains(std::string(kind.text.kind))) continue;
      if (found) {
        mistake(std::string(kind.text.kind),
                fmt::format("a layer is {} and {} at once", found->text.kind, kind.text.kind));
        return nullptr;
      }
      found = &kind;
    }
    if (found) return found;
    const std::vector<std::string> words = kind_words();
    const std::string given = text.empty() ? "" : text.begin()->first;
    mistake("", fmt::format("no kind of layer among its keys{}", did_you_mean(given, words)),
            fmt::format("kinds: {}", fmt::join(words, ", ")));
    return nullptr;
  }

  std::optional<LayerId> named(const std::string& key, const std::string& name) {
    if (const auto it = by_name_.find(name); it != by_name_.end()) return it->second;
    std::vector<std::string> names;
    for (const Layer& layer : layers_) names.push_back(layer.name);
    mistake(key, fmt::format("no earlier layer is called '{}'{}", name, did_you_mean(name, names)),
            "a layer takes layers that stand before it");
    return std::nullopt;
  }

  std::vector<LayerId> inputs_of(const Kind& kind, const LayerText& text) {
    if (kind.text.kind == "input") return {};
    const std::string key = kind.takes_names ? std::string(kind.text.kind) : "from";
    const auto it = text.find(key);
    if (it != text.end()) {
      std::vector<LayerId> inputs;
      for (const std::string& name : layer_text::split_names(it->second)) {
        if (const auto id = named(key, name)) inputs.push_back(*id);
      }
      return inputs;
    }
    if (i_ > 0) return {LayerId{static_cast<std::uint32_t>(i_ - 1)}};
    mistake("", "the first layer is no input", "begin with {input: 3x224x224}");
    return {};
  }

  void read_op(const Kind& kind, const LayerText& text, Layer& layer) {
    const std::size_t before = mistakes_.size();
    std::vector<Shape> shapes;
    for (LayerId id : layer.inputs) shapes.push_back(layers_[index(id)].output);
    Attributes attributes(text, std::string(kind.text.kind), shapes);
    layer.op = kind.read(attributes);
    for (layer_text::Mistake& m : attributes.mistakes())
      mistake(std::move(m.key), std::move(m.what), std::move(m.hint));
    if (kind.text.kind == "input") read_input(text);
    check_keys(kind, text, attributes.used());
    if (mistakes_.size() > before || !attributes.known()) return;
    infer(layer);
  }

  void infer(Layer& layer) {
    const auto add = [&](const ShapeError& e) {
      mistake("", fmt::format("layer '{}' ({}): {}", layer.name, kind_name(layer.op), e.what),
              e.hint);
    };
    if (const auto bad = check_attributes(layer.op)) return add(*bad);
    std::vector<const Shape*> inputs;
    for (LayerId id : layer.inputs) inputs.push_back(&layers_[index(id)].output);
    const auto shape = infer_shape(layer.op, inputs, input_);
    if (!shape) return add(shape.error());
    double size = 1;
    for (std::int64_t n : *shape) size *= static_cast<double>(n);
    if (size > kLargestTensor) return add({fmt::format("its output is {}", to_text(*shape)), {}});
    layer.output = *shape;
  }

  void read_input(const LayerText& text) {
    const auto shape = layer_text::parse_shape(text.at("input"));
    double size = 1;
    for (std::int64_t n : shape.value_or(Shape{})) size *= static_cast<double>(n);
    if (!shape || shape->size() > 3 || size > kLargestTensor) {
      mistake("input", fmt::format("'{}' is no shape of a sample", text.at("input")),
              "3x224x224 (channels, height, width), 1024 (tokens or features)");
    } else if (!input_.empty() && input_ != *shape) {
      mistake(
          "input",
          fmt::format("a second input of {} beside one of {}", to_text(*shape), to_text(input_)),
          "all inputs have the shape of the sample");
    } else {
      input_ = *shape;
    }
    const auto unit = text.find("unit");
    if (unit == text.end()) return;
    if (const auto known = from_text<SampleUnit>(unit->second)) {
      unit_ = *known;
    } else {
      mistake("unit", fmt::format("unknown unit '{}'", unit->second), "image, sequence or record");
    }
  }

  void check_keys(const Kind& kind, const LayerText& text, const std::set<std::string>& used) {
    std::vector<std::string> known(used.begin(), used.end());
    known.insert(known.end(), {std::string(kind.text.kind), "name", "group"});
    if (kind.text.kind == "input") {
      known.push_back("unit");
    } else if (!kind.takes_names) {
      known.push_back("from");
    }
    if (kind.text.kind == "linear" || kind.text.kind == "embedding") known.push_back("tied_to");
    for (const auto& [key, value] : text) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      mistake(
          key,
          fmt::format("unknown key '{}' of {}{}", key, kind.text.kind, did_you_mean(key, known)),
          fmt::format("for example {}", kind.text.example));
    }
  }

  /// Images have three dimensions; sequences two (tokens, features), or are looked up in a table.
  SampleUnit unit() const {
    if (unit_) return *unit_;
    if (input_.size() == 3) return SampleUnit::image;
    if (input_.size() == 2) return SampleUnit::sequence;
    for (const Layer& layer : layers_) {
      if (std::holds_alternative<Embedding>(layer.op)) return SampleUnit::sequence;
    }
    return SampleUnit::record;
  }

  std::span<const LayerText> texts_;
  std::size_t i_ = 0;
  Shape input_;
  std::optional<SampleUnit> unit_;
  std::vector<Layer> layers_;
  std::map<std::string, LayerId> by_name_;
  std::vector<LayerMistake> mistakes_;
};

}  // namespace

tl::expected<ModelGraph, std::vector<LayerMistake>> make_layers(std::string name,
                                                                std::span<const LayerText> layers) {
  return LayerReader(layers).read(std::move(name));
}

std::span<const LayerKindText> layer_kinds() {
  static const std::vector<LayerKindText> texts = [] {
    std::vector<LayerKindText> out;
    for (const Kind& kind : layer_text::kinds()) out.push_back(kind.text);
    return out;
  }();
  return texts;
}

}  // namespace reckon
