#pragma once
#include <string>
#include <string_view>
#include <vector>

// The few things that aligned plain text is made of.
namespace reckon {

/// `text` broken at spaces into lines of at most `width` characters; a longer word stands on a line
/// of its own.
std::vector<std::string> wrap(std::string_view text, int width);

/// "network engine fluid" of `what` "network engine"; "no network" where nothing was asked of one
/// (kNoEngine).
std::string engine_text(std::string_view what, std::string_view engine);

/// '#' for every `1 / width` of the whole, at least one where there is anything at all.
std::string bar(double share, int width);  // share: 0..1

/// Rows of cells with the columns aligned. Tables put cells that start with a digit or a sign to
/// the right; lists of facts put everything to the left.
class Columns {
 public:
  enum class Kind { table, facts };
  explicit Columns(Kind kind = Kind::table) : kind_(kind) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// Each row with its newline, no trailing spaces.
  std::string text() const;

 private:
  Kind kind_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reckon
