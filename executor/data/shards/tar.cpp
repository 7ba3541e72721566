#include "executor/data/shards/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "executor/data/store/object_reader.h"

namespace reckon::data {
namespace {

constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kLongestName = std::int64_t{1} << 20;  // also of all extended headers

struct Field {
  std::size_t first, size;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kTarMagic{257, 6},
    kPrefix{345, 155};
constexpr std::size_t kType = 156;

using Header = std::array<std::uint8_t, kBlock>;

std::string_view text_of(const Header& header, Field field) {
  const char* const begin = reinterpret_cast<const char*>(header.data()) + field.first;
  const std::string_view all(begin, field.size);
  return all.substr(0, all.find('\0'));
}

/// Octal digits, or binary with the highest bit set (GNU).
std::optional<std::int64_t> number_of(const Header& header, Field field) {
  if ((header[field.first] & 0x80) != 0) {
    std::uint64_t value = header[field.first] & 0x7F;
    for (std::size_t k = 1; k < field.size; ++k) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | header[field.first + k];
    }
    return static_cast<std::int64_t>(value);
  }
  std::string_view text = text_of(header, field);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  const bool whole = error == std::errc() && end == text.data() + text.size() && value >= 0;
  return whole ? std::optional(value) : std::nullopt;
}

/// The sum of its bytes, those of the sum itself taken for blanks.
std::int64_t checksum_of(const Header& header) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < header.size(); ++k)
    sum += k >= kChecksum.first && k < kChecksum.first + kChecksum.size ? ' ' : header[k];
  return sum;
}

bool holds_zeros(const Header& header) {
  return std::ranges::all_of(header, [](std::uint8_t b) { return b == 0; });
}

/// What extended headers say of the file behind them.
struct Extended {
  std::optional<std::string> path;
  std::optional<std::int64_t> size;
};

/// Records of pax: "LENGTH KEY=VALUE\n". False: it is none.
bool read_pax(std::string_view text, Extended& into) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length <= digits + 1 || length > text.size() ||
        text[digits] != ' ' || text[length - 1] != '\n')
      return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") into.path = std::string(value);
    if (key.starts_with("GNU.sparse")) return false;
    if (key == "size") {
      std::int64_t size = 0;
      const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || last != value.data() + value.size() || size < 0) return false;
      into.size = size;
    }
    text.remove_prefix(length);
  }
  return true;
}

class TarReader {
 public:
  TarReader(const Store& store, const StoredObject& archive,
            const std::function<std::int64_t(const std::string&)>& bytes_wanted)
      : reader_(store, archive), bytes_wanted_(bytes_wanted) {}

  std::vector<TarMember> members() {
    while (next_header()) {
      switch (header_[kType]) {
        case 'L':
          extended_.path = text_until_zero(content());
          break;
        case 'x':
          if (!read_pax(content(), extended_)) damaged("an extended header of pax is damaged");
          break;
        case 'g':
        case 'K':
          content();
          break;
        case 'S':
          damaged("a sparse file, which is not read");
        default:
          take_file();
      }
    }
    return std::move(members_);
  }

 private:
  /// False at the end, which is blocks of zeros.
  bool next_header() {
    at_ = reader_.at();
    if (reader_.left() == 0)
      damaged("is cut off: a tar archive ends with two blocks of zeros, which are missing");
    if (reader_.left() < kBlock) damaged("is cut off within a header of tar");
    reader_.read(header_);
    if (holds_zeros(header_)) {
      if (reader_.left() < kBlock) return false;
      reader_.read(header_);
      if (!holds_zeros(header_))
        damaged(
            "files stand behind a block of zeros, which ends an archive (are several behind "
            "each other? tar --concatenate joins them)");
      return false;
    }
    const auto said = number_of(header_, kChecksum);
    if (!said || *said != checksum_of(header_))
      damaged(at_ == 0 ? "is no tar archive (is it compressed?)"
                       : "a header of tar is damaged: its checksum differs");
    const auto size = number_of(header_, kSize);
    if (!size) damaged("a header of tar has no size");
    size_ = *size;
    return true;
  }

  std::string content() {
    if (size_ > kLongestName) damaged(fmt::format("a name of {} bytes", size_));
    std::string text(static_cast<std::size_t>(size_), '\0');
    reader_.read({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
    skip_padding();
    return text;
  }

  void take_file() {
    if (extended_.size) size_ = *extended_.size;
    std::string name(text_of(header_, kName));
    const std::string_view prefix = text_of(header_, kPrefix);
    // GNU's magic is "ustar " and has other things where the prefix is.
    const char* const magic = reinterpret_cast<const char*>(header_.data()) + kTarMagic.first;
    const bool posix = std::string_view(magic, kTarMagic.size) == std::string_view("ustar\0", 6);
    if (posix && !prefix.empty()) name = std::string(prefix) + '/' + name;
    if (extended_.path) name = std::move(*extended_.path);
    extended_ = {};
    const std::uint8_t type = header_[kType];
    const bool regular = type == '0' || type == '\0' || type == '7';
    const bool has_content = regular || type > '7';  // links, devices and folders have none
    if (!has_content) return;
    const std::int64_t offset = reader_.at();
    if (size_ > reader_.left()) reader_.skip(size_, name);  // says so
    std::string begin;
    if (regular && !name.ends_with('/')) {
      begin.resize(static_cast<std::size_t>(std::min(size_, bytes_wanted_(name))));
      reader_.read({reinterpret_cast<std::uint8_t*>(begin.data()), begin.size()});
      members_.push_back({name, offset, size_, begin});
    }
    reader_.skip(size_ - std::ssize(begin), name);
    skip_padding();
  }

  void skip_padding() {
    const std::int64_t rest = (kBlock - reader_.at() % kBlock) % kBlock;
    reader_.skip(std::min(rest, reader_.left()), "padding");
  }
  static std::string text_until_zero(std::string text) { return text.substr(0, text.find('\0')); }
  [[noreturn]] void damaged(const std::string& what) const { reader_.damaged(at_, what); }

  ObjectReader reader_;
  const std::function<std::int64_t(const std::string&)>& bytes_wanted_;
  std::int64_t at_ = 0, size_ = 0;  // of the header; behind it
  Header header_{};
  Extended extended_;
  std::vector<TarMember> members_;
};

}  // namespace

std::vector<TarMember> tar_members(
    const Store& store, const StoredObject& archive,
    const std::function<std::int64_t(const std::string& name)>& bytes_wanted) {
  return TarReader(store, archive, bytes_wanted).members();
}

}  // namespace reckon::data
