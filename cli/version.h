#pragma once
#include <string>
#include <string_view>

namespace reckon::cli {

/// "reckon 0.2.0 (commit 1a2b3c4d5e6f, catalog of 2026-11-24)": without the commit where the build
/// did not know it, and without an empty date.
std::string version_line(std::string_view program, std::string_view catalog_date);

}  // namespace reckon::cli
