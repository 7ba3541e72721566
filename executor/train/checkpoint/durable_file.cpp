#include "executor/train/checkpoint/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace reckon {
namespace {

std::string reason(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full";
    case EDQUOT:
      return "the disk quota is used up";
    case EFBIG:
      return "the file-size limit (ulimit -f) is reached";
    default:
      return std::strerror(error);
  }
}

[[noreturn]] void fail_with(const char* what, const std::filesystem::path& file, int error) {
  throw FileError(fmt::format("cannot {} {}: {}", what, file.string(), reason(error)));
}

void flush(int descriptor, const std::filesystem::path& file) {
  if (::fsync(descriptor) != 0) fail_with("flush", file, errno);
}

/// Reads until `room` is full or the file ends; the number of bytes read.
std::size_t read_some(int descriptor, std::span<std::byte> room,
                      const std::filesystem::path& file) {
  std::size_t done = 0;
  while (done < room.size()) {
    const ssize_t n = ::read(descriptor, room.data() + done, room.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with("read", file, errno);
    if (n == 0) break;
    done += std::size_t(n);
  }
  return done;
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    reset();
    descriptor_ = other.release();
  }
  return *this;
}

int FileHandle::release() {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  return descriptor;
}

void FileHandle::reset() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

FileHandle open_file(const std::filesystem::path& file, int flags) {
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor < 0) fail_with((flags & O_CREAT) != 0 ? "create" : "open", file, errno);
  return FileHandle(descriptor);
}

void write_all(int descriptor, std::span<const std::byte> bytes,
               const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with("write", file, errno);
    bytes = bytes.subspan(std::size_t(n));
  }
}

void write_durably(const std::filesystem::path& file,
                   std::span<const std::span<const std::byte>> parts) {
  const std::filesystem::path beside = fmt::format("{}.part-{}", file.string(), ::getpid());
  try {
    FileHandle handle = open_file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    for (const auto part : parts) write_all(handle.get(), part, file);
    flush(handle.get(), file);
    if (::close(handle.release()) != 0) fail_with("close", file, errno);
    if (std::rename(beside.c_str(), file.c_str()) != 0) fail_with("rename", file, errno);
  } catch (...) {
    ::unlink(beside.c_str());
    throw;
  }
  flush_directory(file.parent_path());
}

void write_durably(const std::filesystem::path& file, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  write_durably(file, std::span(&part, 1));
}

void flush_directory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const FileHandle handle = open_file(path, O_RDONLY | O_DIRECTORY);
  flush(handle.get(), path);
}

void create_directories_durably(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> missing;
  for (auto at = directory; !at.empty() && !std::filesystem::exists(at, error);
       at = at.parent_path())
    missing.push_back(at);
  for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
    std::filesystem::create_directory(*at, error);  // another process may be first: no error
    if (error) fail_with("create", *at, error.value());
    flush_directory(at->parent_path());
  }
  if (!std::filesystem::is_directory(directory, error)) fail_with("create", directory, ENOTDIR);
}

std::vector<std::byte> read_bytes(const std::filesystem::path& file) {
  const FileHandle handle = open_file(file, O_RDONLY);
  struct stat about {};
  if (::fstat(handle.get(), &about) != 0) fail_with("read", file, errno);
  std::vector<std::byte> bytes(static_cast<std::size_t>(about.st_size));
  bytes.resize(read_some(handle.get(), bytes, file));
  return bytes;
}

std::string read_file_text(const std::filesystem::path& file) {
  const std::vector<std::byte> bytes = read_bytes(file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace reckon
