#include <fmt/format.h>

#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/transformer_check.h"
#include "sim/model/zoo/zoo.h"

namespace reckon {
namespace {

/// Hugging Face's names; those of a block stand behind "block.<i>.".
struct Names {
  std::string_view tokens, token_types, positions, embedding_norm, embedding_dropout, block;
  std::string_view attention_norm, qkv, q, k, v, attention, attention_out;
  std::string_view feed_forward_norm, gate, up, activation, down;
  std::string_view final_norm, head;
};

// transformers/models/gpt2/modeling_gpt2.py; q, k, v and gate are not GPT-2's.
constexpr Names kGpt2{.tokens = "transformer.wte",
                      .token_types = "transformer.wtt",
                      .positions = "transformer.wpe",
                      .embedding_norm = "transformer.ln_e",
                      .embedding_dropout = "transformer.drop",
                      .block = "transformer.h",
                      .attention_norm = "ln_1",
                      .qkv = "attn.c_attn",
                      .q = "attn.c_attn.q",
                      .k = "attn.c_attn.k",
                      .v = "attn.c_attn.v",
                      .attention = "attn",
                      .attention_out = "attn.c_proj",
                      .feed_forward_norm = "ln_2",
                      .gate = "mlp.c_gate",
                      .up = "mlp.c_fc",
                      .activation = "mlp.act",
                      .down = "mlp.c_proj",
                      .final_norm = "transformer.ln_f",
                      .head = "lm_head"};
// transformers/models/llama/modeling_llama.py; positions and token types are not Llama's.
constexpr Names kLlama{.tokens = "model.embed_tokens",
                       .token_types = "model.embed_token_types",
                       .positions = "model.embed_positions",
                       .embedding_norm = "model.embed_norm",
                       .embedding_dropout = "model.embed_dropout",
                       .block = "model.layers",
                       .attention_norm = "input_layernorm",
                       .qkv = "self_attn.qkv_proj",
                       .q = "self_attn.q_proj",
                       .k = "self_attn.k_proj",
                       .v = "self_attn.v_proj",
                       .attention = "self_attn",
                       .attention_out = "self_attn.o_proj",
                       .feed_forward_norm = "post_attention_layernorm",
                       .gate = "mlp.gate_proj",
                       .up = "mlp.up_proj",
                       .activation = "mlp.act_fn",
                       .down = "mlp.down_proj",
                       .final_norm = "model.norm",
                       .head = "lm_head"};
// transformers/models/bert/modeling_bert.py; gate and a final norm are not BERT's.
constexpr Names kBert{.tokens = "bert.embeddings.word_embeddings",
                      .token_types = "bert.embeddings.token_type_embeddings",
                      .positions = "bert.embeddings.position_embeddings",
                      .embedding_norm = "bert.embeddings.LayerNorm",
                      .embedding_dropout = "bert.embeddings.dropout",
                      .block = "bert.encoder.layer",
                      .attention_norm = "attention.output.LayerNorm",
                      .qkv = "attention.self.qkv",
                      .q = "attention.self.query",
                      .k = "attention.self.key",
                      .v = "attention.self.value",
                      .attention = "attention.self",
                      .attention_out = "attention.output.dense",
                      .feed_forward_norm = "output.LayerNorm",
                      .gate = "intermediate.gate",
                      .up = "intermediate.dense",
                      .activation = "intermediate.intermediate_act_fn",
                      .down = "output.dense",
                      .final_norm = "bert.encoder.LayerNorm",
                      .head = "cls.predictions.decoder"};

/// Builds what make_transformer says; `d` is complete (no zeros that stand for a default) and has
/// been checked.
class TransformerBuilder {
 public:
  explicit TransformerBuilder(const TransformerDimensions& d)
      : d_(d),
        names_(!d.causal    ? kBert
               : d.rms_norm ? kLlama
                            : kGpt2),
        net_(32 + 20 * static_cast<std::size_t>(d.layers)) {}

  std::vector<Layer> build() {
    LayerId x = embeddings();
    for (std::int64_t i = 0; i < d_.layers; ++i) x = block(i, x);
    net_.set_group("head");
    if (!d_.post_norm) x = norm(std::string(names_.final_norm), x);
    if (d_.causal) {
      x = output_projection(x, false);
      net_.add("loss", SoftmaxCrossEntropy{d_.vocabulary}, x);
    } else {
      pre_training_heads(x);
    }
    return net_.take();
  }

 private:
  LayerId norm(std::string name, LayerId x) {
    if (d_.rms_norm) return net_.add(std::move(name), RmsNorm{d_.hidden}, x);
    return net_.add(std::move(name), LayerNorm{d_.hidden, d_.bias}, x);
  }
  LayerId dropout(std::string name, LayerId x) {
    return d_.dropout > 0 ? net_.add(std::move(name), Dropout{d_.dropout}, x) : x;
  }
  std::string in_block(std::string_view name) const { return fmt::format("{}.{}", block_, name); }
  LayerId project(std::string_view name, std::int64_t in, std::int64_t out, LayerId x) {
    return net_.add(in_block(name), Linear{in, out, d_.bias}, x);
  }
  LayerId project_input(std::string_view name, std::int64_t out, LayerId x) {
    return net_.add(in_block(name), Linear{d_.hidden, out, d_.bias || d_.qkv_bias}, x);
  }

  LayerId embeddings() {
    net_.set_group("embeddings");
    const LayerId ids = net_.add("input_ids", InputLayer{}, std::vector<LayerId>{});
    embedding_ = net_.add(std::string(names_.tokens), Embedding{d_.vocabulary, d_.hidden}, ids);
    LayerId x = embedding_;
    if (d_.token_types > 0) {
      const LayerId types = net_.add("token_type_ids", InputLayer{}, std::vector<LayerId>{});
      const LayerId segment =
          net_.add(std::string(names_.token_types), Embedding{d_.token_types, d_.hidden}, types);
      x = net_.add(fmt::format("{}.add", names_.token_types), Add{}, {x, segment});
    }
    if (d_.positions > 0)
      x = net_.add(std::string(names_.positions), PositionEmbedding{d_.positions, d_.hidden}, x);
    if (d_.post_norm) x = norm(std::string(names_.embedding_norm), x);
    return dropout(std::string(names_.embedding_dropout), x);
  }

  LayerId block(std::int64_t i, LayerId x) {
    block_ = fmt::format("{}.{}", names_.block, i);
    net_.set_group(block_);
    dense_ = d_.experts == 0 || i < d_.dense_layers;
    if (d_.parallel_residual) return parallel_block(x);
    x = residual(names_.attention_norm, names_.attention_out, x,
                 [this](LayerId in) { return attention(in); });
    return residual(names_.feed_forward_norm, names_.down, x,
                    [this](LayerId in) { return feed_forward(in); });
  }

  /// Pre-norm: x + f(norm(x)); post-norm: norm(x + f(x)). Sum and dropout are named after the last
  /// projection of f.
  template <class SubLayer>
  LayerId residual(std::string_view norm_name, std::string_view last, LayerId x, SubLayer f) {
    LayerId y = f(d_.post_norm ? x : norm(in_block(norm_name), x));
    y = dropout(fmt::format("{}.{}.dropout", block_, last), y);
    y = net_.add(fmt::format("{}.{}.add", block_, last), Add{}, {x, y});
    return d_.post_norm ? norm(in_block(norm_name), y) : y;
  }

  /// x + attention(norm(x)) + feed_forward(other norm(x)): one sum, modeling_gpt_neox.py.
  LayerId parallel_block(LayerId x) {
    LayerId a = attention(norm(in_block(names_.attention_norm), x));
    a = dropout(fmt::format("{}.{}.dropout", block_, names_.attention_out), a);
    LayerId f = feed_forward(norm(in_block(names_.feed_forward_norm), x));
    f = dropout(fmt::format("{}.{}.dropout", block_, names_.down), f);
    return net_.add(fmt::format("{}.{}.add", block_, names_.down), Add{}, {x, a, f});
  }

  LayerId attention(LayerId x) {
    if (d_.kv_lora_rank > 0) return latent_attention(x);
    const std::int64_t q_width = d_.heads * d_.head_width, kv_width = d_.kv_heads * d_.head_width;
    std::vector<LayerId> inputs;
    if (&names_ == &kGpt2 && !rotary()) {
      inputs = {project_input(names_.qkv, q_width + 2 * kv_width, x)};
    } else {
      inputs = {project_input(names_.q, q_width, x), project_input(names_.k, kv_width, x),
                project_input(names_.v, kv_width, x)};
    }
    if (d_.qk_norm) {
      inputs[0] =
          net_.add(in_block("self_attn.q_norm"), RmsNorm{d_.head_width, d_.heads}, inputs[0]);
      inputs[1] =
          net_.add(in_block("self_attn.k_norm"), RmsNorm{d_.head_width, d_.kv_heads}, inputs[1]);
    }
    if (rotary()) {
      const RotaryEmbedding op{d_.head_width, d_.rotary_theta, d_.rotary_width};
      inputs[0] = net_.add(fmt::format("{}.{}.rotary", block_, names_.q), op, inputs[0]);
      inputs[1] = net_.add(fmt::format("{}.{}.rotary", block_, names_.k), op, inputs[1]);
    }
    const Attention op{d_.heads,   d_.kv_heads, d_.head_width, d_.causal,
                       d_.dropout, d_.window,   d_.alibi};
    return project(names_.attention_out, q_width, d_.hidden,
                   net_.add(in_block(names_.attention), op, inputs));
  }

  /// modeling_deepseek_v3.py, DeepseekV3Attention.
  LayerId latent_attention(LayerId x) {
    const std::int64_t nope = d_.nope_head_width, rope = d_.rope_head_width;
    const std::int64_t width = nope + rope, values = d_.value_head_width;
    LayerId q = x;
    if (d_.q_lora_rank > 0) q = latent("q_a_proj", "q_a_layernorm", d_.q_lora_rank, x);
    q = plain(d_.q_lora_rank > 0 ? "q_b_proj" : "q_proj",
              d_.q_lora_rank > 0 ? d_.q_lora_rank : d_.hidden, d_.heads * width, q);
    q = net_.add(in_block("self_attn.q.rotary"), RotaryEmbedding{width, d_.rotary_theta, rope}, q);
    const LayerId kv = latent("kv_a_proj_with_mqa.latent", "kv_a_layernorm", d_.kv_lora_rank, x);
    LayerId shared = plain("kv_a_proj_with_mqa.rope", d_.hidden, rope, x);
    shared =
        net_.add(in_block("self_attn.k.rotary"), RotaryEmbedding{rope, d_.rotary_theta}, shared);
    const LayerId own = plain("kv_b_proj.k", d_.kv_lora_rank, d_.heads * nope, kv);
    const LayerId k =
        net_.add(in_block("self_attn.k.concat"), ConcatToHeads{d_.heads}, {own, shared});
    const LayerId v = plain("kv_b_proj.v", d_.kv_lora_rank, d_.heads * values, kv);
    Attention op{d_.heads, d_.heads, width, d_.causal, d_.dropout};
    op.value_width = values;
    return project(names_.attention_out, d_.heads * values, d_.hidden,
                   net_.add(in_block(names_.attention), op, {q, k, v}));
  }
  /// Of attention, without a bias.
  LayerId plain(std::string_view name, std::int64_t in, std::int64_t out, LayerId x) {
    return net_.add(fmt::format("{}.self_attn.{}", block_, name), Linear{in, out, false}, x);
  }
  LayerId latent(std::string_view name, std::string_view norm_name, std::int64_t rank, LayerId x) {
    return net_.add(fmt::format("{}.self_attn.{}", block_, norm_name), RmsNorm{rank},
                    plain(name, d_.hidden, rank, x));
  }
  bool rotary() const { return d_.positions == 0 && !d_.alibi; }

  LayerId feed_forward(LayerId x) {
    if (!dense_) return mixture(x);
    return dense_feed_forward(names_.gate, names_.up, names_.activation, names_.down,
                              d_.feed_forward, x);
  }

  LayerId dense_feed_forward(std::string_view gate, std::string_view up,
                             std::string_view activation, std::string_view down, std::int64_t width,
                             LayerId x) {
    LayerId y{};
    if (d_.gated_feed_forward) {
      y = project(gate, d_.hidden, width, x);
      y = net_.add(in_block(activation), Activation{d_.activation}, y);
      const LayerId open = project(up, d_.hidden, width, x);
      y = net_.add(fmt::format("{}.{}.multiply", block_, up), Multiply{}, {y, open});
    } else {
      y = project(up, d_.hidden, width, x);
      y = net_.add(in_block(activation), Activation{d_.activation}, y);
    }
    return project(down, width, d_.hidden, y);
  }

  /// modeling_mixtral.py, modeling_qwen2_moe.py (whose names these are): a router, the experts that
  /// it chooses, and beside them one expert that all tokens share.
  LayerId mixture(LayerId x) {
    const LayerId scores = net_.add(in_block("mlp.gate"), Linear{d_.hidden, d_.experts, false}, x);
    const auto expert = [&](std::string_view name, std::int64_t in, std::int64_t out,
                            LayerId rows) {
      const ExpertLinear op{d_.experts, d_.experts_per_token, in, out, d_.bias};
      return net_.add(fmt::format("{}.mlp.experts.{}", block_, name), op, {rows, scores});
    };
    const std::int64_t width = d_.expert_feed_forward;
    const LayerId rows = net_.add(in_block("mlp.experts.dispatch"),
                                  ExpertDispatch{d_.experts, d_.experts_per_token}, {x, scores});
    LayerId y = expert(d_.gated_feed_forward ? "gate_proj" : "up_proj", d_.hidden, width, rows);
    y = net_.add(in_block("mlp.experts.act_fn"), Activation{d_.activation}, y);
    if (d_.gated_feed_forward) {
      const LayerId open = expert("up_proj", d_.hidden, width, rows);
      y = net_.add(in_block("mlp.experts.up_proj.multiply"), Multiply{}, {y, open});
    }
    y = expert("down_proj", width, d_.hidden, y);
    const ExpertCombine combine{d_.experts, d_.experts_per_token, d_.normalized_experts};
    y = net_.add(in_block("mlp.experts.combine"), combine, {y, scores});
    if (d_.shared_feed_forward == 0) return y;
    return net_.add(in_block("mlp.shared_expert.add"), Add{}, {y, shared_expert(x)});
  }

  LayerId shared_expert(LayerId x) {
    LayerId y = dense_feed_forward("mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj",
                                   "mlp.shared_expert.act_fn", "mlp.shared_expert.down_proj",
                                   d_.shared_feed_forward, x);
    if (!d_.shared_expert_gate) return y;
    LayerId open = net_.add(in_block("mlp.shared_expert_gate"), Linear{d_.hidden, 1, false}, x);
    open = net_.add(in_block("mlp.shared_expert_gate.sigmoid"), Activation{ActivationKind::sigmoid},
                    open);
    return net_.add(in_block("mlp.shared_expert_gate.multiply"), Multiply{}, {y, open});
  }

  LayerId output_projection(LayerId x, bool bias) {
    const Linear op{d_.hidden, d_.vocabulary, bias};
    std::string name(names_.head);
    return d_.tied_output ? net_.add_tied(std::move(name), op, x, embedding_)
                          : net_.add(std::move(name), op, x);
  }

  void pre_training_heads(LayerId encoded) {
    const std::int64_t masked = (15 * d_.sequence_length + 99) / 100;
    LayerId x = net_.add("cls.predictions.select", SelectTokens{masked, true}, encoded);
    x = net_.add("cls.predictions.transform.dense", Linear{d_.hidden, d_.hidden, d_.bias}, x);
    x = net_.add("cls.predictions.transform.transform_act_fn", Activation{d_.activation}, x);
    x = norm("cls.predictions.transform.LayerNorm", x);
    x = output_projection(x, d_.bias);
    const LayerId masked_loss =
        net_.add("cls.predictions.loss", SoftmaxCrossEntropy{d_.vocabulary}, x);
    if (d_.token_types == 0) return;
    x = net_.add("bert.pooler.select", SelectTokens{1}, encoded);
    x = net_.add("bert.pooler.dense", Linear{d_.hidden, d_.hidden, d_.bias}, x);
    x = net_.add("bert.pooler.activation", Activation{ActivationKind::tanh}, x);
    x = net_.add("cls.seq_relationship", Linear{d_.hidden, 2, d_.bias}, x);
    const LayerId next_loss = net_.add("cls.seq_relationship.loss", SoftmaxCrossEntropy{2}, x);
    net_.add("loss", Add{}, {masked_loss, next_loss});
  }

  const TransformerDimensions& d_;
  const Names& names_;
  LayerList net_;
  std::string block_;
  bool dense_ = true;  // of the block at hand: no experts
  LayerId embedding_{};
};

}  // namespace

Expected<ModelGraph> make_transformer(std::string name, const TransformerDimensions& given) {
  TransformerDimensions d = given;
  if (d.kv_heads == 0) d.kv_heads = d.heads;
  if (d.head_width == 0 && d.kv_lora_rank > 0) d.head_width = d.nope_head_width + d.rope_head_width;
  if (d.head_width == 0 && d.heads > 0) d.head_width = d.hidden / d.heads;
  if (d.feed_forward == 0) d.feed_forward = 4 * d.hidden;
  if (d.expert_feed_forward == 0) d.expert_feed_forward = d.feed_forward;
  Diagnostics errors = check_transformer(given, d);
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {d.sequence_length},
                          TransformerBuilder(d).build());
}

}  // namespace reckon
