#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"

namespace reckon {

/// How a run's plan came from its scenario: what whoever reads the run's plan.yaml later has to
/// know beside it. DIR/request.json.
struct RunRequest {
  std::filesystem::path file;                 // absolute: what relative paths in it go by
  std::vector<std::string> overrides;         // --set
  std::vector<std::filesystem::path> layers;  // --layer, absolute
  std::string plan_digest;                    // text_digest() of plan.yaml; "": an older reckon's
};

/// XXH3-64 of a text, as 16 hexadecimal digits.
std::string text_digest(std::string_view text);

std::string to_text(const RunRequest& request);
Expected<RunRequest> parse_run_request(const std::filesystem::path& file, std::string_view text);

}  // namespace reckon
