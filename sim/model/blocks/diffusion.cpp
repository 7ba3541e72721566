#include <fmt/format.h>

#include "sim/model/blocks/networks.h"
#include "sim/model/zoo/builder.h"

// Transformers that take noise out of latents. Scales and shifts of the norms are made of a vector
// that stands for the time step and the class or text; the published matrix that makes all of a
// block's at once is a layer for each here.
namespace reckon {
namespace {

constexpr std::int64_t kTimeFeatures = 256;  // sines and cosines of the time step
constexpr std::int64_t kWider = 4;           // a feed-forward part than its stream

class DiffusionBuilder {
 public:
  explicit DiffusionBuilder(std::int64_t hidden, std::int64_t heads, std::size_t layers)
      : net_(layers), hidden_(hidden), heads_(heads) {}

 protected:
  LayerId linear(const std::string& name, std::int64_t in, std::int64_t out, LayerId x) {
    return net_.add(name, Linear{in, out}, x);
  }
  /// A vector of `width` numbers -> (hidden): linear, SiLU, linear.
  LayerId embedded(const std::string& name, std::int64_t width) {
    LayerId x = net_.add(name, ExtraInput{1, width}, std::vector<LayerId>{});
    x = net_.add(name + ".flatten", Flatten{}, x);
    x = linear(name + "_embedder.linear_1", width, hidden_, x);
    x = net_.add(name + "_embedder.act", Activation{ActivationKind::silu}, x);
    return linear(name + "_embedder.linear_2", hidden_, hidden_, x);
  }
  /// `count` vectors (hidden) of the condition.
  std::vector<LayerId> modulation(const std::string& name, LayerId condition, int count) {
    const LayerId x = net_.add(name + ".silu", Activation{ActivationKind::silu}, condition);
    std::vector<LayerId> out;
    for (int i = 0; i < count; ++i)
      out.push_back(linear(fmt::format("{}.linear.{}", name, i), hidden_, hidden_, x));
    return out;
  }
  LayerId modulated(const std::string& name, LayerId x, LayerId scale, LayerId shift) {
    x = net_.add(name, LayerNorm{hidden_, false, false}, x);
    return net_.add(name + ".modulate", Modulate{}, {x, scale, shift});
  }
  LayerId gated_sum(const std::string& name, LayerId x, LayerId y, LayerId gate) {
    y = net_.add(name + ".gate", Modulate{true}, {y, gate});
    return net_.add(name + ".add", Add{}, {x, y});
  }
  LayerId feed_forward(const std::string& name, LayerId x) {
    x = linear(name + ".0", hidden_, kWider * hidden_, x);
    x = net_.add(name + ".act", Activation{ActivationKind::gelu}, x);
    return linear(name + ".2", kWider * hidden_, hidden_, x);
  }
  void head(LayerId x, LayerId condition, std::int64_t out) {
    net_.set_group("head");
    const auto m = modulation("norm_out", condition, 2);
    x = modulated("norm_out.norm", x, m[0], m[1]);
    x = linear("proj_out", hidden_, out, x);
    net_.add("loss", MeanSquaredError{}, x);
  }

  LayerList net_;
  std::int64_t hidden_, heads_;
};

struct Streams {
  LayerId image{}, text{};
};

class FluxBuilder : DiffusionBuilder {
 public:
  explicit FluxBuilder(const FluxTransformer& n)
      : DiffusionBuilder(n.heads * n.head_width, n.heads,
                         64 + 90 * static_cast<std::size_t>(n.double_blocks + n.single_blocks)),
        n_(n) {}

  std::vector<Layer> build() {
    net_.set_group("embeddings");
    const LayerId latents = net_.add("latents", InputLayer{}, std::vector<LayerId>{});
    const LayerId words =
        net_.add("text", ExtraInput{n_.text_tokens, n_.text_width}, std::vector<LayerId>{});
    Streams x{linear("x_embedder", n_.latent_channels, hidden_, latents),
              linear("context_embedder", n_.text_width, hidden_, words)};
    std::vector<LayerId> conditions{embedded("timestep", kTimeFeatures),
                                    embedded("pooled_text", n_.pooled_width)};
    if (n_.guidance) conditions.push_back(embedded("guidance", kTimeFeatures));
    condition_ = net_.add("time_text_embed", Add{}, conditions);
    for (std::int64_t i = 0; i < n_.double_blocks; ++i) x = double_block(i, x);
    LayerId joined = net_.add("streams", JoinTokens{}, {x.image, x.text});
    for (std::int64_t i = 0; i < n_.single_blocks; ++i) joined = single_block(i, joined);
    net_.set_group("head");
    joined = net_.add("image_stream", SelectTokens{tokens_}, joined);
    head(joined, condition_, n_.latent_channels);
    return net_.take();
  }
  void set_tokens(std::int64_t tokens) { tokens_ = tokens; }

 private:
  /// Projected, normed and rotated: FluxAttention.
  struct Projections {
    LayerId q{}, k{}, v{};
  };
  LayerId normed(const std::string& name, LayerId x) {
    return net_.add(name + ".norm", RmsNorm{n_.head_width, heads_}, x);
  }
  LayerId rotated(const std::string& name, LayerId x) {
    return net_.add(name + ".rotary", RotaryEmbedding{n_.head_width}, x);
  }
  Projections projections(const std::string& name, LayerId x) {
    return {normed(name + ".q", linear(name + ".to_q", hidden_, hidden_, x)),
            normed(name + ".k", linear(name + ".to_k", hidden_, hidden_, x)),
            linear(name + ".to_v", hidden_, hidden_, x)};
  }
  LayerId attention(const std::string& name, LayerId q, LayerId k, LayerId v) {
    return net_.add(name, Attention{heads_, heads_, n_.head_width, false},
                    {rotated(name + ".q", q), k, v});
  }

  Streams double_block(std::int64_t i, Streams x) {
    const std::string block = fmt::format("transformer_blocks.{}", i);
    net_.set_group(block);
    const auto m = modulation(block + ".norm1", condition_, 6);
    const auto c = modulation(block + ".norm1_context", condition_, 6);
    const Projections image =
        projections(block + ".attn.image", modulated(block + ".norm1.norm", x.image, m[0], m[1]));
    const Projections text = projections(
        block + ".attn.text", modulated(block + ".norm1_context.norm", x.text, c[0], c[1]));
    LayerId k = net_.add(block + ".attn.k", JoinTokens{}, {image.k, text.k});
    k = rotated(block + ".attn.k", k);
    const LayerId v = net_.add(block + ".attn.v", JoinTokens{}, {image.v, text.v});
    const auto stream = [&](const std::string& name, LayerId from, LayerId q,
                            const std::vector<LayerId>& by) {
      LayerId y = attention(block + ".attn." + name + ".scores", q, k, v);
      y = linear(block + ".attn." + name + ".out", hidden_, hidden_, y);
      const LayerId sum = gated_sum(block + ".attn." + name, from, y, by[2]);
      y = modulated(block + ".norm2." + name, sum, by[3], by[4]);
      return gated_sum(block + ".ff." + name, sum, feed_forward(block + ".ff." + name, y), by[5]);
    };
    const LayerId of_image = stream("image", x.image, image.q, m);
    return {of_image, stream("text", x.text, text.q, c)};
  }

  LayerId single_block(std::int64_t i, LayerId x) {
    const std::string block = fmt::format("single_transformer_blocks.{}", i);
    net_.set_group(block);
    const auto m = modulation(block + ".norm", condition_, 3);
    const LayerId y = modulated(block + ".norm.norm", x, m[0], m[1]);
    const Projections p = projections(block + ".attn", y);
    const LayerId k = rotated(block + ".attn.k", p.k);
    const LayerId mixed = attention(block + ".attn.scores", p.q, k, p.v);
    LayerId z = linear(block + ".proj_mlp", hidden_, kWider * hidden_, y);
    z = net_.add(block + ".act_mlp", Activation{ActivationKind::gelu}, z);
    z = net_.add(block + ".concat", Concat{}, {mixed, z});
    z = linear(block + ".proj_out", (kWider + 1) * hidden_, hidden_, z);
    return gated_sum(block, x, z, m[2]);
  }

  const FluxTransformer& n_;
  std::int64_t tokens_ = 0;
  LayerId condition_{};
};

class DitBuilder : DiffusionBuilder {
 public:
  explicit DitBuilder(const DiffusionTransformer& n)
      : DiffusionBuilder(n.hidden, n.heads, 64 + 40 * static_cast<std::size_t>(n.layers)), n_(n) {}

  std::vector<Layer> build() {
    net_.set_group("embeddings");
    const std::int64_t tokens = (n_.side / n_.patch) * (n_.side / n_.patch);
    LayerId x = net_.add("latents", InputLayer{}, std::vector<LayerId>{});
    const Conv2d patches{.in = n_.channels,
                         .out = hidden_,
                         .kernel_h = n_.patch,
                         .kernel_w = n_.patch,
                         .stride = n_.patch,
                         .bias = true};
    x = net_.add("x_embedder.proj", patches, x);
    x = net_.add("x_embedder.tokens", ImageTokens{}, x);
    // Sines and cosines, stored and not trained.
    x = net_.add_frozen("pos_embed", PositionEmbedding{tokens, hidden_}, {x}, std::nullopt);
    const LayerId id = net_.add("class", ExtraInput{1}, std::vector<LayerId>{});
    LayerId label = net_.add("y_embedder", Embedding{n_.classes + 1, hidden_}, id);
    label = net_.add("y_embedder.flatten", Flatten{}, label);
    const LayerId condition =
        net_.add("condition", Add{}, {embedded("timestep", kTimeFeatures), label});
    for (std::int64_t i = 0; i < n_.layers; ++i) x = block(i, x, condition);
    head(x, condition, n_.patch * n_.patch * n_.channels * (n_.learns_deviation ? 2 : 1));
    return net_.take();
  }

 private:
  LayerId block(std::int64_t i, LayerId x, LayerId condition) {
    const std::string name = fmt::format("blocks.{}", i);
    net_.set_group(name);
    const auto m = modulation(name + ".adaLN_modulation", condition, 6);
    LayerId y = modulated(name + ".norm1", x, m[0], m[1]);
    y = linear(name + ".attn.qkv", hidden_, 3 * hidden_, y);
    y = net_.add(name + ".attn", Attention{heads_, heads_, hidden_ / heads_, false}, y);
    y = linear(name + ".attn.proj", hidden_, hidden_, y);
    x = gated_sum(name + ".attn", x, y, m[2]);
    y = modulated(name + ".norm2", x, m[3], m[4]);
    return gated_sum(name + ".mlp", x, feed_forward(name + ".mlp", y), m[5]);
  }

  const DiffusionTransformer& n_;
};

Diagnostics positive(std::string_view what, std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t n : sizes)
    if (n < 1) return {{.what = fmt::format("a size of {} is {}", what, n), .hint = "1 or more"}};
  return {};
}

}  // namespace

Expected<ModelGraph> make_network(std::string name, const FluxTransformer& n, std::int64_t tokens) {
  if (Diagnostics wrong =
          positive("a FLUX transformer", {n.heads, n.head_width, n.text_tokens, tokens});
      !wrong.empty())
    return tl::unexpected<Diagnostics>(std::move(wrong));
  FluxBuilder builder(n);
  builder.set_tokens(tokens);
  return ModelGraph::make(std::move(name), SampleUnit::image, {tokens, n.latent_channels},
                          builder.build());
}

Expected<ModelGraph> make_network(std::string name, const DiffusionTransformer& n) {
  Diagnostics wrong = positive("DiT", {n.heads, n.hidden, n.patch, n.side});
  if (wrong.empty() && (n.hidden % n.heads != 0 || n.side % n.patch != 0))
    wrong.push_back({.what = fmt::format("{} heads do not divide {} features, or patches of {} do "
                                         "not divide latents of {}",
                                         n.heads, n.hidden, n.patch, n.side)});
  if (!wrong.empty()) return tl::unexpected<Diagnostics>(std::move(wrong));
  return ModelGraph::make(std::move(name), SampleUnit::image, {n.channels, n.side, n.side},
                          DitBuilder(n).build());
}

}  // namespace reckon
