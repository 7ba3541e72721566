#include "exchange/foreign/foreign_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Kind = YamlNode::Kind;

/// A line that separates documents; behind the hyphens the next one may begin.
constexpr std::string_view kSeparator = "---";
bool separates(std::string_view line) {
  return line.starts_with(kSeparator) &&
         line.find_first_not_of(" \t\r", kSeparator.size()) != kSeparator.size();
}

bool holds_values(const YamlNode& node) {
  return node.kind == Kind::map || node.kind == Kind::list;
}

using Taken = std::set<const YamlNode*>;

void add_left_over(const YamlNode& node, const std::string& path, const Taken& taken,
                   std::vector<std::string>& out) {
  if (taken.contains(&node)) return;
  if (!holds_values(node)) {
    if (node.kind != Kind::null) out.push_back(path);
    return;
  }
  const bool map = node.kind == Kind::map;
  const auto is_left = [&](const YamlNode::Entry& entry) {
    return !holds_values(entry.value) && !taken.contains(&entry.value);
  };
  if (!map && !node.entries.empty() && std::ranges::all_of(node.entries, is_left)) {
    out.push_back(path);  // a list of texts is one value to who reads it
    return;
  }
  for (std::size_t k = 0; k < node.entries.size(); ++k) {
    const YamlNode::Entry& entry = node.entries[k];
    const std::string key = map ? entry.key : std::to_string(k);
    add_left_over(entry.value, path.empty() ? key : path + "." + key, taken, out);
  }
}

/// nullopt: nothing of it is left.
std::optional<YamlNode> without(const YamlNode& node, const Taken& taken) {
  if (taken.contains(&node)) return std::nullopt;
  if (!holds_values(node)) return node;
  YamlNode copy = node;
  copy.entries.clear();
  for (const YamlNode::Entry& entry : node.entries)
    if (auto value = without(entry.value, taken))
      copy.entries.push_back({entry.key, entry.key_at, std::move(*value)});
  if (copy.entries.empty() && !node.entries.empty()) return std::nullopt;
  return copy;
}

void forget(const YamlNode& node, Taken& taken) {
  taken.erase(&node);
  for (const YamlNode::Entry& entry : node.entries) forget(entry.value, taken);
}

}  // namespace

Expected<std::vector<YamlNode>> parse_documents(std::string_view text, const std::string& file) {
  std::vector<YamlNode> documents;
  Diagnostics mistakes;
  std::string one;
  std::size_t lines = 0;
  const auto close = [&] {
    const bool blank = one.find_first_not_of(" \t\r\n") == std::string::npos;
    auto document = blank ? Expected<YamlNode>(YamlNode{}) : parse_yaml(one, file);
    if (!document)
      mistakes.insert(mistakes.end(), document.error().begin(), document.error().end());
    else if (document->kind != Kind::null)
      documents.push_back(std::move(*document));
    one.assign(lines, '\n');  // places go on counting
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++lines;
    if (separates(line)) {
      close();
      one.pop_back();  // what stands behind the hyphens is of this line
      one += std::string(kSeparator.size(), ' ');
      one += line.substr(kSeparator.size());
    } else {
      one += line;
    }
    one += '\n';
  }
  close();
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return documents;
}

ForeignFile::ForeignFile(YamlNode root) : root_(std::move(root)) { report_duplicates(root_); }

void ForeignFile::report_duplicates(const YamlNode& node) {
  for (const YamlNode::Entry& entry : node.entries) {
    if (node.kind == Kind::map && node.find(entry.key) != &entry)
      mistake(entry.key_at, fmt::format("key '{}' is given twice", shortened(entry.key)),
              fmt::format("the first is in line {}", node.find(entry.key)->key_at.line));
    report_duplicates(entry.value);
  }
}

void ForeignFile::keep(const YamlNode* in, std::string_view key) {
  if (const YamlNode* node = find(in, key)) forget(*node, taken_);
}

const YamlNode* ForeignFile::find(const YamlNode* in, std::string_view key) {
  const YamlNode::Entry* entry = in == nullptr ? nullptr : in->find(key);
  return entry == nullptr || entry->value.kind == Kind::null ? nullptr : &entry->value;
}

void ForeignFile::wrong_kind(const YamlNode& node, std::string_view key, std::string_view wanted) {
  mistake(node.at, fmt::format("'{}' takes {}, not {}", key, wanted, describe(node)));
}

const YamlNode* ForeignFile::map(const YamlNode* in, std::string_view key) {
  const YamlNode* node = find(in, key);
  if (node == nullptr || node->kind == Kind::map) return node;
  wrong_kind(*node, key, "a map");
  return nullptr;
}

std::vector<const YamlNode*> ForeignFile::list(const YamlNode* in, std::string_view key) {
  std::vector<const YamlNode*> items;
  const YamlNode* node = find(in, key);
  if (node == nullptr) return items;
  if (node->kind != Kind::list) {
    wrong_kind(*node, key, "a list");
    return items;
  }
  for (const YamlNode::Entry& entry : node->entries) items.push_back(&entry.value);
  return items;
}

std::optional<std::string> ForeignFile::text(const YamlNode* in, std::string_view key) {
  const YamlNode* node = find(in, key);
  if (node == nullptr) return std::nullopt;
  taken_.insert(node);
  if (node->kind == Kind::scalar) return node->text;
  wrong_kind(*node, key, "a text");
  return std::nullopt;
}

std::optional<std::int64_t> ForeignFile::whole(const YamlNode* in, std::string_view key,
                                               std::int64_t low, std::int64_t high) {
  const auto written = text(in, key);
  if (!written) return std::nullopt;
  const auto value = parse_integer(*written);
  if (value && *value >= low && *value <= high) return *value;
  mistake(find(in, key)->at, fmt::format("'{}' takes a whole number from {} to {}, not '{}'", key,
                                         low, high, shortened(*written)));
  return std::nullopt;
}

bool ForeignFile::flag(const YamlNode* in, std::string_view key) {
  const auto written = text(in, key);
  if (!written || *written == "false") return false;
  if (*written == "true") return true;
  mistake(find(in, key)->at,
          fmt::format("'{}' takes true or false, not '{}'", key, shortened(*written)));
  return false;
}

std::vector<std::string> ForeignFile::texts(const YamlNode* in, std::string_view key) {
  std::vector<std::string> words;
  for (const YamlNode* item : list(in, key)) {
    taken_.insert(item);
    if (item->kind == Kind::scalar)
      words.push_back(item->text);
    else
      wrong_kind(*item, key, "a list of texts");
  }
  return words;
}

void ForeignFile::ignore(const YamlNode* in, std::string_view key) {
  if (const YamlNode* node = find(in, key)) taken_.insert(node);
}

SourcePlace ForeignFile::place(const YamlNode* in, std::string_view key) const {
  if (in == nullptr) return root_.at;
  const YamlNode::Entry* entry = in->find(key);
  return entry == nullptr ? in->at : entry->value.at;
}

void ForeignFile::mistake(SourcePlace at, std::string what, std::string hint) {
  mistakes_.push_back({Severity::error, std::move(at), std::move(what), std::move(hint)});
}

std::vector<std::string> ForeignFile::left_over() const {
  std::vector<std::string> out;
  add_left_over(root_, "", taken_, out);
  return out;
}

YamlNode ForeignFile::rest() const {
  auto left = without(root_, taken_);
  if (left) return std::move(*left);
  YamlNode empty;
  empty.kind = Kind::map;
  return empty;
}

}  // namespace reckon
