#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <memory>
#include <sstream>

#include "sim/catalog/files/text.h"

namespace reckon::catalog_text {
namespace {

/// A YAML document as written: order, duplicates and places are kept (YAML::Node loses them, and is
/// slow).
struct Tree {
  enum class Kind { scalar, list, mapping } kind = Kind::scalar;
  std::string text;
  std::vector<Tree> items;   // of a mapping: key, value, key, value, ...
  int line = 0, column = 0;  // from 1
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<std::pair<YAML::Mark, std::string>>& problems)
      : problems_(problems) {}

  Tree root;

  void OnDocumentStart(const YAML::Mark&) override { open_.assign(1, &root); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { add(mark, Tree::Kind::scalar); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.emplace_back(mark, "catalogs have no anchors and aliases");
    add(mark, Tree::Kind::scalar);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& value) override {
    add(mark, Tree::Kind::scalar).text = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, Tree::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, Tree::Kind::mapping);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  // Pointers in open_ stay good: only the innermost open tree's items grow.
  Tree& add(const YAML::Mark& mark, Tree::Kind kind) {
    Tree tree;
    tree.kind = kind;
    tree.line = mark.line + 1;
    tree.column = mark.column + 1;
    if (open_.size() == 1) {
      root = std::move(tree);
      return root;
    }
    return open_.back()->items.emplace_back(std::move(tree));
  }
  void open(const YAML::Mark& mark, Tree::Kind kind) { open_.push_back(&add(mark, kind)); }

  std::vector<Tree*> open_;
  std::vector<std::pair<YAML::Mark, std::string>>& problems_;
};

class EntryReader {
 public:
  EntryReader(Texts& texts, int file) : texts_(texts), file_(file) {}

  Cell cell(const Tree& tree) {
    Cell result;
    result.text = texts_.keep(tree.text);
    result.file = file_;
    result.line = tree.line;
    result.column = tree.column;
    return result;
  }

  void no_duplicates(const Tree& mapping) {
    std::map<std::string_view, int> first;  // lines
    for (std::size_t i = 0; i < mapping.items.size(); i += 2) {
      const Tree& key = mapping.items[i];
      if (const auto [at, fresh] = first.emplace(key.text, key.line); !fresh)
        texts_.error(cell(key), fmt::format("key '{}' is there twice, first in line {}", key.text,
                                            at->second));
    }
  }

  void read(Entry& entry, const std::string& prefix, const Tree& mapping, std::string_view source) {
    no_duplicates(mapping);
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      if (mapping.items[i].text == "source") source = cell(mapping.items[i + 1]).text;
    }
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      const Tree& value = mapping.items[i + 1];
      if (mapping.items[i].text == "source" && !prefix.empty()) continue;
      const std::string name = prefix + mapping.items[i].text;
      if (value.kind == Tree::Kind::mapping && !is_number(value)) {
        read(entry, name + ".", value, source);
        continue;
      }
      Cell read = value.kind == Tree::Kind::mapping ? number(value) : cell(value);
      if (value.kind == Tree::Kind::list) read.text = list(value);
      if (read.source.empty()) read.source = source;
      entry.fields.push_back({texts_.keep(name), read});
    }
  }

 private:
  static bool is_number(const Tree& mapping) {
    for (std::size_t i = 0; i < mapping.items.size(); i += 2) {
      if (mapping.items[i].text == "value") return true;
    }
    return false;
  }

  Cell number(const Tree& mapping) {
    no_duplicates(mapping);
    Cell result;
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      const Tree& key = mapping.items[i];
      const Cell value = cell(mapping.items[i + 1]);
      if (key.text == "value") {
        const Cell kept = result;
        result = value;
        result.low = kept.low, result.high = kept.high, result.source = kept.source;
      } else if (key.text == "low") {
        result.low = value.text;
      } else if (key.text == "high") {
        result.high = value.text;
      } else if (key.text == "source") {
        result.source = value.text;
      } else {
        static const std::vector<std::string> kKeys{"value", "low", "high", "source"};
        texts_.error(
            cell(key), fmt::format("unknown key '{}'{}", key.text, did_you_mean(key.text, kKeys)),
            "a number is `15.7 TFLOPS` or {value: 15.7 TFLOPS, low: ..., high: ..., source: ...}");
      }
    }
    return result;
  }

  std::string_view list(const Tree& tree) {
    std::string lines;
    for (const Tree& item : tree.items) {
      if (item.kind != Tree::Kind::scalar) texts_.error(cell(item), "a list holds plain texts");
      lines += item.text + '\n';
    }
    return texts_.keep(std::move(lines));
  }

  Texts& texts_;
  int file_;
};

}  // namespace

std::vector<Entry> read_yaml(Texts& texts, const FileKind& kind, int file, const std::string& bytes,
                             std::string_view default_source) {
  std::vector<Entry> entries;
  std::vector<std::pair<YAML::Mark, std::string>> problems;
  TreeBuilder builder(problems);
  const auto place = [&](const YAML::Mark& mark) {
    Cell at;
    at.file = file;
    at.line = mark.line + 1;
    at.column = mark.column + 1;
    return at;
  };
  try {
    std::istringstream stream(bytes);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return entries;  // nothing but comments
    TreeBuilder second(problems);
    if (parser.HandleNextDocument(second)) {
      texts.error(place({}), fmt::format("{} has more than one document", kind.file));
    }
  } catch (const YAML::Exception& problem) {
    texts.error(place(problem.mark), fmt::format("not YAML: {}", problem.msg));
    return entries;
  }
  for (const auto& [mark, what] : problems) texts.error(place(mark), what);
  EntryReader reader(texts, file);
  const Tree& root = builder.root;
  if (root.kind != Tree::Kind::mapping) {
    if (root.kind == Tree::Kind::scalar && root.text.empty()) return entries;
    texts.error(reader.cell(root), fmt::format("{} is a mapping from names to entries", kind.file));
    return entries;
  }
  for (std::size_t i = 0; i + 1 < root.items.size() && !texts.full(); i += 2) {
    const Tree& name = root.items[i];
    if (entries.size() == kMostEntries) {
      texts.error(reader.cell(name), too_many(kind));
      break;
    }
    Entry entry;
    entry.key = normalised(name.text);
    entry.name = fmt::format("{} '{}'", kind.noun, name.text);
    entry.at = reader.cell(name);
    if (root.items[i + 1].kind != Tree::Kind::mapping) {
      texts.error(entry.at, fmt::format("{} has no fields", entry.name));
      continue;
    }
    reader.read(entry, "", root.items[i + 1], default_source);
    if (entry.fields.size() > kMostKeys) {
      texts.error(entry.at, fmt::format("{} has more than {} keys", entry.name, kMostKeys));
      continue;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace reckon::catalog_text
