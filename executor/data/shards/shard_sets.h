#pragma once
#include <span>
#include <string>
#include <vector>

#include "executor/data/store/store.h"

// Which set a shard belongs to, by its name: "train-000003.tar", "train-00003-of-01024".
namespace reckon::data {

/// Whether the name says how many shards its set has: "train-00003-of-01024".
bool is_one_of_many(const std::string& name);

/// Throws DataError: the shards are of two sets, or some of their set are missing. Shards whose
/// path is named as far as their number ("train-0000", a single file) are what the user wants.
/// Warnings: numbers that are missing where the names do not say how many there are.
std::vector<std::string> check_shard_sets(const Store& store,
                                          std::span<const StoredObject* const> shards,
                                          const std::string& where);

}  // namespace reckon::data
