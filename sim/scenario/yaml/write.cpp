#include <algorithm>

#include "sim/base/text/yaml_writer.h"
#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/yaml_word.h"

// A tree as YAML text again.
namespace reckon {
namespace {

using Style = YamlWriter::Style;
constexpr std::size_t kLongestLine = 100;

void write(YamlWriter& out, const YamlNode& node, std::size_t indent, bool flow);

std::string on_one_line(const YamlNode& node) {
  YamlWriter out(YamlQuotes::for_us);
  write(out, node, 0, true);
  std::string line = out.done();
  line.pop_back();
  return line;
}

bool holds_values_only(const YamlNode& node) {
  return std::ranges::all_of(node.entries, [](const YamlNode::Entry& entry) {
    return entry.value.kind == YamlNode::Kind::scalar || entry.value.kind == YamlNode::Kind::null;
  });
}

/// `before`: columns of the line that are taken.
bool stands_on_one_line(const YamlNode& node, std::size_t before) {
  if (node.entries.empty() || !node.tag.empty()) return true;
  return holds_values_only(node) && before + on_one_line(node).size() <= kLongestLine;
}

/// `flow`: on one line, as `{a: 1, b: [2, 3]}`.
void write(YamlWriter& out, const YamlNode& node, std::size_t indent, bool flow) {
  if (!node.tag.empty()) out.tag(node.tag);
  const bool map = node.kind == YamlNode::Kind::map;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return out.null();
    case YamlNode::Kind::scalar:
      return out.text(node.text);
    case YamlNode::Kind::list:
      out.begin_list(flow ? Style::flow : Style::block);
      break;
    case YamlNode::Kind::map:
      out.begin_map(flow ? Style::flow : Style::block);
      break;
  }
  for (const YamlNode::Entry& entry : node.entries) {
    std::size_t before = indent + 2;  // "- "
    if (map) {
      out.key(entry.key);
      before = indent + yaml_word(entry.key).size() + 2;
    }
    write(out, entry.value, indent + 2, flow || stands_on_one_line(entry.value, before));
  }
  map ? out.end_map() : out.end_list();
}

}  // namespace

std::string yaml_word(std::string_view text) {
  YamlWriter out(YamlQuotes::for_us);
  out.text(text);
  std::string word = out.done();
  word.pop_back();
  return word;
}

std::string write_yaml(const YamlNode& root) {
  YamlWriter out(YamlQuotes::for_us);
  write(out, root, 0, root.entries.empty() || !root.tag.empty());
  return out.done();
}

}  // namespace reckon
