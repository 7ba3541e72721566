#include <fmt/format.h>

#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/zoo.h"

// Vision transformers.
namespace reckon {
namespace {

LayerId encoder_block(LayerList& net, const std::string& name, LayerId x,
                      const VisionTransformerDimensions& d) {
  const auto dropped = [&](std::string_view part, LayerId y) {
    return d.dropout > 0 ? net.add(fmt::format("{}.{}", name, part), Dropout{d.dropout}, y) : y;
  };
  LayerId y = net.add(name + ".ln_1", LayerNorm{d.hidden}, x);
  y = net.add(name + ".self_attention.in_proj", Linear{d.hidden, 3 * d.hidden, d.qkv_bias}, y);
  const Attention attention{d.heads, d.heads, d.hidden / d.heads, false, d.dropout};
  y = net.add(name + ".self_attention", attention, y);
  y = net.add(name + ".self_attention.out_proj", Linear{d.hidden, d.hidden}, y);
  x = net.add(name + ".add", Add{}, {x, dropped("dropout", y)});
  y = net.add(name + ".ln_2", LayerNorm{d.hidden}, x);
  y = net.add(name + ".mlp.0", Linear{d.hidden, d.feed_forward}, y);
  y = dropped("mlp.2", net.add(name + ".mlp.1", Activation{d.activation}, y));
  y = dropped("mlp.4", net.add(name + ".mlp.3", Linear{d.feed_forward, d.hidden}, y));
  return net.add(name + ".add_1", Add{}, {x, y});
}

Diagnostics check(const VisionTransformerDimensions& d) {
  Diagnostics errors;
  const auto within = [&](std::string_view name, std::int64_t value, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    errors.push_back({.what = fmt::format("{} of a vision transformer is {}", name, value),
                      .hint = fmt::format("it must lie in 1..{}", most)});
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  within("layers", d.layers, 10000);
  within("hidden", d.hidden, kMost);
  within("heads", d.heads, kMost);
  within("feed_forward", d.feed_forward, 4 * kMost);
  within("image", d.image, 1 << 15);
  within("patch", d.patch, 1 << 15);
  within("channels", d.channels, 1 << 15);
  within("classes", d.classes, kMost);
  if (!errors.empty()) return errors;
  if (d.hidden % d.heads != 0)
    errors.push_back({.what = fmt::format("{} heads do not divide hidden {}", d.heads, d.hidden)});
  if (d.image % d.patch != 0) {
    errors.push_back({.what = fmt::format("patches of {} pixels do not divide an image of {}",
                                          d.patch, d.image)});
  }
  return errors;
}

}  // namespace

Expected<ModelGraph> make_vision_transformer(std::string name,
                                             const VisionTransformerDimensions& given) {
  VisionTransformerDimensions d = given;
  if (d.feed_forward == 0) d.feed_forward = 4 * d.hidden;
  Diagnostics errors = check(d);
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));

  LayerList net(16 + 14 * static_cast<std::size_t>(d.layers));
  net.set_group("embeddings");
  LayerId x = net.add("input", InputLayer{}, std::vector<LayerId>{});
  const Conv2d patches{.in = d.channels,
                       .out = d.hidden,
                       .kernel_h = d.patch,
                       .kernel_w = d.patch,
                       .stride = d.patch,
                       .bias = true};
  x = net.add("conv_proj", patches, x);
  x = net.add("conv_proj.tokens", ImageTokens{}, x);
  x = net.add("class_token", ClassToken{d.hidden}, x);
  const std::int64_t side = d.image / d.patch;
  x = net.add("encoder.pos_embedding", PositionEmbedding{side * side + 1, d.hidden}, x);
  if (d.dropout > 0) x = net.add("encoder.dropout", Dropout{d.dropout}, x);
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const std::string block = fmt::format("encoder.layers.{}", i);
    net.set_group(block);
    x = encoder_block(net, block, x, d);
  }
  net.set_group("head");
  x = net.add("encoder.ln", LayerNorm{d.hidden}, x);
  x = net.add("encoder.class", SelectTokens{1}, x);
  x = net.add("heads.head", Linear{d.hidden, d.classes}, x);
  net.add("loss", SoftmaxCrossEntropy{d.classes}, x);
  return ModelGraph::make(std::move(name), SampleUnit::image, {d.channels, d.image, d.image},
                          net.take());
}

}  // namespace reckon
