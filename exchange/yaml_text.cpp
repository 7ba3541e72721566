#include "exchange/yaml_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/printable.h"

namespace reckon {
namespace {

using Json = nlohmann::ordered_json;

/// Letters, digits and -_./ from a letter on: text to every version of YAML, unless it is one of
/// the words that some read as truth or nothing.
bool plain(std::string_view text) {
  if (text.empty()) return false;
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto inside = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || std::string_view("-_./").find(c) != text.npos;
  };
  if (!letter(text.front()) && text.front() != '/') return false;
  if (!std::all_of(text.begin(), text.end(), inside)) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  constexpr std::string_view kWords[] = {"true", "false", "yes", "no",  "on",
                                         "off",  "y",     "n",   "null"};
  return std::find(std::begin(kWords), std::end(kWords), lower) == std::end(kWords);
}

/// Lines that a literal block keeps as they are: no control characters, nothing behind which a
/// reader strips blanks, a first line that does not set the indentation.
bool fits_block(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == ' ' || text.front() == '\n') return false;
  return text.find('\t') == text.npos && printable_lines(text) == text;
}

/// As JSON, which YAML reads alike: with escapes for what YAML has no raw characters for (and a
/// terminal obeys), U+FFFD for bytes that are no UTF-8.
std::string quoted(const std::string& text) {
  return printable(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

class Writer {
 public:
  void value(const Json& v, std::size_t indent) {
    if (v.is_object() && !v.empty()) {
      map(v, indent, true);
    } else if (v.is_array() && !v.empty()) {
      list(v, indent);
    } else {
      out += ' ';
      scalar(v, indent);
    }
  }

  /// `first`: the first key starts a line of its own; else it goes on behind "- ".
  void map(const Json& v, std::size_t indent, bool newline) {
    if (newline) out += '\n';
    bool first = true;
    for (const auto& item : v.items()) {
      if (!first || newline) out.append(indent, ' ');
      first = false;
      key(item.key());
      out += ':';
      value(item.value(), indent + 2);
    }
  }

  void list(const Json& v, std::size_t indent) {
    out += '\n';
    for (const Json& item : v) {
      out.append(indent, ' ');
      out += '-';
      if (item.is_object() && !item.empty()) {
        out += ' ';
        map(item, indent + 2, false);
      } else {
        value(item, indent + 2);
      }
    }
  }

  std::string out;

 private:
  void key(const std::string& text) { out += plain(text) ? text : quoted(text); }

  void scalar(const Json& v, std::size_t indent) {
    if (!v.is_string()) {
      out += v.dump() + '\n';
      return;
    }
    const auto& text = v.get_ref<const std::string&>();
    if (fits_block(text)) {
      block(text, indent);
    } else {
      out += (plain(text) ? text : quoted(text)) + '\n';
    }
  }

  void block(std::string_view text, std::size_t indent) {
    const bool ends = text.back() == '\n';
    // Every newline at the end is kept with `+`, none is with `-`.
    out += ends ? (text.size() > 1 && text[text.size() - 2] == '\n' ? "|+\n" : "|\n") : "|-\n";
    if (ends) text.remove_suffix(1);
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (end > at) out.append(indent, ' ').append(text.substr(at, end - at));
      out += '\n';
      at = end + 1;
    }
  }
};

}  // namespace

std::string yaml_text(const Json& value) {
  Writer writer;
  if (value.is_object() && !value.empty()) {
    writer.map(value, 0, false);
  } else {
    writer.value(value, 0);
    writer.out.erase(0, 1);
  }
  return std::move(writer.out);
}

}  // namespace reckon
