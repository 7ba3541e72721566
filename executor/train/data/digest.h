#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

class DataSource;

/// Adds up what a set is made of, in order: names within it, sizes, classes. Never what its files
/// hold, which would have to be read.
class DataDigest {
 public:
  DataDigest& add(std::string_view text);
  DataDigest& add(std::int64_t number);
  /// 16 hexadecimal digits.
  std::string text() const;

 private:
  void mix(const void* bytes, std::size_t size);
  std::uint64_t state_ = 0;
};

/// "12 samples in files of digest 0123456789abcdef"; "" where the source has no files.
std::string files_text(const DataSource& source);

}  // namespace reckon
