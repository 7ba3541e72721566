#pragma once
#include <optional>

#include "sim/model/zoo/zoo.h"

namespace reckon {

/// The dimensions of a decoder, read off its layers, complete (no zeros that stand for a default):
/// make_transformer() of them gives this network again. nullopt: the network is none that it
/// builds, is trained in parts (LoRA, frozen layers), is an encoder, or has latent attention.
std::optional<TransformerDimensions> transformer_dimensions_of(const ModelGraph& model);

}  // namespace reckon
