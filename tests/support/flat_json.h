#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/scenario/yaml/document.h"

// JSON and YAML as values by dotted name.
namespace reckon::test {

using Json = nlohmann::json;
using Values = std::map<std::string, Json>;

inline void flatten(const Json& value, const std::string& name, Values& out) {
  if (!value.is_object()) {
    out[name] = value;
    return;
  }
  for (const auto& [key, inner] : value.items())
    flatten(inner, name.empty() ? key : name + '.' + key, out);
}

/// A number or a truth where the text is one.
inline Json scalar_of(const std::string& text) {
  const Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() || value.is_structured() ? Json(text) : value;
}

inline Json json_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return scalar_of(node.text);
  Json out = node.kind == YamlNode::Kind::map ? Json::object() : Json::array();
  for (const YamlNode::Entry& entry : node.entries) {
    if (out.is_object())
      out[entry.key] = json_of(entry.value);
    else
      out.push_back(json_of(entry.value));
  }
  return out;
}

}  // namespace reckon::test
