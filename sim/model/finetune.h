#pragma once
#include "sim/base/words.h"
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
  double alpha = 0;  // no unit; the adapter's output is scaled by alpha / rank; 0: twice the rank
  LoraTargets targets = LoraTargets::query_value;
  /// QLoRA: the products that `all_linear` names are kept in four bits (Layer::four_bit).
  bool four_bit = false;
  /// DoRA: each target's output has a learned length, divided by that of the adapted weights' rows,
  /// which are read once a pass for it [Liu 2024, arXiv:2402.09353, section 4.1]. The product of A
  /// and B that peft makes wide for that is left out: it costs as much as `rank` tokens.
  bool magnitudes = false;
};

enum class AdapterKind { lora, qlora, dora, adapters };
constexpr auto words_of(AdapterKind) {
  return std::array{Word<AdapterKind>{"lora", AdapterKind::lora},
                    Word<AdapterKind>{"qlora", AdapterKind::qlora},
                    Word<AdapterKind>{"dora", AdapterKind::dora},
                    Word<AdapterKind>{"adapters", AdapterKind::adapters}};
}

/// LoRA [Hu 2021, arXiv:2106.09685, section 4.1]: h = W x + alpha/r B A x. All of the network is
/// frozen; beside each target stand A (in -> rank) and B (rank -> out), named as Hugging Face's
/// peft names them. A frozen matrix has no gradient of its weights, so that a token costs about 4 N
/// FLOPs in place of 6 N.
///
/// Full fine-tuning is the network as it is.
Expected<ModelGraph> with_lora(const ModelGraph& base, const LoraAdapters& adapters);

/// Adapters [Houlsby 2019, arXiv:1902.00751, section 2.1]: behind each product that goes into a
/// residual sum stand two layers, to `width` features and back, with a GELU between them and a sum.
/// They and the norms are trained, all else is frozen.
Expected<ModelGraph> with_bottlenecks(const ModelGraph& base, std::int64_t width);

/// By kind: lora and dora at queries and values, qlora at all products [Dettmers 2023,
/// arXiv:2305.14314, section 4: "LoRA on all linear transformer block layers"], adapters of that
/// width.
Expected<ModelGraph> with_adapters(const ModelGraph& base, AdapterKind kind, std::int64_t rank);

/// Trains the last `layers` layers that have weights and freezes all others: a linear probe is 1.
/// No gradient goes below the first that is trained, so that what lies before it is a forward pass.
Expected<ModelGraph> with_last_layers(const ModelGraph& base, int layers);

}  // namespace reckon
