#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "executor/data/store/object_reader.h"
#include "executor/data/tokens/token_array.h"

namespace reckon::data {
namespace {

constexpr std::int64_t kLongestHeader = 65'536;

/// What the dictionary of a header says.
struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

/// A literal of Python: {'descr': '<u2', 'fortran_order': False, 'shape': (1000,), }
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : left_(text) {}

  /// "" or what is wrong.
  std::string read(NpyHeader& header) {
    if (!take('{')) return "is no dictionary";
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return "is no dictionary of names and values";
      if (std::string wrong = value(*key, header); !wrong.empty()) return wrong;
      if (!take(',') && !next_is('}')) return "has no ',' between two entries";
    }
    skip_blanks();
    if (!left_.empty()) return "has something behind its dictionary";
    if (!header.descr || !header.fortran_order || !header.shape)
      return fmt::format("has no '{}'", !header.descr           ? "descr"
                                        : !header.fortran_order ? "fortran_order"
                                                                : "shape");
    return "";
  }

 private:
  std::string value(const std::string& key, NpyHeader& header) {
    if (key == "descr") {
      header.descr = quoted();
      return header.descr ? "" : "holds records, not numbers ('descr')";
    }
    if (key == "fortran_order") {
      const bool yes = take_word("True");
      if (!yes && !take_word("False"))
        return "has a 'fortran_order' that is neither True nor False";
      header.fortran_order = yes;
      return "";
    }
    if (key != "shape") return fmt::format("has an unknown key '{}'", key.substr(0, 40));
    header.shape.emplace();
    if (!take('(')) return "has a 'shape' that is no tuple";
    while (!take(')')) {
      const auto length = number();
      if (!length) return "has a 'shape' that is no tuple of lengths";
      header.shape->push_back(*length);
      if (!take(',') && !next_is(')')) return "has a 'shape' that is no tuple of lengths";
    }
    return "";
  }

  void skip_blanks() {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \t\n"), left_.size()));
  }
  bool next_is(char c) {
    skip_blanks();
    return left_.starts_with(c);
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string> quoted() {
    skip_blanks();
    if (left_.empty() || (left_.front() != '\'' && left_.front() != '"')) return std::nullopt;
    const std::size_t end = left_.find(left_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(left_.substr(1, end - 1));
    left_.remove_prefix(end + 1);
    return text;
  }
  std::optional<std::int64_t> number() {
    skip_blanks();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    return value;
  }

  std::string_view left_;
};

/// Of '<u2', '|u1'.
std::optional<TokenType> type_of(std::string_view descr) {
  constexpr std::pair<std::string_view, TokenType> kTypes[] = {
      {"|u1", TokenType::uint8},  {"|i1", TokenType::int8},  {"<i2", TokenType::int16},
      {"<u2", TokenType::uint16}, {"<i4", TokenType::int32}, {"<u4", TokenType::uint32},
      {"<i8", TokenType::int64}};
  for (const auto& [name, type] : kTypes)
    if (name == descr) return type;
  return std::nullopt;
}

}  // namespace

TokenArray npy_tokens(const Store& store, const StoredObject& file) {
  ObjectReader reader(store, file);
  constexpr std::array<std::uint8_t, 6> kMagic{0x93, 'N', 'U', 'M', 'P', 'Y'};
  std::array<std::uint8_t, 8> head{};
  reader.read(head);
  if (!std::equal(kMagic.begin(), kMagic.end(), head.begin()))
    reader.damaged(0, "is no .npy file: it does not begin with \\x93NUMPY");
  const int major = head[6];
  if (major < 1 || major > 3)
    reader.damaged(
        6, fmt::format("version {}.{} of the .npy format, 1.0 to 3.0 are read", major, head[7]));
  const auto length = static_cast<std::int64_t>(major == 1 ? read_little_endian<2>(reader)
                                                           : read_little_endian<4>(reader));
  const std::int64_t at = reader.at();
  if (length > kLongestHeader)
    reader.damaged(
        8, fmt::format("a header of {} bytes, at most {} are read", length, kLongestHeader));
  std::string text(static_cast<std::size_t>(length), '\0');
  reader.read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  NpyHeader header;
  if (const std::string wrong = LiteralReader(text).read(header); !wrong.empty())
    reader.damaged(at, "the header " + wrong);
  const auto type = type_of(*header.descr);
  if (!type)
    reader.damaged(at,
                   fmt::format("holds numbers of type '{}'; tokens are |u1, |i1, <u2, <i2, <u4, "
                               "<i4 or <i8 (array.astype('<u4'))",
                               header.descr->substr(0, 40)));
  if (header.shape->size() != 1)
    reader.damaged(at, fmt::format("holds an array of {} dimensions; tokens have one "
                                   "(array.reshape(-1))",
                                   header.shape->size()));
  const std::int64_t count = header.shape->front(), each = bytes_of_token(*type);
  if (count > (file.size - reader.at()) / each || reader.at() + count * each != file.size)
    reader.damaged(std::min(file.size, reader.at()),
                   fmt::format("the header says {} tokens of {} bytes, {} bytes follow", count,
                               each, file.size - reader.at()));
  return {file, reader.at(), count, *type};
}

}  // namespace reckon::data
