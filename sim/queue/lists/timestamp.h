#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

/// "2017-10-09 07:01:55", or with another character between date and time, in seconds since 1970.
std::optional<std::int64_t> parse_timestamp(std::string_view text, char between = ' ');

}  // namespace reckon
