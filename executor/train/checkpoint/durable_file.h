#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// Files that outlive a crash. A reader sees a whole file or none: written beside, flushed to the
// device, renamed, and the directory flushed as well, since a rename is an entry of the directory
// [POSIX.1-2017 fsync; Pillai et al. 2014, "All File Systems Are Not Created Equal", OSDI].
namespace reckon {

/// What the environment refused: the call, the path and the reason in words.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Closes at the end of its scope; -1: nothing is open.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int descriptor) : descriptor_(descriptor) {}
  FileHandle(FileHandle&& other) noexcept : descriptor_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle() { reset(); }
  int get() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  int release();
  void reset();

 private:
  int descriptor_ = -1;
};

/// open(2) with O_CLOEXEC. Throws FileError.
FileHandle open_file(const std::filesystem::path& file, int flags);
/// All of `bytes`, after short writes and interruptions too. Throws FileError, which names a full
/// disk, a quota and a file-size limit for what they are.
void write_all(int descriptor, std::span<const std::byte> bytes, const std::filesystem::path& file);
/// `parts` one after the other as `file`, durable on return; on failure no trace is left.
void write_durably(const std::filesystem::path& file,
                   std::span<const std::span<const std::byte>> parts);
void write_durably(const std::filesystem::path& file, std::string_view text);
/// Makes entries of `directory` (creations, renames, removals) durable.
void flush_directory(const std::filesystem::path& directory);
/// Makes `directory` and what is missing above it; each is an entry of the one above, which is
/// flushed. Throws FileError.
void create_directories_durably(const std::filesystem::path& directory);
/// All of a file. Throws FileError where it cannot be read.
std::vector<std::byte> read_bytes(const std::filesystem::path& file);
std::string read_file_text(const std::filesystem::path& file);

}  // namespace reckon
