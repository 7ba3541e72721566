#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/scenario/yaml/document.h"

// A YAML or JSON file of somebody else's: keys are asked for by name, what is wrong is collected at
// its place, and what nobody asked for can be named, so that nothing of it is dropped silently.
namespace reckon {

/// The documents of a file of several (`---`), each with its places in the whole file; empty ones
/// are left out.
Expected<std::vector<YamlNode>> parse_documents(std::string_view text, const std::string& file);

class ForeignFile {
 public:
  /// Keys that are given twice are mistakes: readers of such files take either.
  explicit ForeignFile(YamlNode root);
  ForeignFile(const ForeignFile&) = delete;
  ForeignFile& operator=(const ForeignFile&) = delete;

  const YamlNode* root() const { return &root_; }

  // Of the map `in`, which may be nullptr: nothing is in it then. A value of another kind is a
  // mistake; null is as absent.
  const YamlNode* map(const YamlNode* in, std::string_view key);
  std::vector<const YamlNode*> list(const YamlNode* in, std::string_view key);
  std::optional<std::string> text(const YamlNode* in, std::string_view key);
  /// 9 and "9": Google's interfaces write whole numbers of 64 bits as text.
  std::optional<std::int64_t> whole(const YamlNode* in, std::string_view key, std::int64_t low,
                                    std::int64_t high);
  bool flag(const YamlNode* in, std::string_view key);
  std::vector<std::string> texts(const YamlNode* in, std::string_view key);
  /// Everything below is known and changes nothing: it is not left over.
  void ignore(const YamlNode* in, std::string_view key);
  void ignore(const YamlNode* node) { taken_.insert(node); }
  /// It was looked at, and is left over all the same, with everything below.
  void keep(const YamlNode* in, std::string_view key);

  /// Where the key stands, else where the map does.
  SourcePlace place(const YamlNode* in, std::string_view key) const;
  void mistake(SourcePlace at, std::string what, std::string hint = {});
  Diagnostics& mistakes() { return mistakes_; }

  /// Dotted paths of the values that nobody took, in the file's order.
  std::vector<std::string> left_over() const;
  /// The document without the values that were taken, and without what is empty by that.
  YamlNode rest() const;

 private:
  const YamlNode* find(const YamlNode* in, std::string_view key);
  void report_duplicates(const YamlNode& node);
  void wrong_kind(const YamlNode& node, std::string_view key, std::string_view wanted);

  YamlNode root_;
  std::set<const YamlNode*> taken_;
  Diagnostics mistakes_;
};

}  // namespace reckon
