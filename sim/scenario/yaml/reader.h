#pragma once
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/scenario/scenario.h"
#include "sim/scenario/yaml/document.h"

// The blocks of a scenario are tables of fields: key, form of the value, where it goes, a sentence
// for people and an example. The reader walks them; a JSON Schema can be printed from the same
// tables.
namespace reckon {

struct FieldInfo;

/// What a value may look like.
struct Form {
  enum class Kind {
    text,
    name,
    boolean,
    word,
    date,
    time,  // texts
    whole,
    number,
    count,
    fraction,
    duration,
    bytes,
    bandwidth,  // numbers, in SI units
    price,
    list,
    map,
    block,
    choice
  };
  /// A map with a tag: `!exponential {mean: 8h}`.
  struct Tagged {
    std::string_view tag;
    std::vector<const FieldInfo*> (*fields)();
  };
  Kind kind = Kind::text;
  // Of numbers, in the unit that `kind` is read as; both allowed.
  double low = 0, high = std::numeric_limits<double>::infinity();
  bool above_low = false;                               // low itself is not allowed
  std::vector<std::string> words{};                     // word, choice: the allowed ones
  std::vector<const FieldInfo*> (*fields)() = nullptr;  // block, choice: the table of the map;
                                                        // list: of each item
  std::string_view note{};                              // choice: the forms in a sentence
  std::optional<Kind> item{};    // list, map: form of each value where it is no block (map: any
                                 // depth); choice: the form that is no map
  bool or_list = false;          // choice: one value or a list of them
  std::optional<Kind> or_map{};  // choice: or a map of free keys to such values
  std::vector<Tagged> tagged{};  // choice: maps with a tag
};

struct FieldInfo {
  std::string_view key;
  Form form;
  std::string_view doc, example;
  bool required = false;
  std::string_view former = {};  // the key of earlier releases, which is read as this one

  bool is_called(std::string_view name) const {
    return name == key || (!former.empty() && name == former);
  }
};

/// Collects what is wrong and where everything stood while a document is walked.
class Reader {
 public:
  Reader(Diagnostics& diagnostics, Places& places) : diagnostics_(diagnostics), places_(places) {}

  /// The value that is being read: where errors point, what they are about, which example they
  /// give.
  class [[nodiscard]] Scope {
   public:
    Scope(Reader& reader, std::string_view key, SourcePlace at, const FieldInfo* field);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Reader& reader_;
    std::size_t path_size_;
    SourcePlace at_;
    const FieldInfo* field_;
  };

  const std::string& path() const { return path_; }
  std::string subject() const;  // the path, or "the scenario"
  const SourcePlace& at() const { return at_; }

  void error(std::string what) { error(at_, std::move(what), example()); }
  void error(std::string what, std::string hint) { error(at_, std::move(what), std::move(hint)); }
  void error(SourcePlace at, std::string what, std::string hint);
  bool full() const { return diagnostics_.size() > kMostErrors; }
  std::size_t errors() const { return diagnostics_.size(); }
  std::string example() const;  // "example: interval: 10min"

  /// Of the right kind and without a tag, or reported.
  bool expect(const YamlNode& node, YamlNode::Kind kind);
  /// One line without control characters (printable.h).
  std::optional<std::string> text(const YamlNode& node);
  /// What a program is given: of any lines and characters but NUL, which ends its words.
  std::optional<std::string> program_text(const YamlNode& node);
  /// Letters, digits, '-' and '_', not '-' first: it stands in paths, in command lines and in the
  /// names of Kubernetes objects.
  std::optional<std::string> name(const YamlNode& node);
  std::optional<bool> boolean(const YamlNode& node);
  std::optional<double> number(const YamlNode& node, const Form& form);
  std::optional<std::size_t> word(const YamlNode& node, const std::vector<std::string>& words);
  std::optional<MoneyText> price(const YamlNode& node);
  std::optional<std::string> date(const YamlNode& node);
  std::optional<std::chrono::sys_seconds> time(const YamlNode& node);
  std::vector<std::string> texts(const YamlNode& node);          // of a list
  std::vector<std::string> program_texts(const YamlNode& node);  // of a list
  std::map<std::string, std::string> program_text_map(const YamlNode& node);
  /// Calls body(item) for each item of a list, inside a scope named by the item's `name` or index.
  template <class Body>
  void each(const YamlNode& node, Body body);
  /// Calls body(key, value) for each entry of a map with free keys; duplicates are reported.
  template <class Body>
  void each_entry(const YamlNode& node, Body body);
  void report_duplicate(const YamlNode& map, const YamlNode::Entry& entry);
  /// Whether an unknown key of this block was probably meant to be `key`: then it is not missed as
  /// well.
  bool misspelt(std::string_view key) const {
    return misspelt_.contains(path_ + "." + std::string(key));
  }
  void remember_misspelt(const std::string& key) { misspelt_.insert(path_ + "." + key); }
  std::string item_key(const YamlNode& list, std::size_t index) const;

 private:
  bool not_blank(const YamlNode& node);
  static constexpr std::size_t kMostErrors = 200;
  Diagnostics& diagnostics_;
  Places& places_;
  std::string path_;
  SourcePlace at_;
  const FieldInfo* field_ = nullptr;
  std::set<std::string> misspelt_;
};

/// Where errors about a value point: the value itself, the key where the value is a block.
SourcePlace place_of(const YamlNode::Entry& entry);

/// Why no scenario can have the name; "": it can. The name is a word of command lines, a directory
/// of runs and the begin of tables: it is one line without control characters of at most 128 bytes,
/// and begins neither like an option, a hidden file nor a workflow command of GitHub.
std::string scenario_name_mistake(std::string_view name);

std::optional<std::chrono::sys_days> parse_date(std::string_view text);  // 2027-06-30
std::optional<std::chrono::sys_seconds> parse_utc_time(
    std::string_view text);  // 2026-12-04T18:00:00Z

template <class Body>
void Reader::each(const YamlNode& node, Body body) {
  if (!expect(node, YamlNode::Kind::list)) return;
  for (std::size_t i = 0; i < node.entries.size() && !full(); ++i) {
    const Scope scope(*this, item_key(node, i), node.entries[i].value.at, field_);
    body(node.entries[i].value);
  }
}

template <class Body>
void Reader::each_entry(const YamlNode& node, Body body) {
  if (!expect(node, YamlNode::Kind::map)) return;
  std::set<std::string_view> keys;
  for (const YamlNode::Entry& entry : node.entries) {
    if (full()) return;
    if (!keys.insert(entry.key).second) {
      report_duplicate(node, entry);
      continue;
    }
    const Scope scope(*this, entry.key, place_of(entry), field_);
    body(entry.key, entry.value);
  }
}

}  // namespace reckon
