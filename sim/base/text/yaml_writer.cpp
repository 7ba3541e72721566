#include "sim/base/text/yaml_writer.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>

#include "sim/base/check.h"
#include "sim/base/text/printable.h"

namespace reckon {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_letter_or_digit(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/// What a reader could take for a key, a list, a comment, a tag or nothing is not one of them.
bool plain_for_us(std::string_view text) {
  if (text.empty() || text == "null" || text == "~") return false;
  const auto harmless = [](char c) {
    return is_letter_or_digit(c) || std::string_view("_./+%").find(c) != std::string_view::npos;
  };
  return harmless(text.front()) && text.back() != ' ' && std::ranges::all_of(text, [&](char c) {
           return harmless(c) || std::string_view("- @").find(c) != std::string_view::npos;
         });
}

/// Letters, digits and -_./ from a letter on: text to every version of YAML, unless it is one of
/// the words that some read as truth or nothing.
bool plain_for_everyone(std::string_view text) {
  if (text.empty() || (!is_letter(text.front()) && text.front() != '/')) return false;
  if (!std::ranges::all_of(text, [](char c) {
        return is_letter_or_digit(c) || std::string_view("-_./").find(c) != std::string_view::npos;
      }))
    return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  constexpr std::string_view kWords[] = {"true", "false", "yes", "no",  "on",
                                         "off",  "y",     "n",   "null"};
  return std::ranges::find(kWords, lower) == std::end(kWords);
}

/// Lines that a literal block keeps as they are: no control characters, nothing behind which a
/// reader strips blanks or newlines, a first line that does not set the indentation.
bool fits_block(std::string_view text) {
  if (!text.ends_with('\n') || text.ends_with("\n\n") || text.size() < 2) return false;
  if (text.front() == ' ' || text.front() == '\n') return false;
  return text.find('\t') == std::string_view::npos && printable_lines(text) == text;
}

}  // namespace

YamlWriter::YamlWriter(YamlQuotes quotes)
    : out_(std::make_unique<YAML::Emitter>()), quotes_(quotes) {}
YamlWriter::~YamlWriter() = default;

void YamlWriter::begin_map(Style style) {
  if (style == Style::flow) *out_ << YAML::Flow;
  *out_ << YAML::BeginMap;
}
void YamlWriter::end_map() { *out_ << YAML::EndMap; }
void YamlWriter::begin_list(Style style) {
  if (style == Style::flow) *out_ << YAML::Flow;
  *out_ << YAML::BeginSeq;
}
void YamlWriter::end_list() { *out_ << YAML::EndSeq; }

void YamlWriter::key(std::string_view text) {
  *out_ << YAML::Key;
  scalar(text);
  *out_ << YAML::Value;
}

void YamlWriter::tag(std::string_view tag) {
  RECKON_CHECK(tag.starts_with('!'));
  *out_ << YAML::LocalTag(std::string(tag.substr(1)));
}

void YamlWriter::text(std::string_view text) {
  if (quotes_ == YamlQuotes::for_us || !fits_block(text)) return scalar(text);
  *out_ << YAML::Literal << std::string(text.substr(0, text.size() - 1));
}

void YamlWriter::word(std::string_view word) { *out_ << std::string(word); }
void YamlWriter::null() { *out_ << YAML::Null; }

void YamlWriter::scalar(std::string_view text) {
  const bool plain = quotes_ == YamlQuotes::for_us ? plain_for_us(text) : plain_for_everyone(text);
  if (!plain) *out_ << YAML::DoubleQuoted;
  // yaml-cpp leaves what turns the direction of letters as it is.
  if (printable_lines(text) != text) *out_ << YAML::EscapeNonAscii;
  *out_ << std::string(text);
}

std::string YamlWriter::done() const {
  RECKON_CHECK(out_->good());
  return std::string(out_->c_str(), out_->size()) + "\n";
}

}  // namespace reckon
