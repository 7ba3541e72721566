#pragma once
#include <string>
#include <string_view>

namespace reckon {

/// Of ASCII's letters.
std::string lower_case(std::string_view text);

}  // namespace reckon
