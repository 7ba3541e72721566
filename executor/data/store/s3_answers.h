#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/data/store/store.h"

// The XML that a store answers with [Amazon S3 API Reference, "ListObjectsV2", "Error responses"].
namespace reckon::data {

/// One answer to ListObjectsV2.
struct ObjectList {
  std::vector<StoredObject> objects;
  std::string next;  // token that asks for what follows; "": this was the last
};
/// Error: what is wrong with it.
tl::expected<ObjectList, std::string> parse_object_list(std::string_view xml);

/// "NoSuchKey: The specified key does not exist."; "" where the text is no such answer.
std::string parse_store_error(std::string_view xml);

}  // namespace reckon::data
