#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace reckon {

/// What comes from a pipe or a device is held in memory, and a device need not end.
inline constexpr std::size_t kLongestStream = std::size_t{1} << 30U;  // bytes

/// The bytes of a file for reading, without a copy of it in memory; what cannot be mapped (a pipe)
/// is read. Throws std::runtime_error with the path and the reason where it cannot be read, or does
/// not end within `kLongestStream`.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::string_view bytes_;
  void* mapped_ = nullptr;
  std::string read_;
};

/// A copy of the bytes, for files that others may cut short meanwhile. Throws as MappedFile.
std::string read_whole(const std::filesystem::path& file);

}  // namespace reckon
