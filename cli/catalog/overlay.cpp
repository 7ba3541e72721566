#include "cli/catalog/overlay.h"

#include <fmt/format.h>

#include <stdexcept>

#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "sim/base/text/printable.h"

namespace reckon::cli {

void require_new_directory(const std::string& directory) {
  if (std::filesystem::exists(directory))
    throw UsageError(
        fmt::format("'{}' exists; a catalog is written to a new directory", directory));
}

void write_overlay(const std::filesystem::path& directory,
                   const std::map<std::string, std::string>& files, CatalogChoice over) {
  std::filesystem::path beside = directory;
  if (!beside.has_filename()) beside = beside.parent_path();
  const std::filesystem::path named = beside;
  beside += ".partial";
  std::error_code failed;
  std::filesystem::remove_all(beside, failed);
  std::filesystem::create_directories(beside, failed);
  if (failed)
    throw std::runtime_error(
        fmt::format("cannot make the directory '{}': {}", beside.string(), failed.message()));
  for (const auto& [name, text] : files) write_file(beside / name, text);
  over.catalogs.push_back(beside);
  checked(load_catalogs(over));
  std::filesystem::rename(beside, named, failed);
  if (failed)
    throw std::runtime_error(
        fmt::format("cannot name the directory '{}': {}", named.string(), failed.message()));
  print_error(fmt::format("{} is written: --catalog {}\n", printable_file(named.string()),
                          printable_file(named.string())));
}

}  // namespace reckon::cli
