#pragma once
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "sim/catalog/catalog.h"

namespace reckon::test {

/// The catalogs of this source tree with these files over them, as --catalog reads a directory.
inline Catalog overlay_catalog(const std::map<std::string, std::string>& files) {
  std::string directory =
      (std::filesystem::temp_directory_path() / "reckon-overlay-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) std::abort();
  for (const auto& [name, text] : files)
    std::ofstream(std::filesystem::path(directory) / name, std::ios::binary) << text;
  const std::array<std::filesystem::path, 2> layers{
      std::filesystem::path(RECKON_SOURCE_DIR) / "catalogs", directory};
  Expected<Catalog> loaded = load_catalog(layers);
  std::filesystem::remove_all(directory);
  if (!loaded) throw std::runtime_error(format(loaded.error()));
  return std::move(*loaded);
}

}  // namespace reckon::test
