#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/blocks/networks.h"
#include "sim/model/zoo/zoo.h"

// A Hugging Face config.json (of transformers or diffusers) as dimensions of a network. Keys and
// their defaults are those of transformers/models/<model_type>/configuration_<model_type>.py, the
// layers those of modeling_<model_type>.py beside it.
namespace reckon {

using HuggingFaceDimensions = std::variant<TransformerDimensions, VisionTransformerDimensions,
                                           LanguageNetwork, EncoderDecoder, VisionLanguage,
                                           DualEncoder, FluxTransformer, DiffusionTransformer>;

struct HuggingFaceModel {
  std::string name;  // its `_name_or_path`, else its model_type
  HuggingFaceDimensions dimensions;
  /// Tokens of a sample where nobody says: the rows of a learned position table; 0: the file does
  /// not say on which lengths it is trained. Of a model that reads an image: of its text.
  std::int64_t sequence_length = 0;
  std::int64_t longest_sequence = 0;  // max_position_embeddings; 0: no sequences
  /// What of the file the network leaves out or takes otherwise, a sentence each.
  std::vector<std::string> notes;
};

/// Values of `model_type` (of diffusers: `_class_name`) that are understood.
std::vector<std::string> huggingface_families();

/// `file` names the text in messages. Any text is answered: with a model, or with all that is
/// wrong. `architectures` says which heads there are; a family's name alone is its language model.
Expected<HuggingFaceModel> read_huggingface_config(std::string_view text, const std::string& file);

/// nullopt: the position table's length; an error where there is none.
Expected<ModelGraph> make_model(const HuggingFaceModel& model,
                                std::optional<std::int64_t> sequence_length);

}  // namespace reckon
