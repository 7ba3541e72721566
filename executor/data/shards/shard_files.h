#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/data/store/store.h"
#include "executor/train/data/digest.h"

// Which files are shards.
namespace reckon::data {

/// The objects that `is_shard` names, without hidden ones and indexes of shards (.idx, .index).
/// Throws DataError where any of them is compressed: none may be missing unseen.
std::vector<const StoredObject*> shards_in(
    const Store& store, const std::string& where,
    const std::function<bool(const std::string& name)>& is_shard);

/// As open_store(), of a location that may have ranges of numbers in braces, as webdataset writes
/// them: "train-{000000..000146}.tar". Throws DataError where one of those files is not there.
std::unique_ptr<Store> open_shards(const std::string& location, const std::string& endpoint,
                                   const DataWatch& watch);

/// Of samples that lie shard by shard: of each shard's name and size, and what `add` says of each.
template <class Entry, class Add>
std::string digest_of_entries(const std::vector<Entry>& entries, const Add& add) {
  DataDigest digest;
  const StoredObject* last = nullptr;
  for (const Entry& entry : entries) {
    if (entry.shard != last) digest.add(entry.shard->name).add(entry.shard->size);
    last = entry.shard;
    add(digest, entry);
  }
  return digest.text();
}

}  // namespace reckon::data
