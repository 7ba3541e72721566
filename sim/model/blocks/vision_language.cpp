#include <fmt/format.h>

#include <cmath>

#include "sim/model/blocks/language_parts.h"

// Towers for images, alone with a text (CLIP, SigLIP) and before a language model.
namespace reckon {
namespace {

constexpr std::string_view kVision = "vision_model";

/// The tokens of an image on their way to the text.
class Projection {
 public:
  Projection(LayerList& net, std::int64_t width, std::int64_t tokens, LayerId x)
      : net_(net), width_(width), tokens_(tokens), x_(x) {}

  LayerId run(const std::vector<ProjectorStep>& steps) {
    for (const ProjectorStep& step : steps)
      std::visit([&](const auto& given) { take(given); }, step);
    return x_;
  }

 private:
  std::string next(std::string_view kind) {
    return fmt::format("projector.{}.{}", number_++, kind);
  }
  /// The class token stands first: what is left has as many elements, whichever they are.
  void take(const DropClassToken& /*step*/) {
    tokens_ -= 1;
    x_ = net_.add(next("patches"), SelectTokens{tokens_}, x_);
  }
  void take(const JoinSteps& step) {
    x_ = net_.add(next("join"), RegroupTokens{step.tokens, 1}, x_);
    tokens_ = (tokens_ + step.tokens - 1) / step.tokens;
    width_ *= step.tokens;
  }
  void take(const PoolSquare& step) {
    x_ = net_.add(next("square"), ImageTokens{}, x_);
    x_ = net_.add(next("pool"), Pool2d{PoolKind::average, step.side, step.side}, x_);
    x_ = net_.add(next("tokens"), ImageTokens{}, x_);
    tokens_ /= step.side * step.side;
  }
  void take(const NormStep& step) {
    x_ = step.kind == NormKind::rms
             ? net_.add(next("norm"), RmsNorm{width_}, x_)
             : net_.add(next("norm"), LayerNorm{width_, step.kind == NormKind::layer}, x_);
  }
  void take(const LinearStep& step) {
    x_ = net_.add(next("linear"), Linear{width_, step.out, step.bias}, x_);
    width_ = step.out;
  }
  void take(const Activation& step) { x_ = net_.add(next("act"), step, x_); }

  LayerList& net_;
  std::int64_t width_, tokens_;
  LayerId x_;
  int number_ = 0;
};

/// SiglipMultiheadAttentionPoolingHead: a learned query attends to the image's tokens.
LayerId pooled_by_query(LayerList& net, const DualEncoder& n, LayerId x) {
  const std::int64_t width = n.vision.stack.hidden;
  const std::string head = "vision_model.head";
  const auto linear = [&](std::string_view name, std::int64_t in, std::int64_t out, LayerId from) {
    return net.add(fmt::format("{}.{}", head, name), Linear{in, out}, from);
  };
  const LayerId id = net.add(head + ".probe_id", ExtraInput{1}, std::vector<LayerId>{});
  const LayerId probe = net.add(head + ".probe", Embedding{1, width}, id);
  const Attention op{n.pooling_heads, n.pooling_heads, width / n.pooling_heads, false};
  LayerId y = net.add(head + ".attention", op,
                      {linear("q", width, width, probe), linear("k", width, width, x),
                       linear("v", width, width, x)});
  y = linear("out_proj", width, width, y);
  LayerId z = net.add(head + ".layernorm", LayerNorm{width}, y);
  z = linear("fc1", width, n.pooling_width, z);
  z = net.add(head + ".act", Activation{ActivationKind::gelu}, z);
  z = linear("fc2", n.pooling_width, width, z);
  y = net.add(head + ".add", Add{}, {y, z});
  return net.add(head + ".flatten", Flatten{}, y);
}

/// One token of (T, width) as a vector.
LayerId one_token(LayerList& net, std::string_view name, LayerId x) {
  x = net.add(fmt::format("{}.token", name), SelectTokens{1}, x);
  return net.add(fmt::format("{}.flatten", name), Flatten{}, x);
}

Diagnostics check_heads(const DualEncoder& n) {
  if (!n.sigmoid || (n.pooling_heads > 0 && n.vision.stack.hidden % n.pooling_heads == 0))
    return {};
  return {{.what = fmt::format("{} heads do not divide the tower's {} features", n.pooling_heads,
                               n.vision.stack.hidden)}};
}

}  // namespace

LayerId vision_tokens(LayerList& net, const VisionTower& t, const std::string& prefix,
                      LayerId image) {
  const std::int64_t width = t.stack.hidden;
  LayerId x =
      net.add(prefix + ".patch_embedding", Linear{t.patch_width, width, t.patch_bias}, image);
  if (t.class_token) x = net.add(prefix + ".class_embedding", ClassToken{width}, x);
  if (t.positions > 0)
    x = net.add(prefix + ".position_embedding", PositionEmbedding{t.positions, width}, x);
  StackBuilder stack(net, t.stack, prefix);
  if (t.first_norm) x = stack.norm(prefix + ".pre_layernorm", x);
  x = stack.build(x);
  net.set_group(prefix + ".head");
  return stack.last_norm(x);
}

std::int64_t image_tokens(const VisionLanguage& n) {
  std::int64_t tokens = n.vision.patches + (n.vision.class_token ? 1 : 0);
  for (const ProjectorStep& step : n.projector) {
    if (std::holds_alternative<DropClassToken>(step)) tokens -= 1;
    if (const auto* join = std::get_if<JoinSteps>(&step))
      tokens = (tokens + join->tokens - 1) / join->tokens;
    if (const auto* pool = std::get_if<PoolSquare>(&step)) tokens /= pool->side * pool->side;
  }
  return tokens;
}

Expected<ModelGraph> make_network(std::string name, const VisionLanguage& n, std::int64_t tokens) {
  LayerList net(128 + 32 * (n.language.stack.blocks.size() + n.vision.stack.blocks.size()));
  const std::string vision(kVision);
  net.set_group("vision_model.embeddings");
  const LayerId image =
      net.add("image", ExtraInput{n.vision.patches, n.vision.patch_width}, std::vector<LayerId>{});
  LayerId seen = vision_tokens(net, n.vision, vision, image);
  net.set_group("projector");
  Projection projection(net, n.vision.stack.hidden,
                        n.vision.patches + (n.vision.class_token ? 1 : 0), seen);
  seen = projection.run(n.projector);
  net.set_group("embeddings");
  const LayerId ids = net.add("input_ids", InputLayer{}, std::vector<LayerId>{});
  const LayerId embedding = embedded_text(net, n.language, ids);
  LayerId x = text_positions(net, n.language, embedding);
  x = net.add("join", JoinTokens{}, {seen, x});
  StackBuilder stack(net, n.language.stack, n.language.prefix);
  x = stack.build(x);
  net.set_group("head");
  x = stack.last_norm(x);
  language_head(net, n.language, embedding, tokens + image_tokens(n), x);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {tokens}, net.take());
}

Expected<ModelGraph> make_network(std::string name, const DualEncoder& n, std::int64_t tokens) {
  if (Diagnostics errors = check_heads(n); !errors.empty())
    return tl::unexpected<Diagnostics>(std::move(errors));
  LayerList net(128 + 32 * (n.text.stack.blocks.size() + n.vision.stack.blocks.size()));
  net.set_group("vision_model.embeddings");
  const LayerId patches =
      net.add("image", ExtraInput{n.vision.patches, n.vision.patch_width}, std::vector<LayerId>{});
  LayerId image{};
  if (n.sigmoid) {
    image = pooled_by_query(net, n, vision_tokens(net, n.vision, std::string(kVision), patches));
  } else {
    // CLIP's last norm is of the class token alone; the others' are as cheap.
    image = one_token(net, "vision_model.class",
                      vision_tokens(net, n.vision, std::string(kVision), patches));
    image = net.add("visual_projection", Linear{n.vision.stack.hidden, n.width, false}, image);
  }
  net.set_group("text_model.embeddings");
  const LayerId ids = net.add("input_ids", InputLayer{}, std::vector<LayerId>{});
  StackBuilder stack(net, n.text.stack, n.text.prefix);
  LayerId text = stack.build(text_positions(net, n.text, embedded_text(net, n.text, ids)));
  net.set_group("head");
  text = one_token(net, "text_model.last", stack.last_norm(text));
  text = net.add("text_projection", Linear{n.text.stack.hidden, n.width, n.sigmoid}, text);
  const LayerId scores =
      net.add("scores", SimilarityScores{n.width, n.batch, n.sigmoid}, {image, text});
  if (n.sigmoid)
    net.add("loss", SigmoidCrossEntropy{}, scores);
  else
    net.add("loss", SoftmaxCrossEntropy{n.batch}, scores);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {tokens}, net.take());
}

}  // namespace reckon
