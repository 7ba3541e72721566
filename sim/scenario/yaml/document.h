#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"

// A YAML file as a tree of our own, with the place of every key and value. Only this concept's
// source includes yaml-cpp: its nodes lose duplicate keys and throw without a line for missing
// ones.
namespace reckon {

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  struct Entry;

  Kind kind = Kind::null;
  std::string text;  // of a scalar
  std::string tag;   // "!exponential"; "" where none is written
  SourcePlace at;    // columns count bytes
  std::vector<Entry>
      entries;  // of a list (keys empty) or map, in the file's order, duplicates kept

  const Entry* find(std::string_view key) const;  // the first of that key; nullptr: none
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The text of a map's key `name`, by which paths and layers find a list's item; "" where there
  /// is none. A view of this node.
  std::string_view name() const;
};
struct YamlNode::Entry {
  std::string key;
  SourcePlace key_at;
  YamlNode value;
};

/// "a map", "a list", "the text 'x'", "nothing": for messages.
std::string describe(const YamlNode& node);
/// At most 40 bytes of what the user wrote, cut between characters; control characters escaped.
std::string shortened(std::string_view text);

// Bounds of a document. A scenario of 1,000 pools is below them; they keep hostile input cheap.
inline constexpr std::size_t kLargestDocument = std::size_t{4} << 20;  // bytes
inline constexpr int kDeepestNesting = 32;
inline constexpr std::size_t kMostValues = 50'000;

/// One document of UTF-8 text. Errors (one at a time, as the parser cannot go on): not text, too
/// large, not YAML, nested too deeply, anchors and aliases (refused: `*a` in lists of lists grows
/// exponentially), several documents.
Expected<YamlNode> parse_yaml(std::string_view text, const std::string& file);

/// YAML that parse_yaml reads as the same tree: maps and lists one entry a line, those of values
/// alone on one line. Every text is quoted unless it is one plain word or number.
std::string write_yaml(const YamlNode& root);

/// Applies `--set` texts "path=value" in order. The path is dotted from the root, list items by
/// their `name` or index; maps on the way are made where missing, so that a key that does not exist
/// meets the reader's own check. The value is YAML. New values stand at "--set path=value".
void apply_overrides(YamlNode& root, std::span<const std::string> overrides,
                     Diagnostics& diagnostics);

}  // namespace reckon
