#include "executor/train/parameters.h"

#include <fmt/format.h>

#include <array>

#include "sim/base/check.h"
#include "sim/model/counts.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

struct WeightShapes {
  Shape weight, bias;  // empty: none
};

Shape only_if(bool there, Shape shape) { return there ? std::move(shape) : Shape{}; }

/// As the comments of sim/model/graph.h give them.
WeightShapes weight_shapes(const LayerOp& op) {
  return std::visit(
      overloaded{
          [](const Linear& l) -> WeightShapes {
            return {{l.out, l.in}, only_if(l.bias, {l.out})};
          },
          [](const Conv2d& c) -> WeightShapes {
            return {{c.out, c.in / c.groups, c.kernel_h, c.kernel_w}, only_if(c.bias, {c.out})};
          },
          [](const BatchNorm& n) -> WeightShapes {
            return {{n.channels}, {n.channels}};
          },
          [](const LayerNorm& n) -> WeightShapes {
            return {{n.width}, only_if(n.bias, {n.width})};
          },
          [](const RmsNorm& n) -> WeightShapes {
            return {{n.width}, {}};
          },
          [](const Embedding& e) -> WeightShapes {
            return {{e.rows, e.width}, {}};
          },
          [](const PositionEmbedding& e) -> WeightShapes {
            return {{e.rows, e.width}, {}};
          },
          [](const ClassToken& c) -> WeightShapes {
            return {{c.width}, {}};
          },
          [](const EmbeddingBag& e) -> WeightShapes {
            return {{e.rows, e.width}, {}};
          },
          [](const ExpertLinear& e) -> WeightShapes {
            return {{e.experts, e.out, e.in}, only_if(e.bias, {e.experts, e.out})};
          },
          [](const auto&) -> WeightShapes { return {}; }},
      op);
}

}  // namespace

ParameterLayout parameter_layout(const ModelGraph& model) {
  ParameterLayout layout;
  for (const Layer& layer : model.layers()) {
    WeightShapes shapes = weight_shapes(layer.op);
    const auto add = [&](std::string_view what, Shape shape) {
      if (shape.empty()) return;
      const auto count = static_cast<std::size_t>(elements(shape));
      layout.slots.push_back({.layer = layer.id,
                              .name = layer.name + "." + std::string(what),
                              .shape = std::move(shape),
                              .first = layout.count,
                              .count = count,
                              .trained = !layer.frozen});
      layout.count += count;
    };
    if (!layer.tied_to) add("weight", std::move(shapes.weight));
    add("bias", std::move(shapes.bias));
  }
  RECKON_CHECK(static_cast<std::int64_t>(layout.count) == model.parameters());
  return layout;
}

std::string optimizer_tensor(const std::string& parameter, std::size_t k, std::size_t buffers) {
  constexpr std::array kMoments{"exp_avg", "exp_avg_sq"};  // of AdamW
  RECKON_CHECK(k < buffers && buffers <= kMoments.size());
  return fmt::format("optimizer.state.{}.{}", parameter,
                     buffers == 1 ? "momentum_buffer" : kMoments[k]);
}

}  // namespace reckon
