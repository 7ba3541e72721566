#pragma once
#include <span>
#include <string_view>

#include "sim/model/zoo/zoo.h"

// The dimensions of the zoo's language models; zoo_model() builds them.
namespace reckon {

struct LanguageModel {
  std::string_view name;
  TransformerDimensions dimensions;
  /// The position table has as many rows as the sequence has tokens (llm-foundry's max_seq_len).
  bool positions_follow_sequence = false;
};
std::span<const LanguageModel> language_models();

}  // namespace reckon
