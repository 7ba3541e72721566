#include "sim/model/zoo/transformer_dimensions.h"

#include <algorithm>
#include <string_view>
#include <variant>

namespace reckon {
namespace {

/// What one layer says of the dimensions. The first layer of a kind counts: whether all blocks are
/// alike is seen by building the network again.
class DimensionReader {
 public:
  explicit DimensionReader(const ModelGraph& model) : layers_(model.layers()) {
    d_.sequence_length = model.sequence_length();
    d_.tied_output = d_.bias = false;
  }

  TransformerDimensions read() {
    for (const Layer& layer : layers_)
      std::visit([&](const auto& op) { take(layer, op); }, layer.op);
    d_.layers = attentions_;
    if (d_.feed_forward == 0) d_.feed_forward = d_.expert_feed_forward;
    if (d_.experts > 0) d_.dense_layers = attentions_ - mixtures_;
    return d_;
  }

 private:
  static bool ends(const Layer& layer, std::string_view name) { return layer.name.ends_with(name); }
  const Layer* input_of(const Layer& layer) const {
    return layer.inputs.empty() ? nullptr : &layers_[index(layer.inputs.front())];
  }
  template <class Op>
  const Op* made_by(const Layer& layer) const {
    const Layer* from = input_of(layer);
    return from == nullptr ? nullptr : std::get_if<Op>(&from->op);
  }

  template <class Op>
  void take(const Layer& /*layer*/, const Op& /*op*/) {}
  void take(const Layer& /*layer*/, const Embedding& op) {
    if (d_.vocabulary > 0) return;
    d_.vocabulary = op.rows;
    d_.hidden = op.width;
  }
  void take(const Layer& /*layer*/, const PositionEmbedding& op) { d_.positions = op.rows; }
  void take(const Layer& layer, const RmsNorm& op) {
    if (ends(layer, "q_norm"))
      d_.qk_norm = true;
    else if (op.width == d_.hidden)
      d_.rms_norm = true;
  }
  void take(const Layer& /*layer*/, const RotaryEmbedding& op) {
    d_.rotary_theta = op.theta;
    d_.rotary_width = op.rotated;
  }
  void take(const Layer& /*layer*/, const Attention& op) {
    ++attentions_;
    d_.heads = op.heads;
    d_.kv_heads = op.kv_heads;
    d_.head_width = op.head_width;
    d_.causal = op.causal;
    d_.dropout = op.dropout;
    d_.window = op.window;
    d_.alibi = op.alibi;
  }
  void take(const Layer& layer, const Linear& op) {
    d_.tied_output = d_.tied_output || layer.tied_to.has_value();
    if (made_by<Attention>(layer) != nullptr) d_.bias = op.bias;
    if (ends(layer, "q_proj") && op.bias) d_.qkv_bias = true;
    if (ends(layer, "mlp.shared_expert.up_proj")) d_.shared_feed_forward = op.out;
    if (ends(layer, "mlp.shared_expert_gate")) d_.shared_expert_gate = true;
  }
  void take(const Layer& layer, const Activation& op) {
    if (ends(layer, "mlp.shared_expert.act_fn") || ends(layer, "gate.sigmoid")) return;
    d_.activation = op.kind;
    if (const Linear* up = made_by<Linear>(layer)) d_.feed_forward = up->out;
    if (const ExpertLinear* up = made_by<ExpertLinear>(layer)) d_.expert_feed_forward = up->out;
  }
  void take(const Layer& layer, const Multiply& /*op*/) {
    if (ends(layer, "up_proj.multiply") || ends(layer, "c_fc.multiply"))
      d_.gated_feed_forward = true;
  }
  void take(const Layer& layer, const Add& /*op*/) {
    constexpr std::size_t kBoth = 3;  // the block's input, attention, feed-forward
    if (layer.inputs.size() == kBoth) d_.parallel_residual = true;
  }
  void take(const Layer& /*layer*/, const ExpertDispatch& op) {
    ++mixtures_;
    d_.experts = op.experts;
    d_.experts_per_token = op.top_k;
  }
  void take(const Layer& /*layer*/, const ExpertCombine& op) {
    d_.normalized_experts = op.normalize;
  }

  std::span<const Layer> layers_;
  TransformerDimensions d_;
  std::int64_t attentions_ = 0, mixtures_ = 0;
};

bool same_layer(const Layer& a, const Layer& b) {
  return a.name == b.name && a.op.index() == b.op.index() && a.inputs == b.inputs &&
         a.output == b.output && a.tied_to == b.tied_to && a.frozen == b.frozen;
}
bool same_count(const LayerCount& a, const LayerCount& b) {
  return a.parameters == b.parameters && a.active_parameters == b.active_parameters &&
         a.forward == b.forward && a.saved_elements == b.saved_elements;
}

}  // namespace

std::optional<TransformerDimensions> transformer_dimensions_of(const ModelGraph& model) {
  if (model.sample_unit() != SampleUnit::sequence) return std::nullopt;
  TransformerDimensions d = DimensionReader(model).read();
  if (d.layers == 0 || !d.causal) return std::nullopt;
  if (d.qkv_bias && d.bias) d.qkv_bias = false;
  const auto again = make_transformer(model.name(), d);
  if (!again || !std::ranges::equal(again->layers(), model.layers(), same_layer) ||
      !std::ranges::equal(again->counts(), model.counts(), same_count))
    return std::nullopt;
  return d;
}

}  // namespace reckon
