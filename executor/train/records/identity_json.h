#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "executor/train/checkpoint/checkpoint_shard.h"

// A CheckpointIdentity in the headers of shards and in manifests.
namespace reckon {

inline void write_identity(nlohmann::json& json, const CheckpointIdentity& identity) {
  json["job"] = identity.job;
  json["model"] = identity.model;
  json["ranks"] = identity.ranks;
  if (identity.recipe.empty()) return;
  for (const Setting& setting : identity.recipe) json["recipe"][setting.name] = setting.value;
}

/// Throws nlohmann's exceptions.
inline CheckpointIdentity read_identity(const nlohmann::json& json) {
  CheckpointIdentity identity{json.at("job"), json.at("model"), json.at("ranks"), {}};
  if (const auto recipe = json.find("recipe"); recipe != json.end())
    for (const auto& [name, value] : recipe->get<std::map<std::string, std::string>>())
      identity.recipe.push_back({name, value});
  return identity;
}

}  // namespace reckon
