#pragma once
#include <nlohmann/json.hpp>
#include <span>

#include "sim/scenario/artifact/artifact.h"

// An artifact as JSON: an object a struct, a field a key; a variant is [its alternative, its
// fields], a Fact is [value, source] or [value, low, high, assumed, source].
namespace reckon::artifact {

using Json = nlohmann::json;

Json json_of(const RunArtifact& artifact);
Json json_of(const PlannedStrategy& strategy);
Json json_of(const ModelGraph& model);
Expected<RunArtifact> artifact_of(const Json& json, const std::string& file);

/// Indices that point nowhere, tables without rows: what would make a model read beyond its data.
Diagnostics contradictions_of(const RunArtifact& artifact, const std::string& file);

/// Brings the JSON of one version to that of the next.
using Upgrade = void (*)(Json&);
/// steps[k] is that of version k + 1. What is younger than all steps stays as it is.
void upgrade(Json& json, int version, std::span<const Upgrade> steps);

}  // namespace reckon::artifact
