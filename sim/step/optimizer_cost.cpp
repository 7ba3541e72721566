#include "sim/step/optimizer_cost.h"

#include <algorithm>

#include "sim/model/layer_graph.h"
#include "sim/model/layer_rules.h"

namespace reckon {
namespace {

double product_of(std::span<const std::int64_t> sizes) {
  double n = 1;
  for (const std::int64_t size : sizes) n *= double(size);
  return n;
}

/// All but the last axis, and all but the last but one; a vector is kept whole.
double factored_size(const Shape& shape) {
  if (shape.size() < 2) return product_of(shape);
  const double all = product_of(shape);
  return all / double(shape.back()) + all / double(shape[shape.size() - 2]);
}

struct Matrices {
  double count, rows, columns;  // rows <= columns
};
Matrices matrices_of(const LayerOp& op) {
  const Shape weight = weights_of(op).weight;
  if (const auto* e = std::get_if<ExpertLinear>(&op))
    return {double(e->experts), double(std::min(e->in, e->out)), double(std::max(e->in, e->out))};
  const double rows = double(weight.front()), columns = product_of(weight) / rows;
  return {1, std::min(rows, columns), std::max(rows, columns)};
}

bool is_matrix(const LayerOp& op) {
  return std::holds_alternative<Linear>(op) || std::holds_alternative<ExpertLinear>(op) ||
         std::holds_alternative<Conv2d>(op);
}

/// Layers whose output a loss over classes takes, through constants and activations at most, and
/// these losses.
std::vector<bool> outputs_of(const ModelGraph& model) {
  const auto layers = model.layers();
  const auto is_loss = [&](std::size_t i) {
    return std::holds_alternative<SoftmaxCrossEntropy>(layers[i].op);
  };
  std::vector<std::size_t> losses;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (is_loss(i)) losses.push_back(i);
  return model.graph().ancestors(losses, [&](std::size_t i) {
    return is_loss(i) || std::holds_alternative<ScaleBy>(layers[i].op) ||
           std::holds_alternative<Activation>(layers[i].op);
  });
}

}  // namespace

TrainableShapes trainable_shapes(const ModelGraph& model) {
  constexpr double kIterations = 5;  // of Newton-Schulz: optimizer_cost.h
  TrainableShapes s;
  const std::vector<bool> output = outputs_of(model);
  for (const Layer& layer : model.layers()) {
    const double trained = double(model.counts()[index(layer.id)].trainable_parameters);
    if (trained == 0) continue;
    s.parameters += trained;
    const LayerWeights held = weights_of(layer.op);
    if (!layer.tied_to && !held.weight.empty()) s.factored += factored_size(held.weight);
    if (!held.bias.empty()) s.factored += product_of(held.bias);
    if (!is_matrix(layer.op) || layer.tied_to || output[index(layer.id)]) continue;
    const Matrices m = matrices_of(layer.op);
    const double each = m.rows * m.columns, square = m.rows * m.rows;
    s.in_matrices += m.count * each;
    s.newton_schulz += m.count * kIterations * (4 * square * m.columns + 2 * square * m.rows);
    // X twice in and once out, X X^T and its square once out and twice in.
    s.newton_schulz_moved += m.count * kIterations * (3 * each + 4 * square);
  }
  return s;
}

OptimizerCost optimizer_cost(const TrainableShapes& s, Optimizer optimizer) {
  constexpr Bytes kFp32{4}, kHalf{2};
  const double all = std::max(1.0, s.parameters);
  switch (optimizer) {
    case Optimizer::sgd_momentum:
    case Optimizer::lion:
      return {.state = kFp32};
    case Optimizer::adamw:
      return {.state = 2 * kFp32};
    case Optimizer::adamw_8bit: {
      constexpr double kBlock = 2048;  // elements with one constant: optimizer_cost.h
      return {.state = 2 * (Bytes{1} + kFp32 / kBlock)};
    }
    case Optimizer::adafactor:
      return {.state = s.factored / all * kFp32, .gradient_reads = 2};
    case Optimizer::muon: {
      const double inside = s.in_matrices / all;
      return {.state = inside * kFp32 + (1 - inside) * 2 * kFp32,
              .traffic = s.newton_schulz_moved / all * kHalf,
              .flops = Flops{s.newton_schulz / all}};
    }
  }
  return {};
}

OptimizerCost optimizer_cost(const ModelGraph& model, Optimizer optimizer) {
  const bool by_shape = optimizer == Optimizer::adafactor || optimizer == Optimizer::muon;
  return optimizer_cost(by_shape ? trainable_shapes(model) : TrainableShapes{}, optimizer);
}

}  // namespace reckon
