#pragma once
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "executor/train/checkpoint/durable_file.h"

namespace reckon {

/// Since 1970.
std::int64_t nanoseconds_of(const timespec& time);

/// A file of samples, read at any place by any thread.
class DataFile {
 public:
  /// Throws DataError where it cannot be opened.
  explicit DataFile(std::filesystem::path path);
  std::int64_t size() const { return size_; }
  std::int64_t modified() const { return modified_; }  // nanoseconds since 1970
  const std::filesystem::path& path() const { return path_; }
  /// All of `bytes`, from `offset`. Throws DataError: the file has become shorter, or cannot be
  /// read.
  void read(std::int64_t offset, std::span<std::uint8_t> bytes) const;
  /// Throws DataError: "PATH: at byte OFFSET: WHAT".
  [[noreturn]] void damaged(std::int64_t offset, const std::string& what) const;

 private:
  std::filesystem::path path_;
  FileHandle handle_;
  std::int64_t size_ = 0, modified_ = 0;
};

}  // namespace reckon
