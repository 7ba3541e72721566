#include <fmt/format.h>

#include <cmath>

#include "exchange/huggingface/family.h"

// Towers for images: with a text beside them, and before a language model.
namespace reckon::huggingface {
namespace {

struct TowerSizes {
  std::int64_t layers, hidden, heads, feed_forward, channels, image, patch;
};
TowerSizes tower_sizes(ConfigJson& c, const TowerSizes& o) {
  TowerSizes s{};
  s.layers = bounded(c, "num_hidden_layers", c.number("num_hidden_layers", o.layers), kMostBlocks);
  s.hidden = c.number("hidden_size", o.hidden);
  s.heads = c.number("num_attention_heads", o.heads);
  s.feed_forward = c.number("intermediate_size", o.feed_forward);
  s.channels = c.number("num_channels", o.channels);
  s.image = bounded(c, "image_size", c.number("image_size", o.image), 1 << 15);
  s.patch = bounded(c, "patch_size", c.number("patch_size", o.patch), 1 << 15);
  return s;
}

AttentionPart tower_attention(ConfigJson& c, std::int64_t heads, std::int64_t hidden) {
  if (hidden % heads != 0)
    c.mistake("num_attention_heads",
              fmt::format("{} heads do not divide {} features", heads, hidden));
  AttentionPart a{heads, heads, std::max<std::int64_t>(1, hidden / heads)};
  a.causal = false;
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = true;
  return a;
}

/// Blocks of layer norms and biases, one tower of CLIP's or SigLIP's.
VisionTower tower(ConfigJson& c, const TowerSizes& s, const char* activation) {
  VisionTower t;
  const std::int64_t side = s.image / s.patch;
  if (side < 1)
    c.mistake("patch_size",
              fmt::format("patches of {} pixels do not fit an image of {}", s.patch, s.image));
  t.patches = std::max<std::int64_t>(1, side * side);
  t.patch_width = s.channels * s.patch * s.patch;
  t.positions = t.patches;
  t.stack.hidden = s.hidden;
  t.stack.norm = NormKind::layer;
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::plain,
                          c.activation("hidden_act", activation), true};
  t.stack.blocks.assign(static_cast<std::size_t>(s.layers),
                        block_of(tower_attention(c, s.heads, s.hidden), f));
  return t;
}

/// modeling_clip.py, CLIPVisionTransformer: defaults of CLIPVisionConfig.
VisionTower clip_tower(ConfigJson& c) {
  VisionTower t = tower(c, tower_sizes(c, {12, 768, 12, 3072, 3, 224, 32}), "quick_gelu");
  t.class_token = true;
  t.positions += 1;
  t.first_norm = true;
  return t;
}

/// modeling_siglip.py, SiglipVisionTransformer.
VisionTower siglip_tower(ConfigJson& c) {
  VisionTower t = tower(c, tower_sizes(c, {12, 768, 12, 3072, 3, 224, 16}), "gelu_pytorch_tanh");
  t.patch_bias = true;
  return t;
}

LanguageNetwork text_tower(ConfigJson& c, const Defaults& otherwise, std::int64_t positions,
                           const char* activation, bool causal) {
  const Sizes s = read_sizes(c, otherwise);
  LanguageNetwork n;
  n.prefix = "text_model";
  n.stack.hidden = s.hidden;
  n.stack.norm = NormKind::layer;
  n.vocabulary = s.vocabulary;
  n.positions = c.number("max_position_embeddings", positions);
  AttentionPart a = tower_attention(c, s.heads, s.hidden);
  a.causal = causal;
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::plain,
                          c.activation("hidden_act", activation), true};
  n.stack.blocks.assign(static_cast<std::size_t>(s.layers), block_of(a, f));
  return n;
}

void clip(ConfigJson& c, HuggingFaceModel& model) {
  DualEncoder n;
  ConfigJson vision = c.section("vision_config"), text = c.section("text_config");
  n.vision = clip_tower(vision);
  n.text = text_tower(text, {12, 512, 8, 2048, 49408}, 77, "quick_gelu", true);
  n.width = c.number("projection_dim", 512);
  model.longest_sequence = model.sequence_length = n.text.positions;
  model.notes.push_back(fmt::format("compared with the {} pairs of a global batch", n.batch));
  model.dimensions = n;
}

void siglip(ConfigJson& c, HuggingFaceModel& model) {
  DualEncoder n;
  ConfigJson vision = c.section("vision_config"), text = c.section("text_config");
  n.vision = siglip_tower(vision);
  n.pooling_heads = vision.number("num_attention_heads", 12);
  n.pooling_width = vision.number("intermediate_size", 3072);
  n.text = text_tower(text, {12, 768, 12, 3072, 32000}, 64, "gelu_pytorch_tanh", false);
  n.width = n.vision.stack.hidden;
  n.sigmoid = true;
  model.longest_sequence = model.sequence_length = n.text.positions;
  model.notes.push_back(fmt::format("compared with the {} pairs of a global batch", n.batch));
  model.dimensions = n;
}

void with_image(ConfigJson& text, HuggingFaceModel& model, VisionLanguage n, std::int64_t longest) {
  model.longest_sequence = text.number("max_position_embeddings", longest);
  model.notes.push_back(
      fmt::format("a sample's text comes behind one image of {} tokens", image_tokens(n)));
  model.dimensions = std::move(n);
}

/// modeling_llava.py: CLIP's patches through two linear layers. The tower's last block and norm are
/// held and not used; they are run here.
void llava(ConfigJson& c, HuggingFaceModel& model) {
  ConfigJson vision = c.section("vision_config"), text = c.section("text_config");
  VisionLanguage n;
  const std::string kind = vision.text("model_type", "clip_vision_model");
  if (kind == "siglip_vision_model") {
    n.vision = siglip_tower(vision);
  } else if (kind == "clip_vision_model") {
    n.vision = clip_tower(vision);
    n.projector.emplace_back(DropClassToken{});
  } else {
    vision.mistake("model_type", fmt::format("a tower '{}' is not covered", kind.substr(0, 40)),
                   "covered: clip_vision_model, siglip_vision_model");
  }
  const std::string language = text.text("model_type", "llama");
  if (language == "llama")
    n.language = read_llama_text(text);
  else if (language == "qwen2")
    n.language = read_qwen2_text(text);
  else
    text.mistake("model_type",
                 fmt::format("a language model '{}' is not covered", language.substr(0, 40)),
                 "covered: llama, qwen2");
  const std::int64_t hidden = n.language.stack.hidden;
  const bool bias = c.flag("multimodal_projector_bias", true);
  n.projector.emplace_back(LinearStep{hidden, bias});
  n.projector.emplace_back(Activation{c.activation("projector_hidden_act", "gelu")});
  n.projector.emplace_back(LinearStep{hidden, bias});
  with_image(text, model, std::move(n), 2048);
}

/// modeling_gemma3.py: SigLIP's tokens averaged to mm_tokens_per_image.
void gemma3(ConfigJson& c, HuggingFaceModel& model) {
  ConfigJson vision = c.section("vision_config"), text = c.section("text_config");
  VisionLanguage n;
  n.vision = siglip_tower(vision);
  n.language = read_gemma3_text(text);
  const std::int64_t tokens = c.number("mm_tokens_per_image", 256);
  const auto side = [](std::int64_t count) {
    return std::max<std::int64_t>(1, std::llround(std::sqrt(static_cast<double>(count))));
  };
  n.projector.emplace_back(
      PoolSquare{std::max<std::int64_t>(1, side(n.vision.patches) / side(tokens))});
  n.projector.emplace_back(NormStep{NormKind::rms});
  n.projector.emplace_back(LinearStep{n.language.stack.hidden, false});
  with_image(text, model, std::move(n), 131072);
}

/// modeling_llama4.py: pixel shuffle joins tokens, then an MLP of its own and the projection.
void llama4(ConfigJson& c, HuggingFaceModel& model) {
  ConfigJson vision = c.section("vision_config"), text = c.section("text_config");
  VisionLanguage n;
  n.vision = tower(vision, tower_sizes(vision, {34, 768, 16, 5632, 3, 448, 14}), "gelu");
  n.vision.class_token = true;
  n.vision.positions += 1;
  n.vision.first_norm = true;
  n.language = read_llama4_text(text);
  const double ratio = vision.real("pixel_shuffle_ratio", 0.5);
  const double joined = ratio > 0.01 && ratio <= 1 ? 1 / (ratio * ratio) : 0;
  if (joined == 0)
    vision.mistake("pixel_shuffle_ratio", fmt::format("pixel_shuffle_ratio is {}", ratio),
                   "it must lie in (0.01, 1]");
  n.projector.emplace_back(DropClassToken{});
  n.projector.emplace_back(JoinSteps{std::max<std::int64_t>(1, std::llround(joined))});
  n.projector.emplace_back(LinearStep{vision.number("projector_input_dim", 4096), false});
  n.projector.emplace_back(Activation{ActivationKind::gelu});
  n.projector.emplace_back(LinearStep{vision.number("projector_output_dim", 4096), false});
  n.projector.emplace_back(Activation{ActivationKind::gelu});
  n.projector.emplace_back(LinearStep{n.language.stack.hidden, false});
  with_image(text, model, std::move(n), 131072);
}

/// The files say no size of an image: 448 x 448 pixels, about what an average photo is scaled to.
constexpr std::int64_t kPixels = 448;

VisionTower qwen_tower(ConfigJson& c, std::int64_t hidden, bool gated) {
  VisionTower t;
  const std::int64_t layers = bounded(c, "depth", c.number("depth", 32), kMostBlocks);
  const std::int64_t heads = c.number("num_heads", 16);
  const std::int64_t patch = bounded(c, "patch_size", c.number("patch_size", 14), kPixels);
  const std::int64_t channels = c.number(c.present("in_chans") ? "in_chans" : "in_channels", 3);
  const std::int64_t frames = c.number("temporal_patch_size", 2);
  const std::int64_t side = kPixels / patch;
  t.patches = side * side;
  t.patch_width = channels * frames * patch * patch;
  t.stack.hidden = hidden;
  t.stack.norm = gated ? NormKind::rms : NormKind::layer;
  t.stack.last_norm = false;
  AttentionPart a = tower_attention(c, heads, hidden);
  a.rotary = Rotary{};
  FeedForwardPart f;
  if (gated) {
    f = {c.number("intermediate_size", 3420), FeedForwardKind::gated,
         c.activation("hidden_act", "silu"), true};
  } else {
    const double ratio = c.real("mlp_ratio", 4);
    f = {std::max<std::int64_t>(
             1, std::llround(static_cast<double>(hidden) * std::clamp(ratio, 0.0, 1024.0))),
         FeedForwardKind::plain, c.activation("hidden_act", "quick_gelu"), true};
  }
  t.stack.blocks.assign(static_cast<std::size_t>(layers), block_of(a, f));
  return t;
}

void add_merger(ConfigJson& vision, VisionLanguage& n, NormKind norm) {
  const std::int64_t merge =
      bounded(vision, "spatial_merge_size", vision.number("spatial_merge_size", 2), 64);
  n.projector.emplace_back(NormStep{norm});
  n.projector.emplace_back(JoinSteps{merge * merge});
  n.projector.emplace_back(LinearStep{n.vision.stack.hidden * merge * merge});
  n.projector.emplace_back(Activation{ActivationKind::gelu});
  n.projector.emplace_back(LinearStep{n.language.stack.hidden});
}

/// Newer files have the language model's keys in a section of their own.
LanguageNetwork qwen_text(ConfigJson& c, HuggingFaceModel& model) {
  if (!c.present("text_config")) {
    take_longest(c, model, 32768);
    return read_qwen2_text(c);
  }
  ConfigJson text = c.section("text_config");
  take_longest(text, model, 32768);
  LanguageNetwork n = read_qwen2_text(text);
  if (c.present("tie_word_embeddings")) n.tied_output = c.flag("tie_word_embeddings", false);
  return n;
}

void note_image(HuggingFaceModel& model, const VisionLanguage& n) {
  model.notes.push_back(
      fmt::format("a sample's text comes behind one image of {} x {} pixels, {} tokens", kPixels,
                  kPixels, image_tokens(n)));
}

/// modeling_qwen2_vl.py: patches of two frames, layer norms.
void qwen2_vl(ConfigJson& c, HuggingFaceModel& model) {
  ConfigJson vision = c.section("vision_config");
  VisionLanguage n;
  n.language = qwen_text(c, model);
  n.vision = qwen_tower(vision, vision.number("embed_dim", 1280), false);
  add_merger(vision, n, NormKind::layer);
  note_image(model, n);
  model.dimensions = std::move(n);
}

/// modeling_qwen2_5_vl.py: RMS norms, SwiGLU, windows of 112 pixels but for some of the layers.
void qwen2_5_vl(ConfigJson& c, HuggingFaceModel& model) {
  ConfigJson vision = c.section("vision_config");
  VisionLanguage n;
  n.language = qwen_text(c, model);
  n.vision = qwen_tower(vision, vision.number("hidden_size", 1280), true);
  std::vector<std::int64_t> full = vision.numbers("fullatt_block_indexes");
  if (full.empty()) full = {7, 15, 23, 31};
  const std::int64_t patch = std::max<std::int64_t>(1, vision.number("patch_size", 14));
  const std::int64_t side = std::max<std::int64_t>(
      1, bounded(vision, "window_size", vision.number("window_size", 112), 1 << 15) / patch);
  for (std::size_t i = 0; i < n.vision.stack.blocks.size(); ++i) {
    if (std::ranges::find(full, static_cast<std::int64_t>(i)) != full.end()) continue;
    std::get<AttentionPart>(n.vision.stack.blocks[i].parts[0].op).window = side * side;
  }
  add_merger(vision, n, NormKind::rms);
  note_image(model, n);
  model.dimensions = std::move(n);
}

constexpr std::array kVision{Family{"clip", "CLIPModel", clip},
                             Family{"gemma3", "Gemma3ForConditionalGeneration", gemma3},
                             Family{"llama4", "Llama4ForConditionalGeneration", llama4},
                             Family{"llava", "LlavaForConditionalGeneration", llava},
                             Family{"qwen2_5_vl", "Qwen2_5_VL", qwen2_5_vl},
                             Family{"qwen2_vl", "Qwen2VL", qwen2_vl},
                             Family{"siglip", "SiglipModel", siglip}};

}  // namespace

std::span<const Family> vision_families() { return kVision; }

}  // namespace reckon::huggingface
