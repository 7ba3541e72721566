#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/store/store.h"

// The XML that a store answers with [Amazon S3 API Reference, "ListObjectsV2", "Error responses"].
namespace reckon::data {

/// One answer to ListObjectsV2, or of a store that knows only ListObjects: such a one names the key
/// that it goes on behind, if anything, and no token.
struct ObjectList {
  std::vector<StoredObject> objects;
  bool truncated = false;  // more follow
  std::string next;        // token that asks for what follows
  std::string marker;      // key that what follows is behind
};
/// Error: what is wrong with it.
tl::expected<ObjectList, std::string> parse_object_list(std::string_view xml);

/// What a store says of an error; all "" where the text is no such answer.
struct StoreWords {
  std::string code, message;  // "NoSuchKey", "The specified key does not exist."
  std::string region;         // of the bucket, where that is another
  std::string text() const { return message.empty() ? code : code + ": " + message; }
};
StoreWords parse_store_error(std::string_view xml);

}  // namespace reckon::data
