#pragma once
#include "sim/model/graph.h"

// Networks that make images.
namespace reckon {

/// Stable Diffusion v2's U-Net [Rombach 2022, arXiv:2112.10752], of 64 x 64 latents, as MLPerf
/// trains it: mlcommons/training:retired_benchmarks/stable_diffusion,
/// ldm/modules/diffusionmodules/openaimodel.py and configs/train_01x08x08.yaml. The frozen encoders
/// are not of the graph: latents are made in advance (its README, "Preprocessed moments"), and the
/// 77 vectors of a text come as an input. One sample is an image of 512 x 512.
Expected<ModelGraph> make_stable_diffusion_v2();

/// A generative adversarial network: SNGAN's residual networks for CIFAR-10 [Miyato 2018,
/// arXiv:1802.05957, table 4]; pfnet-research/sngan_projection:gen_models/resnet_32.py,
/// dis_models/snresnet_32.py. A sample is a real image and a made one: the discriminator is trained
/// on both, and the generator through the discriminator once more (the paper trains the
/// discriminator five times as often; spectral norms of its weights, once a batch, are left out).
/// Each hinge loss counts as a sigmoid cross-entropy.
Expected<ModelGraph> make_sngan_cifar10();

}  // namespace reckon
