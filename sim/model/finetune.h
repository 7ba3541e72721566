#pragma once
#include "sim/model/graph.h"

// Training a part of a network: the result is a network again, so counting and running it need no
// rule of their own.
namespace reckon {

enum class LoraTargets {
  query_value,  // [Hu 2021, section 4.2]; peft's default for Llama. GPT-2's one projection is all
  all_linear,   // every Linear and ExpertLinear but the last ones before a loss; peft "all-linear"
};

struct LoraAdapters {
  std::int64_t rank = 8;
  double alpha = 0;  // the adapter's output is scaled by alpha / rank; 0: twice the rank
  LoraTargets targets = LoraTargets::query_value;
};

/// LoRA [Hu 2021, arXiv:2106.09685, section 4.1]: h = W x + alpha/r B A x. All of the network is
/// frozen; beside each target stand A (in -> rank) and B (rank -> out), named as Hugging Face's
/// peft names them. A frozen matrix has no gradient of its weights, so that a token costs about 4 N
/// FLOPs in place of 6 N.
///
/// Full fine-tuning is the network as it is.
Expected<ModelGraph> with_lora(const ModelGraph& base, const LoraAdapters& adapters);

/// Trains the last `layers` layers that have weights and freezes all others: a linear probe is 1.
/// No gradient goes below the first that is trained, so that what lies before it is a forward pass.
Expected<ModelGraph> with_last_layers(const ModelGraph& base, int layers);

}  // namespace reckon
