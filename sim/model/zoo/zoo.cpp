#include "sim/model/zoo/zoo.h"

#include "sim/base/check.h"
#include "sim/model/zoo/fixed_models.h"
#include "sim/model/zoo/sequence_models.h"
#include "sim/model/zoo/tables.h"

namespace reckon {
namespace {

const SequenceModel* find_sequence_model(std::string_view name) {
  for (const SequenceModel& model : sequence_models())
    if (model.name == name) return &model;
  return nullptr;
}

const LanguageModel* find_language_model(std::string_view name) {
  for (const LanguageModel& model : language_models()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

/// The zoo's own dimensions are right: what is wrong with them is a mistake of ours.
ModelGraph built(Expected<ModelGraph> graph) {
  RECKON_CHECK(graph.has_value());
  return std::move(*graph);
}

}  // namespace

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const FixedModel& entry : fixed_models()) names.emplace_back(entry.name);
  for (const LanguageModel& model : language_models()) names.emplace_back(model.name);
  for (const SequenceModel& model : sequence_models()) names.emplace_back(model.name);
  return names;
}

std::optional<ModelGraph> zoo_model(std::string_view name,
                                    std::optional<std::int64_t> sequence_length) {
  for (const FixedModel& entry : fixed_models()) {
    if (entry.name == name) return built(entry.build());
  }
  const std::int64_t longest = zoo_longest_sequence(name);
  if (sequence_length && (*sequence_length < 1 || *sequence_length > longest)) return std::nullopt;
  if (const SequenceModel* own = find_sequence_model(name))
    return built(own->build(std::string(name), sequence_length.value_or(own->length)));
  const LanguageModel* own = find_language_model(name);
  if (!own) return std::nullopt;
  TransformerDimensions d = own->dimensions;
  d.sequence_length = sequence_length.value_or(d.sequence_length);
  if (own->positions_follow_sequence) d.positions = d.sequence_length;
  return built(make_transformer(std::string(name), d));
}

bool zoo_takes_sequence_length(std::string_view name) { return zoo_longest_sequence(name) > 0; }

std::int64_t zoo_longest_sequence(std::string_view name) {
  if (const SequenceModel* own = find_sequence_model(name)) return own->longest;
  const LanguageModel* own = find_language_model(name);
  if (!own) return 0;
  const bool table = own->dimensions.positions > 0 && !own->positions_follow_sequence;
  return table ? own->dimensions.positions : kLongestSequence;
}

}  // namespace reckon
