#pragma once
#include <filesystem>
#include <stdexcept>

#include "sim/catalog/catalog.h"

namespace reckon::test {

/// The catalogs of this source tree, loaded once a program.
inline const Catalog& shipped_catalog() {
  static const Catalog catalog = [] {
    const std::filesystem::path layers[] = {std::filesystem::path(RECKON_SOURCE_DIR) / "catalogs"};
    Expected<Catalog> loaded = load_catalog(layers);
    if (!loaded) throw std::runtime_error(format(loaded.error()));
    return std::move(*loaded);
  }();
  return catalog;
}

}  // namespace reckon::test
