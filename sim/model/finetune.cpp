#include "sim/model/finetune.h"

#include <fmt/format.h>

#include <functional>

#include "sim/model/layer_graph.h"
#include "sim/model/zoo/builder.h"

namespace reckon {
namespace {

bool is_product(const LayerOp& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<ExpertLinear>(op);
}

/// All products, or those that make queries and values, perhaps through rotations and norms.
std::vector<bool> targets_of(const ModelGraph& base, LoraTargets wanted) {
  const auto layers = base.layers();
  std::vector<bool> target(layers.size(), true);
  if (wanted == LoraTargets::all_linear) {
    for (const Layer& layer : layers) {
      if (layer.output != Shape{1}) continue;
      for (LayerId id : layer.inputs) target[index(id)] = false;
    }
  } else {
    std::vector<std::size_t> taken;
    for (const Layer& layer : layers) {
      if (!std::holds_alternative<Attention>(layer.op)) continue;
      for (std::size_t i = 0; i < layer.inputs.size(); i += 2)  // q and v; or all three in one
        taken.push_back(index(layer.inputs[i]));
    }
    target = base.graph().ancestors(taken, [&](std::size_t i) {
      return std::holds_alternative<RotaryEmbedding>(layers[i].op) ||
             std::holds_alternative<RmsNorm>(layers[i].op);
    });
  }
  for (std::size_t i = 0; i < layers.size(); ++i) target[i] = target[i] && is_product(layers[i].op);
  return target;
}

struct AdapterOps {
  LayerOp down, up;
};
AdapterOps adapter_of(const LayerOp& op, std::int64_t rank) {
  if (const Linear* l = std::get_if<Linear>(&op))
    return {Linear{l->in, rank, false}, Linear{rank, l->out, false}};
  const ExpertLinear& e = std::get<ExpertLinear>(op);
  return {ExpertLinear{e.experts, e.top_k, e.in, rank},
          ExpertLinear{e.experts, e.top_k, rank, e.out}};
}

/// Copies layers, all frozen, and puts adapters at the targets; what took a target's output takes
/// that of its adapter.
class Adapted {
 public:
  /// What is put at a target: its layer, the inputs and the id of its copy -> what others take.
  using AddAdapter = std::function<LayerId(LayerList& net, const Layer& layer,
                                           std::vector<LayerId> inputs, LayerId base)>;

  Adapted(std::span<const Layer> layers, const std::vector<bool>& target, const AddAdapter& add)
      : layers_(layers), net_(layers.size() * 2) {
    for (std::size_t i = 0; i < layers.size(); ++i) copy(layers[i], target[i], add);
  }

  /// All layers. `finish`: of each copy of a layer, by the layer's place.
  template <class Finish>
  std::vector<Layer> take(Finish finish) {
    std::vector<Layer> made = net_.take();
    for (std::size_t i = 0; i < layers_.size(); ++i) finish(made[index(base_[i])], i);
    return made;
  }

 private:
  void copy(const Layer& layer, bool target, const AddAdapter& add) {
    std::vector<LayerId> inputs;
    for (LayerId id : layer.inputs) inputs.push_back(output_[index(id)]);
    net_.set_group(layer.group);
    const LayerId base =
        net_.add_frozen(layer.name, layer.op, inputs,
                        layer.tied_to ? std::optional(base_[index(*layer.tied_to)]) : std::nullopt);
    base_.push_back(base);
    output_.push_back(target ? add(net_, layer, std::move(inputs), base) : base);
  }

  std::span<const Layer> layers_;
  LayerList net_;
  std::vector<LayerId> base_, output_;  // by layer of the base: its copy, what others take
};

/// Beside a target, summed with it.
LayerId add_lora(LayerList& net, const Layer& layer, std::vector<LayerId> inputs, LayerId base,
                 const LoraAdapters& adapters) {
  const AdapterOps ops = adapter_of(layer.op, adapters.rank);
  const double alpha = adapters.alpha > 0 ? adapters.alpha : 2 * static_cast<double>(adapters.rank);
  inputs[0] = net.add(layer.name + ".lora_A", ops.down, inputs);
  LayerId x = net.add(layer.name + ".lora_B", ops.up, inputs);
  x = net.add(layer.name + ".lora.scale", ScaleBy{alpha / static_cast<double>(adapters.rank)}, x);
  x = net.add(layer.name + ".lora.add", Add{}, {base, x});
  const auto* linear = std::get_if<Linear>(&layer.op);
  if (!adapters.magnitudes || linear == nullptr) return x;
  const LayerId norms = net.add(layer.name + ".lora.weight_norms",
                                WeightNorms{linear->in, linear->out}, std::vector<LayerId>{});
  return net.add(layer.name + ".lora_magnitude", FeatureScale{linear->out}, {x, norms});
}

std::vector<Layer> with_lora_layers(const ModelGraph& base, const LoraAdapters& adapters) {
  const std::vector<bool> wide = targets_of(base, LoraTargets::all_linear);
  Adapted net(base.layers(), targets_of(base, adapters.targets),
              [&](LayerList& list, const Layer& layer, std::vector<LayerId> inputs, LayerId id) {
                return add_lora(list, layer, std::move(inputs), id, adapters);
              });
  return net.take(
      [&](Layer& made, std::size_t i) { made.four_bit = adapters.four_bit && wide[i]; });
}

/// Products whose output goes, perhaps through dropout or a constant, into a sum of its shape.
std::vector<bool> into_residuals(const ModelGraph& base) {
  const auto layers = base.layers();
  std::vector<std::size_t> summands;
  for (const Layer& layer : layers) {
    if (!std::holds_alternative<Add>(layer.op)) continue;
    for (LayerId id : layer.inputs)
      if (layers[index(id)].output == layer.output) summands.push_back(index(id));
  }
  std::vector<bool> target = base.graph().ancestors(summands, [&](std::size_t i) {
    return std::holds_alternative<Dropout>(layers[i].op) ||
           std::holds_alternative<ScaleBy>(layers[i].op);
  });
  for (std::size_t i = 0; i < layers.size(); ++i)
    target[i] = target[i] && std::holds_alternative<Linear>(layers[i].op);
  return target;
}

/// Two layers of `width` features behind each target, summed with it; norms are trained too.
std::vector<Layer> with_bottleneck_layers(std::span<const Layer> layers,
                                          const std::vector<bool>& target, std::int64_t width) {
  Adapted net(layers, target,
              [&](LayerList& list, const Layer& layer, const std::vector<LayerId>&, LayerId base) {
                const std::int64_t features = layer.output.back();
                LayerId x = list.add(layer.name + ".adapter.down", Linear{features, width}, base);
                x = list.add(layer.name + ".adapter.act", Activation{ActivationKind::gelu}, x);
                x = list.add(layer.name + ".adapter.up", Linear{width, features}, x);
                return list.add(layer.name + ".adapter.add", Add{}, {base, x});
              });
  return net.take([&](Layer& made, std::size_t i) {
    made.frozen = !std::holds_alternative<LayerNorm>(layers[i].op) &&
                  !std::holds_alternative<RmsNorm>(layers[i].op);
  });
}

Shape input_of(const ModelGraph& net) {
  for (const Layer& layer : net.layers()) {
    if (std::holds_alternative<InputLayer>(layer.op)) return layer.output;
  }
  return {};
}

}  // namespace

Expected<ModelGraph> with_lora(const ModelGraph& base, const LoraAdapters& adapters) {
  Diagnostics errors;
  if (adapters.rank < 1) {
    errors.push_back({.what = fmt::format("the rank of the adapters is {}", adapters.rank),
                      .hint = "usual ranks are 4 to 256"});
  }
  const std::vector<bool> targets = targets_of(base, adapters.targets);
  std::int64_t widest = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!targets[i]) continue;
    const std::int64_t out = base.layers()[i].output.back();
    widest = std::max(widest, out);
  }
  if (widest == 0) {
    errors.push_back(
        {.what = fmt::format("network {} has no layer that LoRA could adapt", base.name()),
         .hint = "LoRA adapts the projections of attention"});
  } else if (adapters.rank > widest) {
    errors.push_back({.what = fmt::format("a rank of {} is more than the {} features of the widest "
                                          "matrix that it adapts",
                                          adapters.rank, widest)});
  }
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return ModelGraph::make(base.name(), base.sample_unit(), input_of(base),
                          with_lora_layers(base, adapters));
}

Expected<ModelGraph> with_bottlenecks(const ModelGraph& base, std::int64_t width) {
  std::vector<bool> target = into_residuals(base);
  Diagnostics errors;
  if (width < 1)
    errors.push_back({.what = fmt::format("the width of the adapters is {}", width),
                      .hint = "usual widths are 8 to 256"});
  if (std::ranges::find(target, true) == target.end())
    errors.push_back({.what = fmt::format("network {} has no product that goes into a residual sum",
                                          base.name()),
                      .hint = "adapters stand behind such products"});
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return ModelGraph::make(base.name(), base.sample_unit(), input_of(base),
                          with_bottleneck_layers(base.layers(), target, width));
}

Expected<ModelGraph> with_adapters(const ModelGraph& base, AdapterKind kind, std::int64_t rank) {
  LoraAdapters lora{.rank = rank};
  switch (kind) {
    case AdapterKind::adapters:
      return with_bottlenecks(base, rank);
    case AdapterKind::qlora:
      lora.four_bit = true;
      lora.targets = LoraTargets::all_linear;
      break;
    case AdapterKind::dora:
      lora.magnitudes = true;
      break;
    case AdapterKind::lora:
      break;
  }
  return with_lora(base, lora);
}

Expected<ModelGraph> with_last_layers(const ModelGraph& base, int layers) {
  std::vector<Layer> copies(base.layers().begin(), base.layers().end());
  int left = layers;
  for (std::size_t i = copies.size(); i-- > 0;) {
    if (base.counts()[i].parameters == 0) continue;
    copies[i].frozen = copies[i].frozen || left <= 0;
    if (!copies[i].frozen) --left;
  }
  if (layers < 1 || left > 0)
    return tl::unexpected<Diagnostics>(
        {{.what =
              fmt::format("the last {} layers with weights are to be trained, network {} has {}",
                          layers, base.name(), layers - left),
          .hint = "between 1 and as many as it has"}});
  return ModelGraph::make(base.name(), base.sample_unit(), input_of(base), std::move(copies));
}

}  // namespace reckon
