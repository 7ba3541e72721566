#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

namespace reckon {

/// "instances" of a request to predict, each flattened to its numbers. The error is a sentence.
tl::expected<std::vector<std::vector<float>>, std::string> parse_instances(std::string_view body);

std::string predictions_text(const std::vector<std::vector<float>>& answers);
std::string error_text(std::string_view what);
/// Of the version that is served.
std::string status_text(std::int64_t version, bool ending);

}  // namespace reckon
