#pragma once
#include <string>
#include <string_view>

namespace reckon {

/// One text as a value of a YAML file, or of a `--set`: in quotes unless it is plain.
std::string yaml_word(std::string_view text);

}  // namespace reckon
