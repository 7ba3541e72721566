#pragma once
#include <cstdint>
#include <span>

#include "executor/train/parameters.h"
#include "executor/train/workers.h"

// First weights. Each tensor's numbers depend on the seed and its name alone, so every rank draws
// the same, whatever part of the network it holds, and of a tensor that it holds a part of what one
// rank would have drawn for that part.
namespace reckon {

/// By the kind of network, as its reference implementations do:
///  - Images and records: Kaiming normal, fan out, gain 2, for convolutions [He 2015,
///    arXiv:1502.01852, eq. 14-15; torchvision/models/resnet.py]; uniform in +-1/sqrt(in) for
///    linear layers and all biases (torch.nn.Linear).
///  - Sequences: normal, deviation 0.02, for all matrices and tables; the last projection of each
///    residual branch 0.02 / sqrt(2 * blocks) [Radford 2019, section 2.3; Hugging Face
///    modeling_gpt2.py, nanoGPT]; biases 0.
///  - Norms: weight 1, bias 0. LoRA: A as torch.nn.Linear, B 0, so that the adapters begin at no
///    change [Hu 2021, section 4.1].
/// Slots that are pulled stay as they are.
void initialise(const ModelGraph& model, const ParameterLayout& layout, std::uint64_t seed,
                Workers& workers, std::span<float> values);

}  // namespace reckon
