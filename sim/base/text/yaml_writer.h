#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace YAML {
class Emitter;
}

// YAML as text, by yaml-cpp's emitter. What is written is UTF-8; other bytes become U+FFFD.
namespace reckon {

/// Which texts stand without quotes.
enum class YamlQuotes {
  /// Words and numbers as parse_yaml reads them, which takes both for the same text.
  for_us,
  /// Nothing that a reader of any version of YAML could take for a number, a truth, a date or
  /// nothing.
  for_everyone
};

class YamlWriter {
 public:
  enum class Style { block, flow };  // an entry a line, or all on one line

  explicit YamlWriter(YamlQuotes quotes);
  ~YamlWriter();
  YamlWriter(const YamlWriter&) = delete;
  YamlWriter& operator=(const YamlWriter&) = delete;

  void begin_map(Style style = Style::block);
  void end_map();
  void begin_list(Style style = Style::block);
  void end_list();
  void key(std::string_view text);  // its value follows
  void tag(std::string_view tag);   // "!exponential"; its value follows
  /// Lines that end with a newline and need no escape are a literal block for everyone.
  void text(std::string_view text);
  void word(std::string_view word);  // a number or a truth, as it is
  void null();
  /// All of it, with a newline at its end.
  std::string done() const;

 private:
  void scalar(std::string_view text);

  std::unique_ptr<YAML::Emitter> out_;
  YamlQuotes quotes_;
};

}  // namespace reckon
