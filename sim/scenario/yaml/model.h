#pragma once
#include "sim/scenario/yaml/fields.h"

namespace reckon {

const Fields<TransformerDimensions>& transformer_fields();
void check_transformer(Reader& reader, const YamlNode& node,
                       const TransformerDimensions& dimensions);

/// A model's name, or a map with exactly one of huggingface, transformer, layers. nullopt:
/// reported.
std::optional<ModelSpec> read_model(Reader& reader, const YamlNode& node);
std::vector<const FieldInfo*> model_infos();  // of the map

}  // namespace reckon
