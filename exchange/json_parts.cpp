#include "exchange/json_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/reading_iterator.h"

namespace reckon {
namespace {

using SaxJson = nlohmann::json;

/// Where the parser is in the text.
struct TextCursor {
  const char* begin;
  const char* at;
  const char* end;
  const char* counted = begin;  // up to here lines are
  const char* line_start = begin;
  int line = 1;

  /// The place of the byte `back` before the next one.
  SourcePlace place(const std::string& file, std::size_t back) {
    for (; counted != at; ++counted)
      if (*counted == '\n') {
        ++line;
        line_start = counted + 1;
      }
    const char* start = at - std::min(back, static_cast<std::size_t>(at - begin));
    int of_line = line;
    const char* from = line_start;
    while (start < from) {  // a number is known by the byte behind it, which may end the line
      --of_line;
      const char* const newline = from - 1;
      from = newline;
      while (from > begin && from[-1] != '\n') --from;
    }
    return {file, of_line, static_cast<int>(start - from) + 1};
  }
};

std::vector<std::string> keys_of(std::string_view pattern) {
  std::vector<std::string> keys;
  while (!pattern.empty()) {
    const std::size_t dot = std::min(pattern.find('.'), pattern.size());
    keys.emplace_back(pattern.substr(0, dot));
    pattern.remove_prefix(std::min(dot + 1, pattern.size()));
  }
  return keys;
}

class PartReader final : public nlohmann::json_sax<SaxJson> {
 public:
  using Kind = YamlNode::Kind;

  PartReader(TextCursor& cursor, const std::string& file, std::span<const std::string_view> wanted,
             const std::function<bool(const JsonPart&)>& take)
      : cursor_(cursor), file_(file), take_(take) {
    for (const std::string_view pattern : wanted) {
      wanted_.push_back(keys_of(pattern));
      deepest_ = std::max(deepest_, wanted_.back().size());
    }
  }

  Diagnostics mistakes;

  bool null() override { return scalar(Kind::null, "", 4); }
  bool boolean(bool v) override { return scalar(Kind::scalar, v ? "true" : "false", v ? 4 : 5); }
  bool number_integer(std::int64_t v) override { return number(fmt::format("{}", v)); }
  bool number_unsigned(std::uint64_t v) override { return number(fmt::format("{}", v)); }
  bool number_float(double, const std::string& s) override { return number(s); }
  bool string(std::string& s) override {
    const std::size_t width = s.size() + 2;
    return scalar(Kind::scalar, std::move(s), width);
  }
  bool binary(SaxJson::binary_t&) override { return false; }  // not of JSON texts
  bool start_object(std::size_t) override { return open(Kind::map); }
  bool start_array(std::size_t) override { return open(Kind::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& k) override {
    if (!building_.empty()) {
      key_at_ = cursor_.place(file_, k.size() + 2);
      key_ = std::move(k);
    } else if (depth_ <= deepest_) {
      path_.back() = std::move(k);
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const SaxJson::exception& e) override {
    const std::string_view what = e.what();
    const std::size_t reason = what.find(" - ");
    mistakes.push_back(
        {.at = cursor_.place(file_, 1),
         .what = fmt::format("the file is no JSON: {}", reason == std::string_view::npos
                                                            ? shortened(what)
                                                            : std::string(what.substr(reason + 3))),
         .hint = {}});
    return false;
  }

 private:
  bool fits() const {
    if (depth_ > deepest_) return false;
    return std::ranges::any_of(wanted_, [&](const std::vector<std::string>& keys) {
      return keys.size() == depth_ &&
             std::ranges::equal(keys, path_, [](const std::string& key, const std::string& at) {
               return key == "*" || key == at;
             });
    });
  }

  bool number(std::string text) {
    const std::size_t width = text.size() + 1;  // and the byte behind it
    return scalar(Kind::scalar, std::move(text), width);
  }
  bool scalar(Kind kind, std::string text, std::size_t width) {
    if (building_.empty() && !fits()) return true;
    YamlNode node;
    node.kind = kind;
    node.text = std::move(text);
    node.at = cursor_.place(file_, width);
    if (building_.empty()) return hand_over(std::move(node));
    return add(std::move(node)) != nullptr;
  }

  bool open(Kind kind) {
    if (building_.empty() && !fits()) {
      if (++depth_ <= deepest_) path_.emplace_back();
      return true;
    }
    YamlNode node;
    node.kind = kind;
    node.at = cursor_.place(file_, 1);
    if (building_.empty()) {
      part_ = std::move(node);
      values_ = 0;
      building_.push_back(&part_);
      return true;
    }
    if (building_.size() >= static_cast<std::size_t>(kDeepestNesting))
      return refuse(node.at, fmt::format("nested deeper than {} levels", kDeepestNesting));
    YamlNode* const made = add(std::move(node));
    if (made != nullptr) building_.push_back(made);
    return made != nullptr;
  }

  bool close() {
    if (building_.empty()) {
      if (depth_-- <= deepest_) path_.pop_back();
      return true;
    }
    building_.pop_back();
    return !building_.empty() || hand_over(std::move(part_));
  }

  /// The node at its place in the value; a parent does not grow while a child is open.
  YamlNode* add(YamlNode node) {
    if (++values_ > kMostValues) {
      refuse(node.at, fmt::format("a value of more than {} values", kMostValues));
      return nullptr;
    }
    YamlNode& parent = *building_.back();
    YamlNode::Entry entry;
    if (parent.kind == Kind::map) {
      entry.key = std::move(key_);
      entry.key_at = key_at_;
    }
    entry.value = std::move(node);
    return &parent.entries.emplace_back(std::move(entry)).value;
  }

  bool hand_over(YamlNode node) { return take_(JsonPart{path_, std::move(node)}); }

  bool refuse(const SourcePlace& at, std::string what) {
    mistakes.push_back({.at = at, .what = std::move(what), .hint = {}});
    return false;
  }

  TextCursor& cursor_;
  const std::string& file_;
  const std::function<bool(const JsonPart&)>& take_;
  std::vector<std::vector<std::string>> wanted_;
  std::size_t deepest_ = 0, depth_ = 0;  // depth_: containers that are open and not built
  std::vector<std::string> path_;        // keys of the first deepest_ of them
  YamlNode part_;
  std::vector<YamlNode*> building_;
  std::size_t values_ = 0;
  std::string key_;
  SourcePlace key_at_;
};

}  // namespace

Diagnostics for_each_json_part(std::string_view bytes, const std::string& file,
                               std::span<const std::string_view> wanted,
                               const std::function<bool(const JsonPart&)>& take) {
  TextCursor cursor{bytes.data(), bytes.data(), bytes.data() + bytes.size()};
  bool first = true;
  while (true) {
    while (cursor.at != cursor.end &&
           std::string_view(" \t\r\n").find(*cursor.at) != std::string_view::npos)
      ++cursor.at;
    if (!first && cursor.at == cursor.end) return {};
    first = false;
    PartReader reader(cursor, file, wanted, take);
    const bool strict = false;  // another document may follow
    if (!SaxJson::sax_parse(ReadingIterator(cursor.at, &cursor.at),
                            ReadingIterator(cursor.end, &cursor.at), &reader,
                            nlohmann::detail::input_format_t::json, strict))
      return reader.mistakes;
  }
}

}  // namespace reckon
