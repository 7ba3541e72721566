#include <catch2/catch.hpp>

#include "sim/model/sharding.h"
#include "support/zoo.h"

// Multi-head latent attention, first layers without experts, shared experts: what DeepSeek prints
// of its models, and the equations of its section 2.1 by hand.
using namespace reckon;
using reckon::test::layer;
using reckon::test::zoo;

namespace {

const LayerCount& latent_count_of(const ModelGraph& graph, std::string_view name) {
  return graph.counts()[index(layer(graph, name).id)];
}

/// A network small enough to count by hand.
TransformerDimensions latent_small() {
  return {.layers = 3,
          .hidden = 64,
          .heads = 4,
          .feed_forward = 160,
          .vocabulary = 100,
          .sequence_length = 8,
          .gated_feed_forward = true,
          .rms_norm = true,
          .bias = false,
          .tied_output = false,
          .experts = 6,
          .experts_per_token = 2,
          .expert_feed_forward = 24,
          .shared_feed_forward = 48,
          .dense_layers = 1,
          .kv_lora_rank = 20,
          .q_lora_rank = 28,
          .nope_head_width = 12,
          .rope_head_width = 4,
          .value_head_width = 10};
}

ModelGraph made(const TransformerDimensions& d) {
  auto graph = make_transformer("small", d);
  if (!graph) FAIL(format(graph.error()));
  return std::move(*graph);
}

std::string latent_errors_of(const TransformerDimensions& d) {
  const auto graph = make_transformer("small", d);
  REQUIRE_FALSE(graph.has_value());
  return format(graph.error());
}

}  // namespace

TEST_CASE("DeepSeek's models have the parameters that their papers print, within half a percent") {
  // V2 236B, 21B active and V2-Lite 15.7B, 2.4B active [arXiv:2405.04434, abstract, appendix B];
  // V3 671B, 37B active [arXiv:2412.19437, abstract]. Active ones are printed in two digits: within
  // half of the last, without the table of tokens, of which a token meets one row.
  const auto check = [](std::string_view name, double all, double active, double active_half) {
    CAPTURE(name);
    const ModelGraph net = zoo(name);
    CHECK(double(net.parameters()) == Approx(all).epsilon(0.005));
    const auto table = latent_count_of(net, "model.embed_tokens").parameters;
    CHECK(std::abs(double(net.active_parameters() - table) - active) < active_half);
  };
  check("deepseek_v2", 236e9, 21e9, 0.5e9);
  check("deepseek_v2_lite", 15.7e9, 2.4e9, 0.06e9);
  check("deepseek_v3", 671e9, 37e9, 0.5e9);
  check("kimi_k2", 1026408232448, 32e9, 0.5e9);  // moonshotai/Kimi-K2: 1T, 32B active
}

TEST_CASE("latent attention has the weights of its equations") {
  const ModelGraph net = made(latent_small());
  // c_q = W_dq h, norm, q = W_uq c_q; c_kv = W_dkv h, norm, k_r = W_kr h, k = W_uk c_kv, v = W_uv
  // c_kv; W_o [arXiv:2405.04434, appendix C].
  const std::int64_t attention =
      64 * 28 + 28 + 28 * 4 * 16 + 64 * 20 + 20 + 64 * 4 + 20 * 4 * 12 + 20 * 4 * 10 + 4 * 10 * 64;
  const std::int64_t norms = 2 * 64, dense = 3 * 64 * 160;
  const std::int64_t experts = 64 * 6 + 6 * 3 * 64 * 24 + 3 * 64 * 48;
  CHECK(net.parameters() == 2 * 100 * 64 + 64 + 3 * (attention + norms) + dense + 2 * experts);
  const std::int64_t met = 64 * 6 + 2 * 3 * 64 * 24 + 3 * 64 * 48;
  CHECK(net.active_parameters() == 2 * 100 * 64 + 64 + 3 * (attention + norms) + dense + 2 * met);

  TransformerDimensions plain_queries = latent_small();
  plain_queries.q_lora_rank = 0;
  CHECK(made(plain_queries).parameters() ==
        net.parameters() - 3 * (64 * 28 + 28 + 28 * 4 * 16 - 64 * 4 * 16));
}

TEST_CASE("scores are as wide as keys, values as values") {
  const ModelGraph net = made(latent_small());
  const LayerCount& attention = latent_count_of(net, "model.layers.0.self_attn");
  CHECK(attention.matrix.v == 2.0 * 8 * 8 * 4 * (16 + 10));
  CHECK(layer(net, "model.layers.0.self_attn").output == Shape{8, 4 * 10});
  CHECK(layer(net, "model.layers.0.self_attn.k.concat").output == Shape{8, 4 * 16});
  // Kept: q and k (16 a head), v and the output (10 a head).
  const auto kept = [&](std::string_view name) {
    return latent_count_of(net, std::string("model.layers.0.self_attn") + std::string(name))
        .saved_elements;
  };
  CHECK(kept(".q.rotary") + kept(".k.concat") + kept(".kv_b_proj.v") + kept("") ==
        8.0 * 4 * (16 + 16 + 10 + 10));
  CHECK(kept(".kv_b_proj.k") == 0);
}

TEST_CASE("the first layers are dense, the others have routed and shared experts") {
  const ModelGraph net = made(latent_small());
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(net.layers(), [&](const Layer& l) { return l.name == name; });
  };
  CHECK(has("model.layers.0.mlp.gate_proj"));
  CHECK_FALSE(has("model.layers.0.mlp.experts.gate_proj"));
  CHECK(has("model.layers.1.mlp.experts.gate_proj"));
  CHECK(has("model.layers.2.mlp.shared_expert.gate_proj"));
  CHECK(std::get<Linear>(layer(net, "model.layers.0.mlp.gate_proj").op).out == 160);
}

TEST_CASE("tensor parallelism cuts latent attention by heads and leaves the latents whole") {
  const ModelGraph net = made(latent_small());
  const auto sharding = shard_layers(net);
  const auto cut = [&](std::string_view name) {
    const std::string full = std::string("model.layers.0.self_attn.") + std::string(name);
    return sharding[index(layer(net, full).id)].cut;
  };
  for (const auto* name : {"q_a_proj", "q_a_layernorm", "kv_a_proj_with_mqa.latent",
                           "kv_a_proj_with_mqa.rope", "k.rotary"}) {
    CAPTURE(name);
    CHECK(cut(name) == TensorCut::whole);
  }
  for (const auto* name : {"q_b_proj", "kv_b_proj.k", "kv_b_proj.v"}) {
    CAPTURE(name);
    CHECK(cut(name) == TensorCut::column);
  }
  CHECK(cut("k.concat") == TensorCut::parts);
  CHECK(cut("o_proj") == TensorCut::row);
}

TEST_CASE("latent attention is only simulated, and says what does not go with it") {
  const ModelGraph net = made(latent_small());
  CHECK(only_simulated(layer(net, "model.layers.0.self_attn").op));
  CHECK(only_simulated(layer(net, "model.layers.0.self_attn.k.concat").op));
  TransformerDimensions d = latent_small();
  d.rope_head_width = 0;
  CHECK_THAT(latent_errors_of(d), Catch::Contains("rope_head_width of a transformer is 0"));
  d = latent_small();
  d.kv_heads = 2;
  CHECK_THAT(latent_errors_of(d), Catch::Contains("kv_lora_rank and another kind of attention"));
  d = latent_small();
  d.dense_layers = 4;
  CHECK_THAT(latent_errors_of(d), Catch::Contains("dense_layers of a transformer is 4"));
}
