#include "sim/step/layer_shares.h"

namespace reckon {
namespace {

/// Of the input (a column cut gathers it), of the output, and of the arithmetic.
struct CutShares {
  double in, out, arithmetic;
};
CutShares cut_shares(TensorCut cut, const LayoutShares& s) {
  switch (cut) {
    case TensorCut::whole:
      return {s.tokens, s.tokens, s.tokens};
    case TensorCut::column:
      return {s.whole, s.split, s.split};
    case TensorCut::row:
      return {s.split, s.whole, s.split};
    case TensorCut::parts:
      return {s.split, s.split, s.split};
  }
  return {1, 1, 1};
}

double weight_share(const LayerClass& layer, const LayoutShares& s) {
  const bool cut = layer.sharding.cut == TensorCut::column || layer.sharding.cut == TensorCut::row;
  return (cut ? s.matrix : 1) * (layer.experts > 0 ? s.expert : 1);
}

/// Rows that go to experts: the busiest rank's.
double row_share(const LayerClass& layer, const LayoutShares& s) {
  return layer.experts > 0 || layer.exchanges_tokens ? s.imbalance : 1;
}

}  // namespace

LayoutShares::LayoutShares(const Layout& l, double expert_imbalance) {
  whole = 1.0 / l.context;
  matrix = 1.0 / l.tensor;
  split = whole * matrix;
  tokens = l.sequence_parallel ? split : whole;
  expert = 1.0 / l.expert;
  imbalance = l.expert > 1 ? 1 + expert_imbalance : 1;
}

LayerWork work_of(const LayerClass& layer, const LayoutShares& s) {
  const CutShares cut = cut_shares(layer.sharding.cut, s);
  const double rows = row_share(layer, s);
  LayerWork w = work_of(layer.count);
  w.forward = w.forward * (cut.arithmetic * rows);
  w.backward = w.backward * (cut.arithmetic * rows);
  w.elements_in *= cut.in * rows;
  w.elements_out *= cut.out * rows;
  w.weights_read *= weight_share(layer, s);
  return w;
}

LayerState state_of(const LayerClass& layer, const LayoutShares& s) {
  const CutShares cut = cut_shares(layer.sharding.cut, s);
  const double rows = row_share(layer, s), weights = weight_share(layer, s);
  LayerState state;
  state.parameters = double(layer.count.parameters) * weights;
  state.trainable = double(layer.count.trainable_parameters) * weights;
  state.of_experts = layer.experts > 0;
  state.tied = layer.tied_elements * weights;
  // A tensor that is whole is kept as its tokens are shared out, whoever made it.
  const bool split_output =
      layer.sharding.cut == TensorCut::column || layer.sharding.cut == TensorCut::parts;
  const double kept = (split_output ? s.split : s.tokens) * rows;
  state.saved_elements = layer.count.saved_elements * kept;
  state.saved_fixed = layer.count.saved_fixed * kept;
  state.scores = layer.scores * kept;
  state.working_elements =
      (layer.count.elements_in * cut.in + layer.count.elements_out * cut.out) * rows;
  return state;
}

}  // namespace reckon
