#include <fmt/format.h>

#include "sim/model/blocks/stack_builder.h"

// What mixes tokens: attention, and layers with a state.
namespace reckon {

LayerId StackBuilder::rotated(const AttentionPart& a, std::string_view name,
                              std::int64_t head_width, LayerId x) {
  if (!a.rotary) return x;
  const std::int64_t width = a.rotary->width == head_width ? 0 : a.rotary->width;
  return net_.add(named(name), RotaryEmbedding{head_width, a.rotary->theta, width}, x);
}

LayerId StackBuilder::query_key_norm(const AttentionPart& a, std::string_view name,
                                     std::int64_t heads, LayerId x) {
  if (a.norm == QueryKeyNorm::none) return x;
  if (a.norm == QueryKeyNorm::all) return net_.add(named(name), RmsNorm{a.head_width * heads}, x);
  RmsNorm op{a.head_width, heads};
  op.affine = a.norm == QueryKeyNorm::heads;
  return net_.add(named(name), op, x);
}

LayerId StackBuilder::attend(const AttentionPart& a, std::vector<LayerId> inputs) {
  Attention op{a.heads, a.kv_heads, a.head_width, a.causal && !a.cross, a.dropout, a.window};
  op.sinks = a.sinks;
  op.softcap = a.softcap;
  if (a.latent) op.value_width = a.latent->values;
  if (a.relative && relative_bias_) inputs.push_back(*relative_bias_);
  return net_.add(named("attention"), op, std::move(inputs));
}

LayerId StackBuilder::run(const AttentionPart& a, LayerId x) {
  if (a.latent) return latent_attention(a, x);
  const std::int64_t q_width = a.heads * a.head_width, kv_width = a.kv_heads * a.head_width;
  const LayerId others = a.cross && memory_ ? *memory_ : x;
  const std::int64_t others_width = a.cross && memory_ ? memory_width_ : stack_.hidden;
  LayerId q = linear("q_proj", stack_.hidden, q_width, a.query_bias, x);
  LayerId k = linear("k_proj", others_width, kv_width, a.key_bias, others);
  const LayerId v = linear("v_proj", others_width, kv_width, a.value_bias, others);
  // Norms without weights stand behind the rotation (modeling_llama4.py).
  const bool norm_first = a.norm != QueryKeyNorm::heads_without_weights;
  if (norm_first) {
    q = query_key_norm(a, "q_norm", a.heads, q);
    k = query_key_norm(a, "k_norm", a.kv_heads, k);
  }
  q = rotated(a, "q_rotary", a.head_width, q);
  k = rotated(a, "k_rotary", a.head_width, k);
  if (!norm_first) {
    q = query_key_norm(a, "q_norm", a.heads, q);
    k = query_key_norm(a, "k_norm", a.kv_heads, k);
  }
  LayerId y = attend(a, {q, k, v});
  if (a.gated) {
    LayerId open = linear("gate_proj", stack_.hidden, q_width, a.query_bias, x);
    open = net_.add(named("gate.sigmoid"), Activation{ActivationKind::sigmoid}, open);
    y = net_.add(named("gate.multiply"), Multiply{}, {y, open});
  }
  return linear("o_proj", q_width, stack_.hidden, a.output_bias, y);
}

/// modeling_deepseek_v3.py, DeepseekV3Attention; as in the zoo's transformer.
LayerId StackBuilder::latent_attention(const AttentionPart& a, LayerId x) {
  const LatentWidths& w = *a.latent;
  const std::int64_t head = w.nope + w.rope;
  const Rotary rotary = a.rotary.value_or(Rotary{});
  LayerId q = x;
  if (w.queries > 0)
    q = net_.add(named("q_a_layernorm"), RmsNorm{w.queries},
                 linear("q_a_proj", stack_.hidden, w.queries, false, x));
  q = linear("q_b_proj", w.queries > 0 ? w.queries : stack_.hidden, a.heads * head, false, q);
  q = net_.add(named("q_rotary"), RotaryEmbedding{head, rotary.theta, w.rope}, q);
  const LayerId kv = net_.add(named("kv_a_layernorm"), RmsNorm{w.keys_values},
                              linear("kv_a_proj.latent", stack_.hidden, w.keys_values, false, x));
  LayerId shared = linear("kv_a_proj.rope", stack_.hidden, w.rope, false, x);
  shared = net_.add(named("k_rotary"), RotaryEmbedding{w.rope, rotary.theta}, shared);
  const LayerId own = linear("kv_b_proj.k", w.keys_values, a.heads * w.nope, false, kv);
  const LayerId k = net_.add(named("k_concat"), ConcatToHeads{a.heads}, {own, shared});
  const LayerId v = linear("kv_b_proj.v", w.keys_values, a.heads * w.values, false, kv);
  AttentionPart of_heads = a;
  of_heads.kv_heads = a.heads;
  of_heads.head_width = head;
  return linear("o_proj", a.heads * w.values, stack_.hidden, a.output_bias,
                attend(of_heads, {q, k, v}));
}

LayerId StackBuilder::convolved(std::string_view name, std::int64_t width, std::int64_t kernel,
                                bool bias, LayerId x) {
  const std::string conv = fmt::format("conv1d.{}", name);
  const SequenceConv op{width, width, kernel, 1, width, bias};
  return net_.add(named(conv + ".act"), Activation{ActivationKind::silu},
                  net_.add(named(conv), op, x));
}

LayerId StackBuilder::run(const MambaPart& m, LayerId x) {
  const LayerId gate = linear("in_proj.gate", stack_.hidden, m.inner, m.bias, x);
  LayerId y = linear("in_proj.x", stack_.hidden, m.inner, m.bias, x);
  y = convolved("x", m.inner, m.kernel, m.conv_bias, y);
  const auto made = [&](std::string_view name, std::int64_t width) {
    const LayerId of = linear(fmt::format("x_proj.{}", name), m.inner, width, false, y);
    return m.norms ? net_.add(named(fmt::format("{}_layernorm", name)), RmsNorm{width}, of) : of;
  };
  LayerId steps = made("dt", m.rank);
  steps = linear("dt_proj", m.rank, m.inner, true, steps);
  const LayerId b = made("b", m.state), c = made("c", m.state);
  y = net_.add(named("scan"), SelectiveScan{m.inner, m.state}, {y, steps, b, c});
  const LayerId open = net_.add(named("gate.act"), Activation{ActivationKind::silu}, gate);
  y = net_.add(named("gate.multiply"), Multiply{}, {y, open});
  return linear("out_proj", m.inner, stack_.hidden, m.bias, y);
}

LayerId StackBuilder::run(const Mamba2Part& m, LayerId x) {
  const std::int64_t inner = m.heads * m.head_width, parts = m.groups * m.state;
  const LayerId gate = linear("in_proj.gate", stack_.hidden, inner, m.bias, x);
  LayerId y = linear("in_proj.x", stack_.hidden, inner, m.bias, x);
  LayerId b = linear("in_proj.b", stack_.hidden, parts, m.bias, x);
  LayerId c = linear("in_proj.c", stack_.hidden, parts, m.bias, x);
  const LayerId steps = linear("in_proj.dt", stack_.hidden, m.heads, m.bias, x);
  y = convolved("x", inner, m.kernel, m.conv_bias, y);
  b = convolved("b", parts, m.kernel, m.conv_bias, b);
  c = convolved("c", parts, m.kernel, m.conv_bias, c);
  y = net_.add(named("ssm"), StateSpace{m.heads, m.head_width, m.state, m.groups, m.chunk},
               {y, steps, b, c});
  const LayerId open = net_.add(named("gate.act"), Activation{ActivationKind::silu}, gate);
  y = net_.add(named("gate.multiply"), Multiply{}, {y, open});
  if (m.norm) {
    RmsNorm op{inner};
    if (m.norm_of_groups && m.groups > 1 && inner % m.groups == 0)
      op = {inner / m.groups, m.groups, false};
    y = net_.add(named("norm"), op, y);
  }
  return linear("out_proj", inner, stack_.hidden, m.bias, y);
}

LayerId StackBuilder::run(const DeltaPart& r, LayerId x) {
  const std::int64_t keys = r.key_heads * r.key_width, values = r.heads * r.value_width;
  const auto projected = [&](std::string_view name, std::int64_t width) {
    return linear(fmt::format("in_proj.{}", name), stack_.hidden, width, false, x);
  };
  const LayerId q = convolved("q", keys, r.kernel, false, projected("q", keys));
  const LayerId k = convolved("k", keys, r.kernel, false, projected("k", keys));
  const LayerId v = convolved("v", values, r.kernel, false, projected("v", values));
  const LayerId gate = projected("gate", values);
  const LayerId strength = net_.add(named("strength.sigmoid"), Activation{ActivationKind::sigmoid},
                                    projected("strength", r.heads));
  const LayerId decay = projected("decay", r.heads);
  const DeltaRule op{r.heads, r.key_heads, r.key_width, r.value_width};
  LayerId y = net_.add(named("delta_rule"), op, {q, k, v, strength, decay});
  y = net_.add(named("norm"), RmsNorm{r.value_width, r.heads}, y);
  const LayerId open = net_.add(named("gate.act"), Activation{ActivationKind::silu}, gate);
  y = net_.add(named("gate.multiply"), Multiply{}, {y, open});
  return linear("out_proj", values, stack_.hidden, false, y);
}

}  // namespace reckon
