#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace reckon {

/// "instances" of a request to predict, at most `most`, each flattened to its numbers. The error is
/// a sentence. Whatever the body holds, neither the stack nor the memory grows beyond what its
/// numbers need: lists in lists are read to a depth of 64.
tl::expected<std::vector<std::vector<float>>, std::string> parse_instances(std::string_view body,
                                                                           std::size_t most);

/// All numbers are finite.
std::string predictions_text(const std::vector<std::vector<float>>& answers);
std::string error_text(std::string_view what);
/// Of the version that is served.
std::string status_text(std::int64_t version, bool ending);

}  // namespace reckon
