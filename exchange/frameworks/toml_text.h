#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reckon {

/// A JSON object as TOML 1.0: its objects as tables, at any depth, everything else as `key =
/// value`. No null, and no list of objects.
std::string toml_text(const nlohmann::ordered_json& value);

}  // namespace reckon
