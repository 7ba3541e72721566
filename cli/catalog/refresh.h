#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/shared.h"

namespace reckon::cli {

struct RefreshOptions {
  std::vector<std::filesystem::path> lists;  // price lists
  std::string provider, date;                // "": as the lists say, or the day they were written
};

/// `reckon catalog refresh`: the exit code.
int refresh_catalog(const RefreshOptions& options, const CatalogChoice& catalogs,
                    OutputFormat format, const std::string& out);

/// The day on which a file was last changed, ISO.
std::string day_of_file(const std::filesystem::path& file);

}  // namespace reckon::cli
