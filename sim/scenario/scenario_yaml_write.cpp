#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/base/printable.h"
#include "sim/scenario/scenario_yaml_document.h"
#include "sim/scenario/yaml_word.h"

// A tree as YAML text again.
namespace reckon {
namespace {

constexpr std::size_t kLongestLine = 100;

/// Words that mean the same with quotes and without: what a YAML reader could take for a key, a
/// list, a comment, a tag or nothing is not one of them.
bool is_plain(std::string_view text) {
  if (text.empty() || text == "null" || text == "~") return false;
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '+' || c == '%';
  };
  if (!harmless(static_cast<unsigned char>(text.front()))) return false;
  return std::ranges::all_of(text,
                             [&](char c) {
                               return harmless(static_cast<unsigned char>(c)) || c == '-' ||
                                      c == ' ' || c == '@';
                             }) &&
         text.back() != ' ';
}

std::string yaml_quoted(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return printable(out) + "\"";
}

std::string tag_of(const YamlNode& node) { return node.tag.empty() ? "" : node.tag + " "; }

/// On one line, as `{a: 1, b: [2, 3]}`.
std::string flow(const YamlNode& node) {
  const std::string tag = tag_of(node);
  switch (node.kind) {
    case YamlNode::Kind::null:
      return tag + "null";
    case YamlNode::Kind::scalar:
      return tag + yaml_quoted(node.text);
    case YamlNode::Kind::list:
    case YamlNode::Kind::map:
      break;
  }
  const bool map = node.kind == YamlNode::Kind::map;
  std::string out = tag + (map ? "{" : "[");
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    const YamlNode::Entry& entry = node.entries[i];
    if (i > 0) out += ", ";
    if (map) out += yaml_quoted(entry.key) + ": ";
    out += flow(entry.value);
  }
  return out + (map ? "}" : "]");
}

bool holds_values_only(const YamlNode& node) {
  return std::ranges::all_of(node.entries, [](const YamlNode::Entry& entry) {
    return entry.value.kind == YamlNode::Kind::scalar || entry.value.kind == YamlNode::Kind::null;
  });
}

void write(const YamlNode& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const YamlNode::Entry& entry : node.entries) {
    const bool map = node.kind == YamlNode::Kind::map;
    const std::string head = margin + (map ? yaml_quoted(entry.key) + ":" : "-");
    const YamlNode& value = entry.value;
    const std::string line = head + " " + flow(value);
    const bool short_enough = line.size() <= kLongestLine && holds_values_only(value);
    if (value.entries.empty() || short_enough || !value.tag.empty()) {
      out += line + "\n";
    } else {
      const std::size_t begin = out.size();
      if (map) out += head + "\n";
      write(value, indent + 2, out);
      if (!map) out[begin + indent] = '-';  // the first entry stands behind the dash
    }
  }
}

}  // namespace

std::string yaml_word(std::string_view text) { return yaml_quoted(text); }

std::string write_yaml(const YamlNode& root) {
  if (root.entries.empty() || !root.tag.empty()) return flow(root) + "\n";
  std::string out;
  write(root, 0, out);
  return out;
}

}  // namespace reckon
