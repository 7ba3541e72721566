#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/model/graph.h"

// The zoo's models of sequences that are no plain transformers: translation, speech, Transformer-XL
// and others.
namespace reckon {

/// Of models without a table of positions, in tokens or frames.
constexpr std::int64_t kLongestSequence = std::int64_t{1} << 20;

/// Models of sequences that are no plain transformers.
struct SequenceModel {
  std::string_view name;
  std::int64_t length;  // of its own data
  std::int64_t longest;
  Expected<ModelGraph> (*build)(std::string name, std::int64_t length);
};
std::span<const SequenceModel> sequence_models();

}  // namespace reckon
