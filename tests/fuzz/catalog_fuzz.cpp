#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/catalog/catalog.h"

// One file of a user's layer over a small catalog: the first byte says which ('0' is the first),
// the rest is its text. The reader gives a catalog or diagnostics, each with a text.
namespace {

// A file that is added goes to the end, so that the kept corpus means what it meant.
constexpr std::array kFiles{"accelerators.yaml",
                            "attachments.csv",
                            "datasets.yaml",
                            "efficiencies.csv",
                            "links.yaml",
                            "locations.csv",
                            "machines.csv",
                            "operations.yaml",
                            "prices.csv",
                            "sources.yaml",
                            "storages.yaml",
                            "tpu_slices.csv",
                            "attachment_limits.csv",
                            "custom_machines.yaml",
                            "labels.yaml",
                            "scale_tiers.csv",
                            "storage_prices.csv",
                            "models.csv",
                            "stack_classes.csv",
                            "stacks.csv",
                            "convergence.csv",
                            "regions.csv"};

/// A directory of this process, removed at its end.
struct Directory {
  std::filesystem::path path;
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "reckon-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const Directory directory;
  const auto file =
      directory.path / kFiles[std::size_t(std::uint8_t(data[0] - '0')) % kFiles.size()];
  std::ofstream(file, std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::filesystem::path> layers{RECKON_SOURCE_DIR "/tests/fuzz/base_catalog",
                                                  directory.path};
  const auto catalog = reckon::load_catalog(layers);
  std::filesystem::remove(file);
  if (!catalog && reckon::format(catalog.error()).empty()) std::abort();
  return 0;
}
