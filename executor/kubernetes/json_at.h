#pragma once
#include <string>

#include "executor/kubernetes/kubectl.h"

// Reading the API's objects, whose parts may be missing or of another kind than expected.
namespace reckon::kubernetes {

/// The value at a JSON pointer; `otherwise` where there is none.
inline Json value_at(const Json& object, const char* pointer, Json otherwise) {
  const Json::json_pointer at(pointer);
  if (object.contains(at)) return object.at(at);
  return otherwise;
}

/// The text at a JSON pointer; "": there is none.
inline std::string text_at(const Json& object, const char* pointer) {
  const Json::json_pointer at(pointer);
  if (!object.contains(at) || !object.at(at).is_string()) return "";
  return object.at(at).get<std::string>();
}

/// The text under a key of the map at a JSON pointer, such as a label; "": there is none. The key
/// may have slashes.
inline std::string mapped_text(const Json& object, const char* pointer, const char* key) {
  const Json::json_pointer at(pointer);
  if (!object.contains(at) || !object.at(at).is_object()) return "";
  const auto value = object.at(at).find(key);
  return value != object.at(at).end() && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace reckon::kubernetes
