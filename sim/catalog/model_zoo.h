#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/catalog/model_graph.h"

// Networks by name and by dimension. Each builder cites the publication and the reference implementation whose
// graph it builds, layer by layer; totals are tested against published counts.
namespace reckon {

/// A decoder or encoder by its dimensions (`workload.model: {transformer: {...}}` uses the same names).
struct TransformerDimensions {
  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::int64_t kv_heads = 0;            // 0: heads
  std::int64_t head_width = 0;          // 0: hidden / heads
  std::int64_t feed_forward = 0;        // 0: 4 * hidden
  std::int64_t vocabulary = 0;
  std::int64_t sequence_length = 0;
  std::int64_t positions = 0;           // rows of the learned position table; 0: rotary
  std::int64_t token_types = 0;         // BERT's segment table
  bool gated_feed_forward = false;      // SwiGLU: gate and up projections
  bool rms_norm = false;                // else layer norm
  bool bias = true;                     // on every projection
  bool tied_output = true;              // output projection shares the embedding
  bool causal = true;                   // decoder
  bool post_norm = false;               // BERT: norm behind each residual sum
  ActivationKind activation = ActivationKind::gelu;
};
Expected<ModelGraph> make_transformer(std::string name, const TransformerDimensions& d);

/// hidden: widths of the layers between input and output.
Expected<ModelGraph> make_mlp(std::string name, std::int64_t inputs, std::span<const std::int64_t> hidden,
                              std::int64_t classes);

/// Names of the zoo, for messages: resnet50, resnet50_v1_5, vgg16, mlp_mnist, gpt2_small, llama2_7b, bert_large, ...
std::vector<std::string> zoo_names();
/// nullopt: no such name. sequence_length applies to transformers only (nullopt: the model's own).
std::optional<ModelGraph> zoo_model(std::string_view name, std::optional<std::int64_t> sequence_length = {});
/// The precise list of what can be a sequence model, for messages about `sequence_length` on an image model.
bool zoo_takes_sequence_length(std::string_view name);

}  // namespace reckon
