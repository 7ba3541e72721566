#include "sim/model/zoo/diffusion.h"

#include <fmt/format.h>

#include <array>

#include "sim/model/zoo/vision/convolutions.h"

namespace reckon {
namespace {

constexpr std::int64_t kLatent = 4, kDiffusionSide = 64, kFirst = 320, kTime = 4 * kFirst;
constexpr std::int64_t kHeadWidth = 64, kTextTokens = 77, kTextWidth = 1024, kGroups = 16;
constexpr std::array<std::int64_t, 4> kMultipliers{1, 2, 4, 4};
constexpr int kBlocks = 2;  // of a level on the way down; one more on the way up

class Unet {
 public:
  Unet() : net_(1024) {}

  Expected<ModelGraph> build() {
    net_.set_group("inputs");
    Features x{net_.add("latent", InputLayer{}, std::vector<LayerId>{}), kLatent};
    text_ = net_.add("text", ExtraInput{kTextTokens, kTextWidth}, std::vector<LayerId>{});
    embed_time();
    x = {net_.add("input_blocks.0", biased(kLatent, kFirst, 3, 1), x.layer), kFirst};
    skips_.push_back(x);
    x = down(x);
    begin("middle_block");
    x = residual_block("0", x, x.channels);
    x = transformer("1", x);
    x = residual_block("2", x, x.channels);
    x = up(x);
    begin("out");
    LayerId y = norm_silu("out", x);
    y = net_.add("out.2", biased(x.channels, kLatent, 3, 1), y);
    y = net_.add("out.flat", Flatten{}, y);
    net_.add("loss", MeanSquaredError{}, y);
    return ModelGraph::make("stable_diffusion_v2", SampleUnit::image,
                            {kLatent, kDiffusionSide, kDiffusionSide}, net_.take());
  }

 private:
  static Conv2d biased(std::int64_t in, std::int64_t out, std::int64_t kernel,
                       std::int64_t stride) {
    Conv2d op = square(in, out, kernel, stride);
    op.bias = true;
    return op;
  }
  void begin(std::string block) {
    block_ = std::move(block);
    net_.set_group(block_);
  }
  std::string in_block(std::string_view name) const { return fmt::format("{}.{}", block_, name); }

  /// The step's sine and cosine features come with the sample.
  void embed_time() {
    LayerId t = net_.add("timestep", ExtraInput{1, kFirst}, std::vector<LayerId>{});
    t = net_.add("timestep.flat", Flatten{}, t);
    t = net_.add("time_embed.0", Linear{kFirst, kTime}, t);
    t = net_.add("time_embed.1", Activation{ActivationKind::silu}, t);
    time_ = net_.add("time_embed.2", Linear{kTime, kTime}, t);
  }

  Features down(Features x) {
    int block = 1;
    for (std::size_t level = 0; level < kMultipliers.size(); ++level) {
      const bool lowest = level + 1 == kMultipliers.size();
      for (int i = 0; i < kBlocks; ++i, ++block) {
        begin(fmt::format("input_blocks.{}", block));
        x = residual_block("0", x, kMultipliers[level] * kFirst);
        if (!lowest) x = transformer("1", x);
        skips_.push_back(x);
      }
      if (lowest) break;
      begin(fmt::format("input_blocks.{}", block++));
      x.layer = net_.add(in_block("0.op"), biased(x.channels, x.channels, 3, 2), x.layer);
      skips_.push_back(x);
    }
    return x;
  }

  Features up(Features x) {
    int block = 0;
    for (std::size_t level = kMultipliers.size(); level-- > 0;) {
      const bool lowest = level + 1 == kMultipliers.size();
      for (int i = 0; i <= kBlocks; ++i, ++block) {
        begin(fmt::format("output_blocks.{}", block));
        const Features skip = skips_.back();
        skips_.pop_back();
        x = {net_.add(in_block("concat"), Concat{}, {x.layer, skip.layer}),
             x.channels + skip.channels};
        x = residual_block("0", x, kMultipliers[level] * kFirst);
        if (!lowest) x = transformer("1", x);
        if (level > 0 && i == kBlocks) x = upsample(x);
      }
    }
    return x;
  }

  Features upsample(Features x) {
    x.layer = net_.add(in_block("upsample"), Upsample{2}, x.layer);
    x.layer = net_.add(in_block("upsample.conv"), biased(x.channels, x.channels, 3, 1), x.layer);
    return x;
  }

  LayerId norm_silu(const std::string& name, Features x) {
    const LayerId y = net_.add(name + ".norm", GroupNorm{x.channels, kGroups}, x.layer);
    return net_.add(name + ".silu", Activation{ActivationKind::silu}, y);
  }

  /// openaimodel.py, ResBlock.
  Features residual_block(std::string_view part, Features x, std::int64_t out) {
    const std::string name = in_block(part);
    LayerId y = net_.add(name + ".in_layers.2", biased(x.channels, out, 3, 1),
                         norm_silu(name + ".in_layers", x));
    LayerId t = net_.add(name + ".emb_layers.0", Activation{ActivationKind::silu}, time_);
    t = net_.add(name + ".emb_layers.1", Linear{kTime, out}, t);
    y = net_.add(name + ".emb_add", Add{}, {y, t});
    y = net_.add(name + ".out_layers.3", biased(out, out, 3, 1),
                 norm_silu(name + ".out_layers", {y, out}));
    LayerId skip = x.layer;
    if (x.channels != out)
      skip = net_.add(name + ".skip_connection", biased(x.channels, out, 1, 1), skip);
    return {net_.add(name + ".add", Add{}, {skip, y}), out};
  }

  /// attention.py, SpatialTransformer with linear projections: each point is a token.
  Features transformer(std::string_view part, Features x) {
    const std::string name = in_block(part);
    const std::int64_t width = x.channels;
    LayerId y = net_.add(name + ".norm", GroupNorm{width, kGroups}, x.layer);
    y = net_.add(name + ".tokens", ImageTokens{}, y);
    y = net_.add(name + ".proj_in", Linear{width, width}, y);
    const std::string block = name + ".transformer_blocks.0";
    LayerId z = net_.add(block + ".norm1", LayerNorm{width}, y);
    y = net_.add(block + ".attn1.add", Add{}, {attend(block + ".attn1", width, z, z, width), y});
    z = net_.add(block + ".norm2", LayerNorm{width}, y);
    y = net_.add(block + ".attn2.add", Add{},
                 {attend(block + ".attn2", width, z, text_, kTextWidth), y});
    z = net_.add(block + ".norm3", LayerNorm{width}, y);
    y = net_.add(block + ".ff.add", Add{}, {feed_forward(block + ".ff", width, z), y});
    y = net_.add(name + ".proj_out", Linear{width, width}, y);
    y = net_.add(name + ".image", ImageTokens{}, y);
    return {net_.add(name + ".add", Add{}, {y, x.layer}), width};
  }

  LayerId attend(const std::string& name, std::int64_t width, LayerId from, LayerId to,
                 std::int64_t to_width) {
    const std::int64_t heads = width / kHeadWidth;
    const LayerId q = net_.add(name + ".to_q", Linear{width, width, false}, from);
    const LayerId k = net_.add(name + ".to_k", Linear{to_width, width, false}, to);
    const LayerId v = net_.add(name + ".to_v", Linear{to_width, width, false}, to);
    const LayerId y = net_.add(name, Attention{heads, heads, kHeadWidth, false}, {q, k, v});
    return net_.add(name + ".to_out", Linear{width, width}, y);
  }

  /// Gated GELU: one product of the reference makes both halves.
  LayerId feed_forward(const std::string& name, std::int64_t width, LayerId x) {
    const LayerId open = net_.add(name + ".net.0.proj.x", Linear{width, 4 * width}, x);
    LayerId gate = net_.add(name + ".net.0.proj.gate", Linear{width, 4 * width}, x);
    gate = net_.add(name + ".net.0.gelu", Activation{ActivationKind::gelu}, gate);
    const LayerId y = net_.add(name + ".net.0.multiply", Multiply{}, {open, gate});
    return net_.add(name + ".net.2", Linear{4 * width, width}, y);
  }

  LayerList net_;
  std::string block_;
  LayerId text_{}, time_{};
  std::vector<Features> skips_;
};

}  // namespace

Expected<ModelGraph> make_stable_diffusion_v2() { return Unet().build(); }

}  // namespace reckon
