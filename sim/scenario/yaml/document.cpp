#include "sim/scenario/yaml/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "sim/base/text/printable.h"

namespace reckon {
namespace {

/// Stops yaml-cpp from inside a callback; never leaves this file.
struct Stop {
  Diagnostic diagnostic;
};

/// Builds the tree from yaml-cpp's events: unlike its nodes they keep duplicate keys and every
/// place.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file) : text_(text), file_(file) {}
  YamlNode root;
  bool first_document = true;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (!first_document)
      stop(mark, "a second YAML document starts here",
           "one scenario a file: remove the '---' line");
  }
  void OnDocumentEnd() override { first_document = false; }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    YamlNode node;
    node.text = "null";  // its name where it is a key
    add(mark, std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (tag == "!") check_quote(mark);
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.text = value;
    node.tag = explicit_tag(tag);
    add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open(mark, tag, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    open(mark, tag, YamlNode::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  struct Open {
    YamlNode* node;
    bool wants_key;
  };

  SourcePlace place(const YAML::Mark& mark) const {
    return {file_, mark.line + 1, mark.column + 1};  // yaml-cpp counts from 0
  }
  [[noreturn]] void stop(const YAML::Mark& mark, std::string what, std::string hint) const {
    throw Stop{{Severity::error, place(mark), std::move(what), std::move(hint)}};
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0)
      stop(mark, "YAML anchors ('&name') and aliases ('*name') are not read in a scenario",
           "write the value out");
  }
  /// yaml-cpp 0.7 lets an open quote swallow the rest of a file that ends with a newline.
  void check_quote(const YAML::Mark& mark) const {
    std::size_t i = mark.pos < 0 ? text_.size() : std::size_t(mark.pos);
    const char quote = i < text_.size() ? text_[i] : '\0';
    if (quote != '"' && quote != '\'') return;
    for (++i; i < text_.size(); ++i) {
      const bool escaped = quote == '"' && text_[i] == '\\';
      const bool doubled =
          quote == '\'' && text_[i] == quote && i + 1 < text_.size() && text_[i + 1] == quote;
      if (escaped || doubled)
        ++i;
      else if (text_[i] == quote)
        return;
    }
    stop(mark, "the quote that starts here is never closed", "");
  }
  static std::string explicit_tag(const std::string& tag) {
    return tag == "?" || tag == "!" ? "" : tag;  // what yaml-cpp gives plain and quoted values
  }

  YamlNode* add(const YAML::Mark& mark, YamlNode node) {
    if (++values_ > kMostValues)
      stop(mark, fmt::format("more than {} values in one file", kMostValues),
           "a scenario is a short file; read long lists through trace files");
    node.at = place(mark);
    if (open_.empty()) {
      root = std::move(node);
      return &root;
    }
    Open& parent = open_.back();
    auto& entries = parent.node->entries;
    if (parent.node->kind == YamlNode::Kind::list) {
      entries.push_back({"", node.at, std::move(node)});
    } else if (parent.wants_key) {
      const bool is_word = node.kind == YamlNode::Kind::scalar || node.kind == YamlNode::Kind::null;
      if (!is_word)
        stop(mark, "a key must be one word, not " + describe(node), "is its bracket closed?");
      entries.push_back({node.text, node.at, YamlNode{}});
      parent.wants_key = false;
      return nullptr;
    } else {
      parent.wants_key = true;
      // yaml-cpp puts an empty value at the next token: the key is where the user looks.
      if (node.kind == YamlNode::Kind::null) node.at = entries.back().key_at;
      entries.back().value = std::move(node);
    }
    return &entries.back().value;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YamlNode::Kind kind) {
    if (open_.size() >= kDeepestNesting)
      stop(mark, fmt::format("nested more than {} levels deep", kDeepestNesting), "");
    YamlNode node;
    node.kind = kind;
    node.tag = explicit_tag(tag);
    // Entries are only appended below the innermost open node, so outer pointers stay valid.
    open_.push_back({add(mark, std::move(node)), true});
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
};

/// The first byte that no text file has.
std::optional<Diagnostic> not_text(std::string_view text, const std::string& file) {
  int line = 1;
  std::size_t line_begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_length(text.substr(i));
    const SourcePlace at{file, line, int(i - line_begin) + 1};
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F)
      return Diagnostic{Severity::error, at,
                        fmt::format("byte 0x{:02x} is no text: is this a binary file?", c),
                        "a scenario is a YAML text in UTF-8"};
    if (length == 0)
      return Diagnostic{Severity::error, at, fmt::format("byte 0x{:02x} is not UTF-8", c),
                        "save the file in UTF-8"};
    i += length;
    if (c == '\n') {
      ++line;
      line_begin = i;
    }
  }
  return std::nullopt;
}

tl::unexpected<Diagnostics> fail(Diagnostic diagnostic) {
  return tl::unexpected<Diagnostics>(Diagnostics{std::move(diagnostic)});
}

}  // namespace

const YamlNode::Entry* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find_if(entries, [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

std::string_view YamlNode::name() const {
  const Entry* entry = find("name");
  if (entry == nullptr || entry->value.kind != Kind::scalar) return {};
  return entry->value
      .text;  // no conditional operator here: it would copy the text into a temporary
}

std::string shortened(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(i)));
    if (i + length > kLongest) return out + "...";
    out += printable(text.substr(i, length));
    i += length;
  }
  return out;
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return node.text.empty() ? "nothing" : fmt::format("'{}'", shortened(node.text));
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "";
}

Expected<YamlNode> parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kLargestDocument)
    return fail({Severity::error,
                 {file, 0, 0},
                 fmt::format("the file has {} bytes", text.size()),
                 fmt::format("a scenario has at most {} MiB", kLargestDocument >> 20)});
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  if (auto bad = not_text(text, file)) return fail(std::move(*bad));
  TreeBuilder builder(text, file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop& stop) {
    return fail(stop.diagnostic);
  } catch (const YAML::Exception& e) {
    const bool nowhere = e.mark.is_null();
    return fail({Severity::error,
                 {file, nowhere ? 0 : e.mark.line + 1, nowhere ? 0 : e.mark.column + 1},
                 "not valid YAML: " + e.msg,
                 ""});
  }
  return std::move(builder.root);
}

}  // namespace reckon
