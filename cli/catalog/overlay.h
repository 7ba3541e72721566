#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "cli/options/shared.h"

namespace reckon::cli {

/// Throws UsageError where the directory of an overlay is there already: nothing is overwritten.
void require_new_directory(const std::string& directory);

/// Writes a catalog directory, reads it over the others as --catalog will, and only then gives it
/// its name: what cannot be read is no catalog. Throws WrongInput, std::runtime_error.
void write_overlay(const std::filesystem::path& directory,
                   const std::map<std::string, std::string>& files, CatalogChoice over);

}  // namespace reckon::cli
