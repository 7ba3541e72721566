#include <fmt/format.h>

#include "exchange/huggingface/family.h"

// Transformers of diffusers: their config.json has `_class_name` in place of model_type.
namespace reckon::huggingface {
namespace {

/// diffusers/models/transformers/transformer_flux.py.
void flux(ConfigJson& c, HuggingFaceModel& model) {
  FluxTransformer n;
  n.double_blocks = bounded(c, "num_layers", c.number("num_layers", 19), kMostBlocks);
  n.single_blocks = bounded(c, "num_single_layers", c.number("num_single_layers", 38), kMostBlocks);
  n.heads = c.number("num_attention_heads", 24);
  n.head_width = c.number("attention_head_dim", 128);
  n.latent_channels = c.number("in_channels", 64);
  n.text_width = c.number("joint_attention_dim", 4096);
  n.pooled_width = c.number("pooled_projection_dim", 768);
  n.guidance = c.flag("guidance_embeds", false);
  if (c.number("out_channels", n.latent_channels) != n.latent_channels)
    c.mistake("out_channels", "other channels out than in are not covered",
              "out_channels: null is covered");
  // Latents are 8 times smaller than the image, patches of them 2 x 2: 1,024 x 1,024 pixels.
  constexpr std::int64_t kTokens = 4096;
  model.sequence_length = kTokens;
  model.longest_sequence = 1 << 20;
  model.notes.push_back(fmt::format(
      "sequence_length counts tokens of the image's latents, a sixteenth of its pixels' sides; "
      "the encoders of image and text ({} tokens) are not of the network",
      n.text_tokens));
  model.dimensions = n;
}

constexpr std::array kDiffusion{Family{"FluxTransformer2DModel", "FluxTransformer2DModel", flux}};

}  // namespace

std::span<const Family> diffusion_families() { return kDiffusion; }

}  // namespace reckon::huggingface
