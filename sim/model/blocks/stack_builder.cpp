#include "sim/model/blocks/stack_builder.h"

#include <fmt/format.h>

namespace reckon {

std::string StackBuilder::named(std::string_view name) const {
  return fmt::format("{}.{}.{}", block_, part_, name);
}

LayerId StackBuilder::norm(std::string name, LayerId x, std::int64_t width) {
  if (width == 0) width = stack_.hidden;
  if (stack_.norm == NormKind::rms) return net_.add(std::move(name), RmsNorm{width}, x);
  return net_.add(std::move(name), LayerNorm{width, stack_.norm == NormKind::layer}, x);
}

LayerId StackBuilder::linear(std::string_view name, std::int64_t in, std::int64_t out, bool bias,
                             LayerId x) {
  return net_.add(named(name), Linear{in, out, bias}, x);
}

LayerId StackBuilder::build(LayerId x, std::optional<LayerId> memory, std::int64_t memory_width) {
  memory_ = memory;
  memory_width_ = memory_width;
  if (stack_.relative_buckets > 0)
    relative_bias_ = net_.add(prefix_ + ".relative_attention_bias",
                              RelativeBias{stack_.relative_heads, stack_.relative_buckets}, {x, x});
  if (stack_.dropout > 0) x = net_.add(prefix_ + ".dropout", Dropout{stack_.dropout}, x);
  for (std::size_t i = 0; i < stack_.blocks.size(); ++i) {
    block_ = fmt::format("{}.layers.{}", prefix_, i);
    net_.set_group(block_);
    const Block& b = stack_.blocks[i];
    x = b.parallel ? parallel_block(b, x) : block(b, x);
  }
  return x;
}

LayerId StackBuilder::last_norm(LayerId x) {
  return stack_.last_norm ? norm(prefix_ + ".norm", x) : x;
}

LayerId StackBuilder::block(const Block& block, LayerId x) {
  for (const Part& p : block.parts) x = part(p, x);
  return x;
}

/// x + f(n(x)) + g(n(x)).
LayerId StackBuilder::parallel_block(const Block& block, LayerId x) {
  const LayerId normed = norm(block_ + ".input_layernorm", x);
  std::vector<LayerId> sum{x};
  for (const Part& p : block.parts) {
    part_ = p.name;
    sum.push_back(apply(p.op, normed));
  }
  return net_.add(block_ + ".add", Add{}, sum);
}

LayerId StackBuilder::part(const Part& p, LayerId x) {
  part_ = p.name;
  const bool before = p.norm == NormPlace::before || p.norm == NormPlace::both;
  LayerId y = before ? norm(named("input_norm"), x) : x;
  y = apply(p.op, y);
  if (p.norm == NormPlace::both || p.norm == NormPlace::behind) y = norm(named("output_norm"), y);
  return summed(p, x, y);
}

LayerId StackBuilder::summed(const Part& p, LayerId x, LayerId y) {
  if (stack_.dropout > 0) y = net_.add(named("dropout"), Dropout{stack_.dropout}, y);
  if (p.scale != 1) y = net_.add(named("residual_scale"), ScaleBy{p.scale}, y);
  y = net_.add(named("add"), Add{}, {x, y});
  return p.norm == NormPlace::sum ? norm(named("sum_norm"), y) : y;
}

LayerId StackBuilder::apply(const PartOp& op, LayerId x) {
  return std::visit([&](const auto& given) { return run(given, x); }, op);
}

LayerId StackBuilder::run(const FeedForwardPart& f, LayerId x) { return feed_forward(f, "", x); }

/// up, activated and perhaps multiplied by the gate. `gate` is what is activated where there is
/// one.
LayerId StackBuilder::activated(const FeedForwardPart& f, const std::string& name, LayerId up,
                                LayerId gate) {
  if (f.kind == FeedForwardKind::squared_relu) {
    const LayerId y = net_.add(name + "act_fn", Activation{ActivationKind::relu}, up);
    return net_.add(name + "act_fn.square", Multiply{}, {y, y});
  }
  if (f.kind == FeedForwardKind::plain)
    return net_.add(name + "act_fn", Activation{f.activation}, up);
  const LayerId open = net_.add(name + "act_fn", Activation{f.activation}, gate);
  return net_.add(name + "multiply", Multiply{}, {open, up});
}

LayerId StackBuilder::feed_forward(const FeedForwardPart& f, std::string_view inside, LayerId x) {
  const std::string name(inside);
  const LayerId gate = f.kind == FeedForwardKind::gated
                           ? linear(name + "gate_proj", stack_.hidden, f.width, f.bias, x)
                           : x;
  const LayerId up = linear(name + "up_proj", stack_.hidden, f.width, f.bias, x);
  LayerId y = activated(f, named(name), up, gate);
  if (f.dropout > 0) y = net_.add(named(name + "dropout_inside"), Dropout{f.dropout}, y);
  return linear(name + "down_proj", f.width, stack_.hidden, f.bias || f.down_bias, y);
}

/// modeling_qwen2_moe.py, modeling_deepseek_v3.py.
LayerId StackBuilder::run(const ExpertsPart& e, LayerId x) {
  const FeedForwardPart& f = e.expert;
  const LayerId scores = linear("router", stack_.hidden, e.experts, e.router_bias, x);
  const LayerId rows =
      net_.add(named("experts.dispatch"), ExpertDispatch{e.experts, e.per_token}, {x, scores});
  const auto expert = [&](std::string_view name, std::int64_t in, std::int64_t out, LayerId from) {
    const ExpertLinear op{e.experts, e.per_token, in, out, f.bias};
    return net_.add(named(fmt::format("experts.{}", name)), op, {from, scores});
  };
  const LayerId gate =
      f.kind == FeedForwardKind::gated ? expert("gate_proj", stack_.hidden, f.width, rows) : rows;
  const LayerId up = expert("up_proj", stack_.hidden, f.width, rows);
  LayerId y = activated(f, named("experts."), up, gate);
  y = expert("down_proj", f.width, stack_.hidden, y);
  y = net_.add(named("experts.combine"), ExpertCombine{e.experts, e.per_token, e.normalized},
               {y, scores});
  if (!e.shared) return y;
  LayerId shared = feed_forward(*e.shared, "shared_expert.", x);
  if (e.shared_gate) {
    LayerId open = linear("shared_expert_gate", stack_.hidden, 1, false, x);
    open = net_.add(named("shared_expert_gate.sigmoid"), Activation{ActivationKind::sigmoid}, open);
    shared = net_.add(named("shared_expert_gate.multiply"), Multiply{}, {shared, open});
  }
  return net_.add(named("shared_expert.add"), Add{}, {y, shared});
}

}  // namespace reckon
