#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reckon {

/// A JSON value as YAML in block style, ending with a newline: keys in their order, maps and lists
/// indented by two, texts of several lines as literal blocks. A text that YAML would read as
/// something else (a number, `true`, `no`, a date) is quoted, so that every reader gets the same
/// value back.
std::string yaml_text(const nlohmann::ordered_json& value);

}  // namespace reckon
