#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/yaml/document.h"

// A scenario may be written as changes to another: `extends: base.yaml`, or `--layer FILE`.
namespace reckon {

/// Puts `over` over `base`. Maps are merged by key, lists whose items all have a `name` by that
/// name; every other value replaces what was there. A key without a value (`epochs: null`) takes
/// the base's key away. Each value keeps its place.
void put_over(YamlNode& base, YamlNode over);

/// Files that one file names in `extends`, and those name in turn.
inline constexpr std::size_t kLongestChain = 16;

/// A document with everything that it extends below it, and who named whom.
class LayeredDocument {
 public:
  /// `root` was read from `name`; its `extends` is relative to that file. Errors in a base are
  /// errors of the whole.
  static Expected<LayeredDocument> of(YamlNode root, const std::string& name);

  /// Puts another file, with what it extends, over this one.
  Diagnostics add_layer(const std::filesystem::path& file);

  YamlNode root;

  /// Says of a mistake in a file that another one named, which one that was.
  void name_both_files(Diagnostics& diagnostics) const;

 private:
  Diagnostics extend(YamlNode& node, const std::string& name, std::vector<std::string>& chain);

  std::vector<std::pair<std::string, SourcePlace>> named_by_;  // file -> `extends:` that named it
};

/// The whole text of a file of at most kLargestDocument bytes.
Expected<std::string> read_text(const std::filesystem::path& file);

}  // namespace reckon
