#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/zoo/zoo.h"

// A Hugging Face config.json as dimensions of a network. Keys and their defaults are those of
// transformers/models/<model_type>/configuration_<model_type>.py.
namespace reckon {

struct HuggingFaceModel {
  std::string name;  // its `_name_or_path`, else its model_type
  /// sequence_length of a transformer: the rows of a learned position table, else 0, because the
  /// file does not say on which lengths it is trained.
  std::variant<TransformerDimensions, VisionTransformerDimensions> dimensions;
  std::int64_t longest_sequence = 0;  // max_position_embeddings; 0: no sequences
};

/// Values of `model_type` that are understood: bert, deepseek_v2, deepseek_v3, gpt2, gpt_neox,
/// kimi_k2, llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, vit.
std::vector<std::string> huggingface_families();

/// `file` names the text in messages. Any text is answered: with a model, or with all that is
/// wrong.
Expected<HuggingFaceModel> read_huggingface_config(std::string_view text, const std::string& file);

/// nullopt: the position table's length; an error where there is none.
Expected<ModelGraph> make_model(const HuggingFaceModel& model,
                                std::optional<std::int64_t> sequence_length);

}  // namespace reckon
