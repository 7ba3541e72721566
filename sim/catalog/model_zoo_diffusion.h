#pragma once
#include "sim/catalog/model_graph.h"

// Networks that make images.
namespace reckon {

/// Stable Diffusion v2's U-Net [Rombach 2022, arXiv:2112.10752], of 64 x 64 latents, as MLPerf
/// trains it: mlcommons/training:retired_benchmarks/stable_diffusion,
/// ldm/modules/diffusionmodules/openaimodel.py and configs/train_01x08x08.yaml. The frozen encoders
/// are not of the graph: latents are made in advance (its README, "Preprocessed moments"), and the
/// 77 vectors of a text come as an input. One sample is an image of 512 x 512.
Expected<ModelGraph> make_stable_diffusion_v2();

}  // namespace reckon
