#pragma once
#include <algorithm>
#include <sstream>

#include "argument_names.h"
#include "exchange/frameworks/frameworks.h"
#include "support/flat_json.h"

// What a writer wrote, read back: its values by dotted name.
namespace reckon::test {

/// The TOML that is made of tables and of values that are JSON's, too.
inline Values toml_values(const std::string& text) {
  Values out;
  std::istringstream in(text);
  std::string line, table;
  while (std::getline(in, line)) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      REQUIRE(line.back() == ']');
      table = line.substr(1, line.size() - 2) + '.';
      continue;
    }
    const std::size_t equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    REQUIRE(
        out.emplace(table + line.substr(0, equals), Json::parse(line.substr(equals + 3))).second);
  }
  return out;
}

/// Of MEGATRON_ARGS; a flag is true.
inline Values bash_values(const std::string& text) {
  Values out;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string name, value;
    words >> name;
    if (!name.starts_with("--")) continue;
    std::getline(words >> std::ws, value);
    REQUIRE(out.emplace(name, value.empty() ? Json(true) : scalar_of(value)).second);
  }
  return out;
}

inline Values values_of(Framework framework, const std::string& text) {
  Values out;
  switch (framework) {
    case Framework::torchtitan:
      return toml_values(text);
    case Framework::megatron:
      return bash_values(text);
    case Framework::deepspeed:
      flatten(Json::parse(text), "", out);
      return out;
    case Framework::accelerate:
    case Framework::maxtext:
      break;
  }
  const auto document = parse_yaml(text, "file.yaml");
  REQUIRE(document);
  flatten(json_of(*document), "", out);
  return out;
}

inline const Arguments& arguments_of(Framework framework) {
  switch (framework) {
    case Framework::torchtitan:
      return kTorchtitan;
    case Framework::megatron:
      return kMegatron;
    case Framework::deepspeed:
      return kDeepspeed;
    case Framework::accelerate:
      return kAccelerate;
    case Framework::maxtext:
      break;
  }
  return kMaxtext;
}

inline bool has_type(const Json& value, char type) {
  switch (type) {
    case 'i':
      return value.is_number_integer();
    case 'f':
      return value.is_number();
    case 'b':
      return value.is_boolean();
    case 'l':
      return value.is_array();
    case '-':
      return value == true;
    default:
      return value.is_string();
  }
}

/// Each name is one of the framework's, with a value of its type and among the allowed.
inline void check_arguments(Framework framework, const Values& values) {
  const Arguments& known = arguments_of(framework);
  CHECK_FALSE(values.empty());
  for (const auto& [name, value] : values) {
    INFO(to_text(framework) << " " << name << " = " << value.dump());
    const auto found = known.find(name);
    CHECK(found != known.end());
    if (found == known.end()) continue;
    CHECK(has_type(value, found->second.type));
    const std::vector<std::string>& allowed = found->second.allowed;
    const Json all = value.is_array() ? value : Json::array({value});
    if (allowed.empty()) continue;
    for (const Json& one : all)
      CHECK(std::ranges::find(allowed, one.get<std::string>()) != allowed.end());
  }
}

}  // namespace reckon::test
